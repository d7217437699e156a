// Scores so large that sums of their differences would overflow. All that counts is scores/τ: both may be
// multiplied by one power of two, which is exact but for numbers that underflow beside ones of 10^289.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>

#include "scratch.hpp"
#include "simd/pack.hpp"

namespace softorder {

// What scores between low and high are to be multiplied by, and τ with them: 1 but for doubles near the end
// of their range. Differences of floats are taken in double, and need nothing.
template <class T> inline double factor_for(T low, T high) {
  constexpr double kFactor = 0x1p-64;  // leaves room for n² differences
  if constexpr (is_single<T>) return 1;
  return std::max(std::fabs(double(low)), std::fabs(double(high))) > kFactor * std::numeric_limits<double>::max()
             ? kFactor
             : 1;
}

// τ in those units, where it must not become 0.
inline double scaled_temperature(double temperature, double factor) {
  return factor == 1 ? temperature : std::max(factor * temperature, std::numeric_limits<double>::min());
}

// Finite scores in ascending order, and their temperature, in units in which nothing overflows.
template <class T> class InRange {
 public:
  InRange(const T* sorted, std::size_t count, double temperature)
      : factor(count == 0 ? 1 : factor_for(sorted[0], sorted[count - 1])),
        temperature(scaled_temperature(temperature, factor)),
        given_(sorted),
        copy_(factor == 1 ? 0 : count) {
    for (std::size_t i = 0; factor != 1 && i < count; ++i) copy_.get()[i] = T(factor * double(sorted[i]));
  }

  const double factor, temperature;
  const T* values() const { return factor == 1 ? given_ : copy_.get(); }

  // What was computed in those units, in the units of the scores.
  void put_back(T* values, std::size_t count) const { multiply(values, count, 1 / factor); }
  // The gradients of what has no unit, by scores or τ, likewise.
  void put_back_gradients(T* gradients, std::size_t count) const { multiply(gradients, count, factor); }

 private:
  void multiply(T* values, std::size_t count, double by) const {
    for (std::size_t i = 0; factor != 1 && i < count; ++i) values[i] = T(by * double(values[i]));
  }

  const T* given_;
  Scratch<T> copy_;
};

}  // namespace softorder
