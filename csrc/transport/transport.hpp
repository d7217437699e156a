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

// P, or with `ks` the logarithms of what a score has in the first k places; and the way back.
struct TransportPlan {
  const double* gains;        // rows × n
  const double* levels;       // rows × thresholds
  const double* total;        // rows
  const double* temperature;  // one, or rows
  const double* centre;       // rows × thresholds
  const double* rest;         // rows × thresholds
  const std::int64_t* ks;     // columns, ascending; or nothing
  const double* upstream;     // rows × columns × n
  double* out;                // rows × columns × n, or the gradient of gains, rows × n
  double* grad_temperature;   // rows
  std::int32_t* cold;         // rows: whether this one is beyond what is done here
  std::size_t rows, n, thresholds, columns, temperature_stride;
  std::int32_t threads;
};

}  // namespace softorder
