// Laplace's threshold of sorted rows, one per lane, in closed form.
//
// With r_i = e^-(x_i - x_i+1)/τ for scores in descending order, what the scores at and below x_i add up
// to there is lower_i = 1 + r_i lower_i+1, and likewise upper_i = 1 + r_i-1 upper_i-1 at and above it:
// Σ p = i + 1/2 + (lower_i - upper_i)/2 for b = x_i. That tells which two scores b is between, and there
//     extra + (lower e^-(b - low)/τ - upper e^-(high - b)/τ)/2 = 0,    extra = scores above - k,
// is a quadratic equation in e^(b/τ). Its root is measured from the end that no power underflows from.
#pragma once

#include <algorithm>

#include "simd/logarithm.hpp"
#include "threshold/tile_step.hpp"

namespace softorder {

template <class T> struct SortedLaplace {
  const Pack<T>* scores;  // n <= kMost of them, the largest first; -inf, which takes no part, last
  std::size_t n;
  Pack<T> scale, tau, whole, part;  // k = whole + part

  static constexpr std::size_t kMost = 64;

  // b = centre + rest. `gap`: exactly k scores are above b, and nothing of the others is left there.
  struct Root {
    Pack<T> centre, rest;
    Mask<T> gap;
  };

  // Without `some`, there is no score of -inf.
  Root solve(bool some) const { return some ? solve<true>() : solve<false>(); }

 private:
  static constexpr T kInfinite = std::numeric_limits<T>::infinity();

  // Where b is: how many scores are above it, those next to it, and what is added up on both sides.
  struct Place {
    Pack<T> above, high, low, upper, lower;
  };

  template <bool kSome> Root solve() const {
    const Place at = find<kSome>();
    const Pack<T> extra = (at.above - whole) - part, gap = at.high - at.low, across = exp2_minus<T>(gap, scale);
    const Pack<T> size = absolute<T>(extra) + lane_roots<T>(extra * extra + at.lower * at.upper * across);
    const Mask<T> even = extra == T(0), from_high = extra > T(0);
    const Pack<T> move = tau * log<T>(even ? at.lower / at.upper : (from_high ? at.upper : at.lower) / size);
    const Pack<T> rest = even ? T(0.5) * (gap + move) : from_high ? -move : move;
    return {from_high ? at.high : at.low, rest, even & (across == T(0))};
  }

  // Both recurrences at once, from both ends: each of their terms waits for the one before it.
  template <bool kSome> Place find() const {
    const Pack<T> none{}, one = none + T(1);
    Pack<T> lower[kMost + 1], upper[kMost + 1], fall[kMost];  // upper[i + 1] is upper_i
    const auto fall_behind = [&](std::size_t i) {
      Pack<T> gap = scores[i] - scores[i + 1];
      if constexpr (kSome) gap = larger<T>(gap, none);  // NaN between two of -inf; above them nothing is left of these
      return exp2_minus<T>(gap, scale);
    };
    Pack<T> down = one, up = one;  // the last ones, in registers
    upper[0] = none, upper[1] = down, lower[n] = none, lower[n - 1] = up;
    const auto extend = [&](std::size_t i) {  // to upper_i and, as far from the other end, to lower
      const std::size_t j = n - 1 - i;
      down = T(1) + fall[i - 1] * down, up = T(1) + fall[j] * up;
      upper[i + 1] = down, lower[j] = up;
    };
    Mask<T> not_below{};
    const Pack<T> twice = T(2) * part - T(1);
    const auto test = [&](std::size_t i, Pack<T> missing) {  // twice as many scores as k wants behind x_i
      not_below += ~(lower[i] - upper[i + 1] < missing + twice);  // b is at x_i, or above it
    };
    std::size_t i = 1;
    for (; 2 * i < n; ++i) {
      fall[i - 1] = fall_behind(i - 1), fall[n - 1 - i] = fall_behind(n - 1 - i);
      extend(i);
    }
    if (n % 2 == 0) fall[i - 1] = fall_behind(i - 1);
    else test(i - 1, T(2) * (whole - T(i - 1)));  // where they meet
    Pack<T> after = T(2) * (whole - T(i)), before = T(2) * (whole - T(n - 1 - i));
    for (; i < n; ++i, after -= T(2), before += T(2)) {
      extend(i);
      test(i, after), test(n - 1 - i, before);
    }
    T above[kLanes<T>], high[kLanes<T>], low[kLanes<T>], upper_there[kLanes<T>], lower_there[kLanes<T>];
    for (std::size_t lane = 0; lane < kLanes<T>; ++lane) {
      const std::size_t place = n - static_cast<std::size_t>(-not_below[lane]);
      above[lane] = T(place), upper_there[lane] = upper[place][lane];
      const T last = scores[place > 0 ? place - 1 : 0][lane], next = scores[std::min(place, n - 1)][lane];
      high[lane] = last, low[lane] = next == -kInfinite ? last : next;
      lower_there[lane] = next == -kInfinite ? T(0) : lower[place][lane];
    }
    return {load(above), load(high), load(low), load(upper_there), load(lower_there)};
  }
};

}  // namespace softorder
