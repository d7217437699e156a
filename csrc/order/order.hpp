// The arguments of the fused soft ranks and soft sort; kernels/order/cpu.py mirrors them.
#pragma once

#include <cstddef>
#include <cstdint>

namespace softorder {

// Matrices are dense, rows × n or (see ragged.hpp) in rows of their own lengths, of float (wide = 0) or double (wide = 1). The temperature's stride is
// 1, or 0 when one number serves every row.
struct SoftOrder {
  const void* scores;       // forward only
  const void* upstream;     // backward only
  const double* temperature;
  void* out;                // forward: ranks or sorted scores; backward: gradients of the scores
  void* values;             // the scores in ascending order, and where they came from: written by the
  std::int32_t* order;      // forward pass, read by the backward pass
  std::int32_t* segment;    // soft sort only, likewise: see order/roots.hpp
  void* rest;
  void* slope;
  double* grad_temperature;  // backward only, one per row; may be null
  const std::int64_t* offsets;  // may be null: rows of different lengths, n is not used
  std::size_t rows, n, temperature_stride;
  std::int32_t density, descending, wide, threads;
};

}  // namespace softorder
