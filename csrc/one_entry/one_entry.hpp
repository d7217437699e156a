// The arguments of the kernels for one entry a row; kernels/one_entry/cpu.py mirrors these structs.
#pragma once

#include <cstddef>
#include <cstdint>

namespace softorder {

// Matrices are dense, of float (wide = 0) or double (wide = 1). A stride is 1, or 0 when one number (of
// shares: one set) serves every row. Column j of what is per row and k belongs to k[j]; k = 0 stands
// for a softmax. A row whose index is negative has neither loss nor gradient, and is not part of the mean
// that `total` is with `mean`.
struct OneEntryForward {
  const void* scores;         // rows × n
  const std::int64_t* index;  // which entry of each row
  const double* temperature;
  const double* k;            // columns
  const double* shares;       // rows or 1 × columns; may be null: no loss is wanted
  void* b;                    // columns × 2 × rows: centres and rests of the thresholds
  double* log_p;              // rows × columns
  double* loss;               // rows
  double* pull;               // rows × columns: the derivatives of the loss by log p
  void* total;                // the sum of all losses, in the format of the scores; may be null
  std::size_t rows, n, columns, temperature_stride, shares_stride;
  std::int32_t density, apart, mean, wide, threads;  // apart: the first share is not part of the mixture
};

struct OneEntryBackward {
  const void* scores;
  const std::int64_t* index;
  const double* temperature;
  const double* k;
  const void* b;
  const double* pull;
  const double* upstream;  // by which the pulls of a row are multiplied
  void* grad_scores;
  double* grad_temperature;  // may be null
  std::size_t rows, n, columns, temperature_stride, upstream_stride;
  std::int32_t density, wide, threads;
};

}  // namespace softorder
