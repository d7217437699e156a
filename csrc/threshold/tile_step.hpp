// Rows side by side: the sums of one sweep, one row per lane, and from them to the next b. As in step.hpp, without
// any branch that a single row could take.
#pragma once

#include <cmath>

#include "simd/logarithm.hpp"
#include "threshold/sweep.hpp"

namespace softorder {

template <class T> inline Pack<T> lane_roots(Pack<T> x) {
  Pack<T> y;
  for (std::size_t i = 0; i < kLanes<T>; ++i) y[i] = std::sqrt(x[i]);
  return y;
}

// The sums of one sweep, one row per lane: see Sums in sweep.hpp. `lower_pdf` is kept where kSplit says so.
template <class F, class T> struct PackSums {
  static constexpr bool kSplit = F::kTail == Tail::hyperbola || F::kTail == Tail::none;

  Pack<T> lower{}, upper{}, pdf{}, lower_pdf{}, curve{}, third{}, fourth{};
  Mask<T> not_above{};

  PackSums& operator+=(const PackSums& o) {
    lower += o.lower, upper += o.upper, not_above += o.not_above;
    if constexpr (!F::kExponential) pdf += o.pdf, curve += o.curve;
    if constexpr (kSplit) lower_pdf += o.lower_pdf;
    if constexpr (F::kOrder == 5) third += o.third, fourth += o.fourth;
    return *this;
  }
};

// With what follows from the sums.
template <class F, class T> PackSums<F, T> finished(PackSums<F, T> total) {
  if constexpr (F::kExponential) {
    total.pdf = total.lower + total.upper, total.curve = total.lower - total.upper;
  }
  if constexpr (F::kOrder == 5) {
    total.third = F::kThird[0] * total.pdf + F::kThird[1] * total.third;
    total.fourth = F::kFourth[0] * total.curve + F::kFourth[1] * total.fourth;
  }
  return total;
}

// The sums of scores far from b after that has moved by d (in units of τ), by their Taylor polynomials; as in sweep.hpp.
template <class F, class T> PackSums<F, T> moved(PackSums<F, T> s, Pack<T> d) {
  s.lower += d * (T(0.5) * d * s.curve - s.lower_pdf), s.upper += d * (s.pdf - s.lower_pdf);
  s.lower_pdf -= d * s.curve, s.pdf -= d * s.curve;
  return s;
}

// As in step.hpp: the tails as hyperbolas.
template <class F, class T> Pack<T> far_step(const PackSums<F, T>& s, Pack<T> residual) {
  const Pack<T> lower_rate = s.lower_pdf / s.lower, upper_rate = (s.pdf - s.lower_pdf) / s.upper;
  const Pack<T> extra = residual - (s.lower - s.upper), product = lower_rate * upper_rate;
  const Pack<T> slope = s.lower * upper_rate + s.upper * lower_rate + extra * (upper_rate - lower_rate);
  const Pack<T> newton = residual / slope, square = T(1) + T(4) * extra * (product / slope) * newton;
  return T(2) * newton / (T(1) + lane_roots<T>(square > T(0) ? square : Pack<T>{}));
}

// Exactly k scores above b: log Σ of both tails have to be equal. A normal tail of size q falls at
// the rate of sqrt(-2 log q), or nearly so.
template <class F, class T> Pack<T> balance_step(const PackSums<F, T>& s) {
  const Pack<T> lower = log<T>(s.lower), upper = log<T>(s.upper), one = Pack<T>{} + T(1);
  return (lower - upper) / (lane_roots<T>(larger<T>(one, T(-2) * lower)) + lane_roots<T>(larger<T>(one, T(-2) * upper)));
}

// In units of τ: Halley's step, or the root of the Taylor polynomial of degree 4 near it.
template <class F, class T, int kOrder = F::kOrder> Pack<T> step_of(const PackSums<F, T>& s, Pack<T> residual) {
  const Pack<T> newton = residual / s.pdf, bend = T(0.5) * newton * s.curve / s.pdf;
  const Pack<T> halley = absolute<T>(bend) < T(0.5) ? newton / (T(1) - bend) : newton;
  if constexpr (F::kOrder < 5) return halley;
  Pack<T> d = halley;
  if constexpr (kOrder == 5) {
    const Pack<T> second = T(0.5) * s.curve, third = s.third * T(1.0 / 6), fourth = s.fourth * T(1.0 / 24);
    for (int i = 0; i < 2; ++i) {
      const Pack<T> value = residual + d * (d * (second + d * (d * fourth - third)) - s.pdf);
      const Pack<T> slope = d * (T(2) * second + d * (T(4) * d * fourth - T(3) * third)) - s.pdf;
      d -= value / slope;
    }
  }
  const Mask<T> short_one = (absolute<T>(halley) < T(0.5)) & (absolute<T>(d - halley) < T(0.2));
  if constexpr (F::kTail == Tail::hyperbola) {
    const Pack<T> far = far_step<F, T>(s, residual);
    return short_one ? d : far == far ? far : halley;
  }
  if constexpr (F::kTail == Tail::gaussian) {
    const Mask<T> balanced = ~short_one & (residual == s.lower - s.upper) & (s.lower > T(0)) & (s.upper > T(0));
    if (any<T>(balanced)) return short_one ? d : balanced ? balance_step<F, T>(s) : halley;
  }
  return short_one ? d : halley;
}

}  // namespace softorder
