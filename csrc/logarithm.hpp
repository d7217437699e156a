// The natural logarithm of a pack of doubles.
#pragma once

#include "pack.hpp"

namespace softorder::SOFTORDER_LEVEL {

// log x for positive normal x, to a few units in the last place. With x = 2^e m and m within
// [√½, √2], log m = 2 artanh(s), s = (m - 1)/(m + 1), |s| <= 0.172: eleven terms of its series.
inline Pack<double> log(Pack<double> x) {
  using Bits = Mask<double>;
  constexpr std::int64_t sqrt_half = 0x3fe6a09e667f3bcd;
  constexpr double coefficients[] = {1.0 / 21, 1.0 / 19, 1.0 / 17, 1.0 / 15, 1.0 / 13, 1.0 / 11,
                                     1.0 / 9,  1.0 / 7,  1.0 / 5,  1.0 / 3,  1.0};
  const Bits above = std::bit_cast<Bits>(x) - sqrt_half;
  const Bits exponent = above >> 52;
  const Pack<double> m = std::bit_cast<Pack<double>>(std::bit_cast<Bits>(x) - (exponent << 52));
  const Pack<double> s = (m - 1.0) / (m + 1.0);
  const Pack<double> power = __builtin_convertvector(exponent, Pack<double>);
  constexpr double ln2_high = 0.693147180369123816490, ln2_low = 1.90821492927058770002e-10;
  return power * ln2_high + (2.0 * s * horner<double>(coefficients, s * s) + power * ln2_low);
}

}  // namespace softorder::SOFTORDER_LEVEL
