// The arguments of the placement kernels; kernels/placement/cpu.py mirrors this struct.
#pragma once

#include <cstddef>
#include <cstdint>

namespace softorder {

// -log Σ_j P[j, i] over the places j from first_i to last_i, P being the soft permutation of a row. Matrices are
// dense, rows × n or (see ragged.hpp) in rows of their own lengths; scores, values and the gradient of float (wide = 0) or double (wide = 1).
struct Placement {
  const void* scores;
  const double* temperature;
  const std::int64_t* first;  // from 0; where it is negative there is no loss
  const std::int64_t* last;
  const double* upstream;  // backward only
  double* losses;          // forward only
  void* values;            // the scores in ascending order, and where they came from: written by the
  std::int32_t* order;     // forward pass, read by the backward pass
  double *rest, *slope;    // where the thresholds are, see order/roots.hpp: also from one pass to the other. Without
  std::int32_t* segment;   // segments, or with -1 for its first one, a row has them found again; laplace needs no slopes
  void* gradient;          // backward only
  double* grad_temperature;  // backward only, one per row; may be null
  const std::int64_t* offsets;  // may be null: rows of different lengths, n is not used
  std::size_t rows, n, temperature_stride;
  std::int32_t density, descending, wide, threads;
};

}  // namespace softorder
