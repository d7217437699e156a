// The even densities f that the native solver knows, one struct each.
//
// With a = |u| = z·scale/kUnit >= 0 (the unit saves a multiplication per element):
//   values(..)  tail = F(-a), pdf = f(a), drop = -f'(a); for steps of order 5 also third and fourth,
//               from which f''/f = kThird[0] + kThird[1] third, f'''/f' = kFourth[0] + kFourth[1] fourth
//   kMiddle     where F is 1/2
//   kSplitPdf   whether the rates f/F of the two tails can be very different
//   kOrder      the order of the steps near the root
//   kShift      how p at one b follows from p at another, at most kLongestShift (in τ) away: see shift.hpp
//   kShort      a step of that order so short (in τ) leaves an error that does not matter
//   kWidth      of the uniform density of the same variance (of the same body, for Cauchy), for order 5
//   kTail       the shape of F far below the middle
//   kReach      further than this from a kink or from the middle, F is e^-a - e^-2a
//               (Tail::exponential), 0 (Tail::gaussian) or linear (Tail::none), to working precision;
//               for Tail::hyperbola far_values(..) does, for less
//   quantile(q) F^-1, for guesses and brackets; log_tail, log_slope: log F(-a) and minus its slope
#pragma once

#include <cmath>
#include <limits>
#include <numbers>

#include "simd/pack.hpp"

