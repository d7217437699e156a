// The arguments of the top-k kernels; kernels/threshold/cpu.py mirrors these structs field by field.
#pragma once

#include <cstddef>
#include <cstdint>

namespace softorder {

enum class Density : std::int32_t { laplace, logistic, normal, cauchy, uniform };

// Matrices are rows × n in one of the float formats; with a layout (see rows.hpp), wherever that says they are,
// else dense. Arithmetic and thresholds are in double for float64 and in float for the others. A stride is 1, or
// 0 when one number serves every row.
struct TopkForward {
  const void* scores;
  const double* k;
  const double* temperature;
  void* p;                     // may be null: thresholds only
  void* centre;                // threshold b = centre + rest, one per row; may be null, with rest: p only
  void* rest;
  std::int32_t* sweeps;        // may be null: passes over the row that the solver took
  const std::uint8_t* mask;    // rows × n, may be null: elements of 0 take no part
  const std::int64_t* layout;  // may be null; of scores, p and mask
  const std::int64_t* offsets;  // may be null: rows of different lengths (see ragged.hpp), neither mask nor layout
  std::size_t rows, n, k_stride, temperature_stride;
  std::int32_t density, format, threads;
};

struct TopkBackward {
  const void* scores;
  const void* upstream;       // rows × n; or, with an index, one T per row,
  const std::int64_t* index;  // and where in the row it is; may be null
  const double* temperature;
  const void* centre;
  const void* rest;
  void* grad_scores;
  double* grad_k;              // these two may be null
  double* grad_temperature;
  const std::uint8_t* mask;
  const std::int64_t* layout;  // of scores, upstream, grad_scores and mask
  const std::int64_t* offsets;  // as above
  std::size_t rows, n, temperature_stride;
  std::int32_t density, format, threads;
};

}  // namespace softorder
