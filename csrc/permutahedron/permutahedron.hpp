// The arguments of the projections onto permutahedra; kernels/permutahedron/cpu.py mirrors this struct.
#pragma once

#include <cstddef>
#include <cstdint>

namespace softorder {

// Matrices are dense, rows × n, of float (wide = 0) or double (wide = 1). The temperature's stride is
// 1, or 0 when one number serves every row.
struct Permutahedron {
  const void* scores;       // forward only
  const void* upstream;     // backward only
  const double* temperature;
  void* out;                // forward: ranks or sorted scores; backward: gradients of the scores
  void* values;             // the scores in ascending order, and where they came from: written by the
  std::int32_t* order;      // forward pass, read by the backward pass
  std::int32_t* starts;     // likewise: the first places of the blocks, see pool.hpp
  const void* ranks;        // backward of entropic ranks only: what the forward pass returned
  std::size_t rows, n, temperature_stride;
  std::int32_t descending, entropic, wide, threads;
};

}  // namespace softorder