namespace softorder {

// What F(-a) is for large a.
enum class Tail { exponential, gaussian, hyperbola, none };

// By what p at one b becomes p at another: not at all, the odds, the angle between the two, a Taylor polynomial.
enum class Shift { none, odds, angle, taylor };

template <class T> struct Values {
  Pack<T> tail, pdf, drop;
  Pack<T> third{}, fourth{};
};

template <class T> struct Laplace {
  static constexpr T kUnit = std::numbers::log2e_v<T>;
  static constexpr T kMiddle = 0;
  static constexpr Tail kTail = Tail::exponential;
  static constexpr bool kExponential = true;  // tail = pdf = drop
  static constexpr Shift kShift = Shift::none;
  static constexpr bool kSplitPdf = false;
  static constexpr int kOrder = 2;
  static constexpr double kShort = is_single<T> ? 1e-3 : 3e-8;
  static constexpr double kWidth = 0;
  static constexpr double kReach = 0;
  [[gnu::always_inline]] static Values<T> values(Pack<T> z, Pack<T> scale) {
    const Pack<T> tail = T(0.5) * exp2_minus<T>(z, scale);
    return {tail, tail, tail};
  }
  static double quantile(double q) { return q < 0.5 ? std::log(2 * q) : -std::log(2 - 2 * q); }
  static double log_tail(double a) { return -a - std::numbers::ln2; }
  static double log_slope(double) { return 1; }
};

template <class T> struct Logistic {
  static constexpr T kUnit = std::numbers::log2e_v<T>;
  static constexpr T kMiddle = 0;
  static constexpr Tail kTail = Tail::exponential;
  static constexpr bool kExponential = false;
  static constexpr Shift kShift = Shift::odds;
  static constexpr double kLongestShift = std::numeric_limits<double>::infinity();
  static constexpr bool kSplitPdf = false;
  static constexpr int kOrder = 5;
  static constexpr T kThird[] = {1, -6}, kFourth[] = {1, -12};
  static constexpr double kShort = is_single<T> ? 0.17 : 2.2e-3;
  static constexpr double kWidth = 6.283;
  static constexpr double kReach = is_single<T> ? 7 : 15;
  [[gnu::always_inline]] static Values<T> values(Pack<T> z, Pack<T> scale) {
    const Pack<T> e = exp2_minus<T>(z, scale);
    const Pack<T> tail = e * inverse<T>(T(1) + e);
    const Pack<T> pdf = tail - tail * tail;
    return {tail, pdf, pdf * (T(1) - T(2) * tail), pdf, pdf};
  }
  static double quantile(double q) { return std::log(q) - std::log1p(-q); }
  static double log_tail(double a) { return -a - std::log1p(std::exp(-a)); }
  static double log_slope(double a) { return 1 / (1 + std::exp(-a)); }
};

template <class T> struct Normal {
  // f(a) = 2^-(v²)/sqrt(2π)
  static constexpr T kUnit = T(0.84932180028801904272);  // sqrt(log2(e)/2)
  static constexpr T kMiddle = 0;
  static constexpr Tail kTail = Tail::gaussian;
  static constexpr bool kExponential = false;
  static constexpr Shift kShift = is_single<T> ? Shift::taylor : Shift::none;
  static constexpr double kLongestShift = 0.045;
  static constexpr bool kSplitPdf = true;
  static constexpr int kOrder = 5;
  static constexpr T kThird[] = {-1, 1}, kFourth[] = {-3, 1};
  static constexpr double kShort = is_single<T> ? 0.13 : 1.7e-3;
  static constexpr double kWidth = 3.464;
  static constexpr double kReach = is_single<T> ? 6.5 : 9.5;
  [[gnu::always_inline]] static Values<T> values(Pack<T> z, Pack<T> scale) {
    constexpr T inverse_unit = T(1.17741002251547469101);
    constexpr T height = T(0.39894228040143267794);
    constexpr T far = T(1e6);  // keeps a finite where the pdf is 0 long since
    const Pack<T> v = z * scale, a = v < far ? v * inverse_unit : Pack<T>{} + far;
    const Pack<T> pdf = height * exp2_minus<T>(v, v);
    const Pack<T> square = a * a;
    return {pdf * mills(a), pdf, a * pdf, square, square};
  }
  static double quantile(double q) {
    const double small = q < 0.5 ? q : 1 - q, t = std::sqrt(-2 * std::log(small));
    // Abramowitz & Stegun 26.2.22, error below 3e-3; then Newton's steps on log F
    double a = t - (2.30753 + 0.27061 * t) / (1 + t * (0.99229 + 0.04481 * t));
    for (int i = 0; i < 2; ++i) a += (log_tail(a) - std::log(small)) / log_slope(a);
    return q < 0.5 ? -a : a;
  }
  static double log_tail(double a) {
    if (a < 20) return std::log(0.5 * std::erfc(a * std::numbers::sqrt2 / 2));
    return -0.5 * a * a - std::log(std::sqrt(2 * std::numbers::pi) * far_slope(a));
  }
  static double log_slope(double a) {
    if (a < 20) {
      return std::exp(-0.5 * a * a) / std::sqrt(2 * std::numbers::pi) /
             (0.5 * std::erfc(a * std::numbers::sqrt2 / 2));
    }
    return far_slope(a);
  }
  // F(-a)/f(a), for an a that is not large beyond measure
  [[gnu::always_inline]] static Pack<T> mills(Pack<T> a) {
    using P = Polynomials<T>;
    if constexpr (is_single<T>) {
      return horner<T>(P::kMillsTop, a) * inverse<T>(horner<T>(P::kMillsBottom, a));
    } else {
      const Pack<T> shrunk = inverse<T>(a + P::kMillsCentre);
      return shrunk * horner<T>(P::kMills, T(1) - T(2) * P::kMillsCentre * shrunk);
    }
  }

 private:
  // f/F, one over the Mills ratio, by its continued fraction, for a >= 20
  static double far_slope(double a) {
    double slope = a;
    for (int i = 24; i > 0; --i) slope = a + i / slope;
    return slope;
  }
};

template <class T> struct Cauchy {
  static constexpr T kUnit = 1;
  static constexpr T kMiddle = 0;
  static constexpr Tail kTail = Tail::hyperbola;
  static constexpr bool kExponential = false;
  static constexpr Shift kShift = is_single<T> ? Shift::angle : Shift::none;
  static constexpr double kLongestShift = 0.1;
  static constexpr bool kSplitPdf = true;
  static constexpr int kOrder = 5;
  static constexpr T kThird[] = {0, 1}, kFourth[] = {0, 1};
  static constexpr double kShort = is_single<T> ? 0.09 : 1.2e-3;
  static constexpr double kWidth = 4;
  static constexpr double kReach = 4;
  [[gnu::always_inline]] static Values<T> values(Pack<T> z, Pack<T> scale) {
    constexpr T inverse_pi = std::numbers::inv_pi_v<T>;
    const Pack<T> a = z * scale, one = Pack<T>{} + T(1);
    const Mask<T> inner = a < T(1);
    const Pack<T> small = (inner ? a : one) / (inner ? one : a);
    const Pack<T> angle = inverse_pi * small * horner<T>(Polynomials<T>::kArctan, small * small);
    const Pack<T> tail = inner ? T(0.5) - angle : angle;
    // 1/(1 + a²) without overflow, by what is small
    const Pack<T> height = inverse<T>(T(1) + small * small);
    const Pack<T> h = inner ? height : small * small * height;
    const Pack<T> pdf = inverse_pi * h;
    return {tail, pdf, T(2) * small * height * pdf, h * (T(6) - T(8) * h), h * (T(12) - T(24) * h)};
  }
  // The same from a = kReach on, where the series of the arctangent is short; +inf included.
  [[gnu::always_inline]] static Values<T> far_values(Pack<T> z, Pack<T> scale) {
    constexpr T inverse_pi = std::numbers::inv_pi_v<T>;
    const Pack<T> small = T(1) / (z * scale), square = small * small;
    Pack<T> series;  // of which kReach^-12/13 is left out
    if constexpr (is_single<T>) series = horner<T>({T(-1) / 11, T(1) / 9, T(-1) / 7, T(1) / 5, T(-1) / 3, 1}, square);
    else series = horner<T>(Polynomials<T>::kArctan, square);
    const Pack<T> height = inverse<T>(T(1) + square), h = square * height, pdf = inverse_pi * h;
    const Pack<T> tail = inverse_pi * small * series, drop = T(2) * small * height * pdf;
    return {tail, pdf, drop, h * (T(6) - T(8) * h), h * (T(12) - T(24) * h)};
  }
  // To three digits, without the derivatives of order 5: for steps that only come near the root.
  [[gnu::always_inline]] static Values<T> rough_values(Pack<T> z, Pack<T> scale) {
    constexpr T inverse_pi = std::numbers::inv_pi_v<T>;
    const Pack<T> a = smaller<T>(z * scale, Pack<T>{} + T(1e9));  // the pdf is 0 beside others long since
    const Mask<T> inner = a < T(1);
    const Pack<T> height = rough_inverse<T>(T(1) + a * a);
    const Pack<T> small = inner ? a : rough_inverse<T>(a), square = small * small;
    const Pack<T> angle = inverse_pi * small * horner<T>({T(-0.0472), T(0.1603), T(-0.3279), 1}, square);
    const Pack<T> pdf = inverse_pi * height;
    return {inner ? T(0.5) - angle : angle, pdf, T(2) * a * height * pdf};
  }
  static double quantile(double q) { return std::tan(std::numbers::pi * (q - 0.5)); }
  // beyond kFar F(-a) is 1/(πa), whose square would overflow and whose inverse underflow
  static constexpr double kFar = 1e100;
  static double log_tail(double a) {
    return a < kFar ? std::log(std::atan2(1, a) / std::numbers::pi) : -std::log(a) - std::log(std::numbers::pi);
  }
  static double log_slope(double a) { return a < kFar ? 1 / ((1 + a * a) * std::atan2(1, a)) : 1 / a; }
};

// Written with support [0, 1] instead of [-1/2, 1/2]: that moves b by τ/2 and changes no p, but a
// p near 0 is then a difference of a score and the threshold, with full relative accuracy.
template <class T> struct Uniform {
  static constexpr T kUnit = 1;
  static constexpr T kMiddle = T(0.5);
  static constexpr Tail kTail = Tail::none;
  static constexpr bool kExponential = false;
  static constexpr Shift kShift = Shift::none;
  static constexpr bool kSplitPdf = true;
  static constexpr int kOrder = 2;
  static constexpr double kShort = is_single<T> ? 1e-3 : 3e-8;
  static constexpr double kWidth = 0;
  static constexpr double kReach = 0;
  static constexpr T kEdge = 16 * std::numeric_limits<T>::epsilon();  // of rounding, in p
  // z: distance to the nearer end of the support, negative outside
  [[gnu::always_inline]] static Values<T> values(Pack<T> z, Pack<T> scale) {
    const Pack<T> a = z * scale, none = {};
    return {a <= T(0) ? none : a, a <= T(0) ? none : none + T(1), none};
  }
  static double quantile(double q) { return q; }
  static double log_tail(double) { return 0; }
  static double log_slope(double) { return 0; }
};

}  // namespace softorder
