// Where the F-sum of a row takes the levels of a soft sort or of a soft permutation.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace softorder {

// The levels 1/2, 3/2, ... of a sort, or 1, 2, ... of the thresholds between the rows of a permutation.
struct Levels {
  bool whole;
  std::size_t count;

  double first() const { return whole ? 1.0 : 0.5; }
};
inline Levels sort_levels(std::size_t m) { return {false, m}; }
inline Levels threshold_levels(std::size_t m) { return {true, m == 0 ? 0 : m - 1}; }

// Root j is a source, which segment[j] tells, plus rest[j], and slope[j] = Σ_i f((t_j - x_i)/τ).
template <class T> struct Roots {
  T* t;  // the sum, rounded, and ascending; may be null
  std::int32_t* segment;
  T* rest;
  T* slope;
};

// Makes roots [first, last) ascend, which they do but for roundings.
template <class T> void ascend(T* t, std::size_t first, std::size_t last) {
  int falls = 0;
#pragma omp simd reduction(| : falls)
  for (std::size_t j = first + 1; j < last; ++j) falls |= t[j] < t[j - 1];
  if (!falls) return;
  for (std::size_t j = first + 1; j < last; ++j) t[j] = std::max(t[j], t[j - 1]);
}

}  // namespace softorder
