// The arguments of the top-k kernels; kernels/threshold/cpu.py mirrors these structs field by field.
#pragma once

#include <cstddef>
#include <cstdint>

namespace softorder {

enum class Density : std::int32_t { laplace, logistic, normal, cauchy, uniform };

// Matrices are dense, rows × n, of float (wide = 0) or double (wide = 1). A stride is 1, or 0 when
// one number serves every row.
struct TopkForward {
  const void* scores;
  const double* k;
  const double* temperature;
  void* p;               // may be null: thresholds only
  void* centre;          // threshold b = centre + rest, one per row, in the scalar type
  void* rest;
  std::int32_t* sweeps;  // may be null: passes over the row that the solver took
  std::size_t rows, n, k_stride, temperature_stride;
  std::int32_t density, wide, threads;
};

struct TopkBackward {
  const void* scores;
  const void* upstream;       // rows × n; or, with an index, one number per row,
  const std::int64_t* index;  // and where in the row it is; may be null
  const double* temperature;
  const void* centre;
  const void* rest;
  void* grad_scores;
  double* grad_k;
  double* grad_temperature;
  std::size_t rows, n, temperature_stride;
  std::int32_t density, wide, threads;
};

}  // namespace softorder
