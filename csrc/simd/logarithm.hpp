// The natural logarithm of a pack.
#pragma once

#include "simd/pack.hpp"

namespace softorder {

template <class T> struct Logarithm;
template <> struct Logarithm<float> {
  static constexpr std::int32_t kSqrtHalf = 0x3f3504f3;
  static constexpr float kSeries[] = {1.0f / 9, 1.0f / 7, 1.0f / 5, 1.0f / 3, 1.0f};
  static constexpr float kHigh = 0.693359375f, kLow = -2.12194440e-4f;  // ln 2 in two parts
};
template <> struct Logarithm<double> {
  static constexpr std::int64_t kSqrtHalf = 0x3fe6a09e667f3bcd;
  static constexpr double kSeries[] = {1.0 / 21, 1.0 / 19, 1.0 / 17, 1.0 / 15, 1.0 / 13, 1.0 / 11,
                                       1.0 / 9,  1.0 / 7,  1.0 / 5,  1.0 / 3,  1.0};
  static constexpr double kHigh = 0.693147180369123816490, kLow = 1.90821492927058770002e-10;
};

// log x for positive normal x, to a few units in the last place. With x = 2^e m and m within
// [√½, √2], log m = 2 artanh(s), s = (m - 1)/(m + 1), |s| <= 0.172: a few terms of its series.
template <class T> inline Pack<T> log(Pack<T> x) {
  using L = Logarithm<T>;
  using Bits = Mask<T>;
  const Bits exponent = (std::bit_cast<Bits>(x) - L::kSqrtHalf) >> Number<T>::kMantissa;
  const Pack<T> m = std::bit_cast<Pack<T>>(std::bit_cast<Bits>(x) - (exponent << Number<T>::kMantissa));
  const Pack<T> s = (m - T(1)) / (m + T(1));
  const Pack<T> power = __builtin_convertvector(exponent, Pack<T>);
  return power * L::kHigh + (T(2) * s * horner<T>(L::kSeries, s * s) + power * L::kLow);
}

}  // namespace softorder
