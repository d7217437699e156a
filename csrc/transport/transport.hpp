// The arguments of the kernels for entropic transport; kernels/transport/cpu.py mirrors them.
#pragma once

#include <cstddef>
#include <cstdint>

namespace softorder {

// Matrices are dense, of double. What they mean is in kernels/transport/contract.py.
struct TransportSolve {
  const double* gains;        // rows × n: shared by all thresholds
  const double* levels;       // rows × thresholds
  const double* total;        // rows
  const double* temperature;  // one, or rows
  const double* tolerance;    // one
  double* centre;             // rows × thresholds
  double* rest;               // rows × thresholds
  std::int32_t* iterations;   // rows
  double* error;              // rows
  std::size_t rows, n, thresholds, temperature_stride;
  std::int32_t max_iterations, threads;
};

}  // namespace softorder
