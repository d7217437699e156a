// The arguments of the row-softmax kernels; kernels/row_softmax/cpu.py mirrors this struct.
#pragma once

#include <cstddef>
#include <cstdint>

namespace softorder {

enum class RowSoftmaxFamily : std::int32_t { softsort, neuralsort };

// Matrices are dense, of float (wide = 0) or double (wide = 1). A score of -inf takes no part, or of
// +inf in ascending order; there is no NaN.
struct RowSoftmax {
  const void* scores;        // rows × n
  const double* temperature;
  void* p;                   // rows × k × n: written by the forward pass, read by the backward pass
  std::int32_t* order;       // rows × n, likewise: where the first scores in order are
  std::int32_t* count;       // rows, likewise: how many of them; P is 0 at all others (neuralsort)
  const void* upstream;      // null for the forward pass; for the backward pass, rows × k × n
  void* gradient;            // backward only: rows × n
  std::size_t rows, k, n, temperature_stride;
  std::int32_t family, descending, wide, threads;
};

}  // namespace softorder
