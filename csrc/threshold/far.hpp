// Thresholds so far from 0 that a score minus one of them may overflow: there scores and thresholds are
// quartered first, which is exact, and u = (x - b)/τ is what it was.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>

#include "threshold/sweep.hpp"

namespace softorder {

// Less than half of the last digit of the largest number: x ± y is finite for every finite x and every y below it.
template <class T> constexpr T kFarFrom = std::numeric_limits<T>::max() * std::numeric_limits<T>::epsilon() / 8;

template <class T> bool is_far(Threshold<T> b) {
  return !(std::abs(b.centre) < kFarFrom<T> && std::abs(b.rest) < kFarFrom<T>);
}

template <class T> Threshold<T> quartered(Threshold<T> b) { return {T(0.25) * b.centre, T(0.25) * b.rest}; }

// The scale that belongs to quarters; finite, as scale_of has it.
template <class T> T quartered_scale(T scale) { return std::min(scale, std::numeric_limits<T>::max() / 4) * 4; }

// u of one score beside a threshold that may be far.
template <class T> T distance_from(T score, Threshold<T> b, T scale) {
  if (!is_far(b)) return ((score - b.centre) - b.rest) * scale;
  return ((T(0.25) * score - T(0.25) * b.centre) - T(0.25) * b.rest) * quartered_scale(scale);
}

template <class T> void quarter(const T* x, std::size_t n, T* out) {
#pragma omp simd
  for (std::size_t i = 0; i < n; ++i) out[i] = T(0.25) * x[i];
}

}  // namespace softorder
