// Where the root is, judged from the sums of one sweep; and the sums after a step.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "threshold/sweep.hpp"

namespace softorder {

// How far to move b, in units of τ, to bring the residual to 0.
//
// Far from the root the tail sums below and above b are modelled, each on its own: as exponentials
// in b, which is exact for Laplace until b passes a score (it is the closed form of the LapSum
// paper) and right in logarithmic scale inside any gap; as hyperbolas for Cauchy, whose far tails
// they are. Near the root, and among many scores, Halley's step is used instead.
template <class F> double far_step(const Sums& s, double k) {
  const double extra = s.above - k, residual = s.residual(k);
  const double lower_rate = s.lower > 0 ? s.lower_pdf / s.lower : 0;
  const double upper_rate = s.upper > 0 ? s.upper_pdf / s.upper : 0;
  if constexpr (F::kTail == Tail::hyperbola) {
    const double square = extra * lower_rate * upper_rate;
    const double slope = s.lower * upper_rate + s.upper * lower_rate + extra * (upper_rate - lower_rate);
    return 2 * residual / (slope + std::sqrt(std::max(0.0, slope * slope + 4 * square * residual)));
  }
  if (extra == 0) return (std::log(s.lower) - std::log(s.upper)) / (lower_rate + upper_rate);
  const double rate = s.pdf() / (s.lower + s.upper);
  const double root = std::sqrt(extra * extra + 4 * s.lower * s.upper);
  return std::log(extra > 0 ? (extra + root) / (2 * s.upper) : 2 * s.lower / (root - extra)) / rate;
}

// The root of the Taylor polynomial of degree 4.
inline double taylor_step(const Sums& s, double residual, double start) {
  const double first = s.pdf(), second = s.curve / 2, third = s.third / 6, fourth = s.fourth / 24;
  double d = start;
  for (int i = 0; i < 2; ++i) {
    const double value = residual + d * (-first + d * (second + d * (-third + d * fourth)));
    const double slope = -first + d * (2 * second + d * (-3 * third + d * 4 * fourth));
    d -= value / slope;
  }
  return d;
}

template <class F> double step(const Sums& s, double k) {
  const double residual = s.residual(k), pdf = s.pdf();
  if constexpr (F::kTail == Tail::none) return residual / pdf;  // piecewise linear
  const double newton = residual / pdf, bend = newton * s.curve / pdf;
  const double halley = newton / (1 - 0.5 * bend);
  // among many scores the sum is nearly linear, over more than one τ
  const bool crowded = F::kTail != Tail::hyperbola && s.lower + s.upper > 2;
  if (!(std::abs(bend) < 0.5 && (std::abs(halley) < 0.5 || crowded))) return far_step<F>(s, k);
  if constexpr (F::kExponential) return crowded ? halley : far_step<F>(s, k);
  return F::kOrder == 5 && std::abs(halley) < 0.5 ? taylor_step(s, residual, halley) : halley;
}

// Whether a move (in units of τ) is lost in the rounding of p near 1, and the residual in that of Σ p.
template <class T> bool unseen(const Sums& s, double k, double move) {
  constexpr double epsilon = std::numeric_limits<T>::epsilon();
  return s.lower == 0 && std::abs(move) <= epsilon && std::abs(s.residual(k)) <= 4 * epsilon * k;
}

// Whether the sums already agree with k to the last digits, or `move` (in units of τ) is so short
// that what remains after it does not matter. The second would not do for a piecewise linear sum.
template <class F, class T> bool settled(const Sums& s, double k, double move, std::size_t n) {
  if constexpr (F::kTail == Tail::none) {
    const double rounding = (16 + 0.5 * std::sqrt(double(n))) * std::numeric_limits<T>::epsilon();
    const double residual = std::abs(s.residual(k));
    return unseen<T>(s, k, move) || residual <= std::min(1e-6, rounding) * (s.lower + s.upper_pdf);
  }
  const double rate = s.pdf() / (s.lower + s.upper);  // far from 1 in the tails of Cauchy and normal
  if constexpr (F::kTail != Tail::hyperbola) return std::abs(move) * std::max(1.0, rate) <= F::kShort;
  const double rounding = 4 * std::numeric_limits<double>::epsilon() * (s.lower + s.upper);
  if (std::abs(move) <= F::kShort || std::abs(s.residual(k)) <= rounding) return true;
  // a long step is short only if every score is so far away that the hyperbolas agree with it
  const double limit = is_single<T> ? 2e-3 : 1e-5;
  return std::abs(move) * rate <= limit && std::abs(move - far_step<F>(s, k)) <= 0.02 * limit;
}

// Exactly k scores above b, none of them near, and tails too small to be told from 0: any b in the
// gap fits the sum.
template <class F, class T> bool in_gap(const Sums& s, double k) {
  // for a uniform density: nobody is in the linear part, or only by a rounding error
  if (F::kTail == Tail::none) return s.above == k && s.lower + s.upper < (is_single<T> ? 1e-12 : 1e-15);
  return s.above == k && (s.lower_pdf == 0 || s.upper_pdf == 0) && s.lower + s.upper < 0.25;
}

}  // namespace softorder
