// e^-x and 1 - e^-x of a pack, each with its own relative accuracy.
#pragma once

#include <numbers>

#include "simd/pack.hpp"

namespace softorder {

struct Decay {
  Pack<double> rest, lost;  // e^-x and 1 - e^-x
};

// For x >= 0, +inf included. Near 0 the series of (1 - e^-x)/x, whose terms below 2^-53 are left out.
inline Decay decay(Pack<double> x) {
  constexpr double kNear = 0.35;
  constexpr double kSeries[] = {1.0 / 6227020800, -1.0 / 479001600, 1.0 / 39916800, -1.0 / 3628800, 1.0 / 362880,
                                -1.0 / 40320,     1.0 / 5040,       -1.0 / 720,     1.0 / 120,      -1.0 / 24,
                                1.0 / 6,          -1.0 / 2,         1.0};
  const Pack<double> rest = exp2_minus<double>(x, Pack<double>{} + std::numbers::log2e);
  return {rest, x < kNear ? x * horner<double>(kSeries, x) : 1.0 - rest};
}

}  // namespace softorder
