// From p at one threshold to p at another near it, for less than F costs: the last sweep of the solver has left p
// where b was before its last step.
#pragma once

#include <algorithm>
#include <cmath>
#include <numbers>

#include "threshold/sweep.hpp"

namespace softorder {

// Logistic: the odds p/(1 - p) fall by e^-shift. What is certain stays so.
template <class T, class S> void shift_odds(const T* left, S* p, std::size_t n, double shift) {
  const T fall = static_cast<T>(std::exp(-shift)), change = static_cast<T>(std::expm1(-shift));
  for_packs(left, n, [&](Pack<T> before, std::size_t i, std::size_t count) {
    const Pack<T> share = inverse<T>(T(1) + before * change);
    store_first<T>(p + i, before < T(0.5) ? before * fall * share : T(1) - (T(1) - before) * share, count);
  });
}

// Cauchy, with d for the shift: atan(u + d) - atan(u) = atan(d/(1 + u (u + d))). A series does for |d| <= 0.1, and
// from |u| = 10^9 on nothing changes.
template <class T, class S>
void shift_angle(const T* x, const T* left, S* p, std::size_t n, Threshold<T> b, T scale, T shift) {
  constexpr T inverse_pi = std::numbers::inv_pi_v<T>;
  for_packs(x, n, [&](Pack<T> scores, std::size_t i, std::size_t count) {
    const Pack<T> u = ((scores - b.centre) - b.rest) * scale;
    const Pack<T> slope = shift * inverse<T>(T(1) + u * (u + shift)), square = slope * slope;
    const Pack<T> turn = inverse_pi * slope * (T(1) - square * (T(1.0 / 3) - T(0.2) * square));
    const Pack<T> before = count == kLanes<T> ? load(left + i) : load_part(left + i, count, T(0));
    store_first<T>(p + i, absolute<T>(u) < T(1e9) ? before - turn : before, count);
  });
}

// Normal, with d for the shift and u of the threshold before it: F(u) - F(u - d) is f(u) times the integral of
// e^(us - s²/2) over [0, d], Σ He_j(u) d^(j+1)/(j+1)!. Float is 0 from u = -13.2 on, so that |ud| < 0.6, and what
// eight terms leave is below 0.6^9/9! = 3e-8 of p.
template <class T> class NormalShift {
 public:
  explicit NormalShift(double shift) : shift_(T(shift * Normal<T>::kUnit)) {
    double before[kTerms] = {}, hermite[kTerms] = {1}, series[kTerms] = {}, power = shift;
    for (std::size_t j = 0; j < kTerms; power *= shift / double(++j + 1)) {
      double next[kTerms] = {};
      for (std::size_t i = 0; i <= j; ++i) {
        series[i] += power * hermite[i];
        if (i + 1 < kTerms) next[i + 1] += hermite[i];
        next[i] -= double(j) * before[i];
      }
      std::copy_n(hermite, kTerms, before), std::copy_n(next, kTerms, hermite);
    }
    double unit = 1;
    for (std::size_t i = 0; i < kTerms; ++i, unit *= 1 / double(Normal<T>::kUnit)) {
      coefficients_[kTerms - 1 - i] = T(series[i] * unit);
    }
  }

  template <class S> void shift(const T* x, Left<T> left, S* p, std::size_t n, Threshold<T> b, T scale) const {
    for_packs(x, n, [&](Pack<T> scores, std::size_t i, std::size_t count) {
      const bool whole = count == kLanes<T>;
      const Pack<T> v = ((scores - b.centre) - b.rest) * scale + shift_;
      const Pack<T> f = whole ? load(left.pdf + i) : load_part(left.pdf + i, count, T(0));
      const Pack<T> before = whole ? load(left.p + i) : load_part(left.p + i, count, T(0));
      const Pack<T> after = larger<T>(before - f * horner<T>(coefficients_, v), Pack<T>{});
      store_first<T>(p + i, f > T(0) ? after : before, count);
    });
  }

 private:
  static constexpr std::size_t kTerms = 8;
  T coefficients_[kTerms], shift_;
};

// From what a sweep has left to p at b, which is `shift` τ above the threshold of that sweep.
template <class F, class T, class S>
void shift_topk(const T* x, Left<T> left, S* p, std::size_t n, Threshold<T> b, T scale, double shift) {
  if constexpr (F::kShift == Shift::odds) shift_odds(left.p, p, n, shift);
  if constexpr (F::kShift == Shift::angle) shift_angle(x, left.p, p, n, b, scale, T(shift));
  if constexpr (F::kShift == Shift::taylor) NormalShift<T>(shift).shift(x, left, p, n, b, scale);
}

}  // namespace softorder
