// What a row looks like, before its threshold is looked for.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>

#include "threshold/sweep.hpp"

namespace softorder {

constexpr std::size_t kSample = 16384;  // how many scores the moments come from, at most

struct Moments {
  double mean, deviation, count;  // count: how many scores they come from
};

// The median and the quartiles of a small sample, which a few wild scores do not move.
template <class T> Moments robust_moments(const T* x, std::size_t n) {
  constexpr std::size_t most = 64;
  T sample[most];
  std::size_t count = 0;
  const std::size_t stride = (n + most - 1) / most;
  for (std::size_t i = 0; i < n; i += stride) {
    if (std::isfinite(x[i])) sample[count++] = x[i];
  }
  if (count == 0) return {0, 1, 1};
  std::sort(sample, sample + count);
  const double quartiles = double(sample[3 * count / 4]) - double(sample[count / 4]);
  const double range = std::abs(double(sample[count - 1]) - double(sample[0]));  // of 0 and -0 it may be -0
  return {sample[count / 2], quartiles > 0 ? quartiles / 1.349 : 0.3 * range, double(count)};
}

// Of all scores, or of a sample.
template <class T> class RowSums {
 public:
  RowSums(const T* x, std::size_t n) : x_(x), n_(n), origin_(x[0]) {
    sum([x](std::size_t i, std::size_t count) { return load_first<T>(x + i, count, kNothing); });
  }

  // Of a row in another format, no longer than a sample, which is copied on the way.
  template <class S> RowSums(const S* from, std::size_t n, T* to) : x_(to), n_(n) {
    read_all(from, 1, &origin_);
    sum([from, to](std::size_t i, std::size_t count) {
      const Pack<T> scores = load_first<T>(from + i, count, kNothing);
      return store_part(to + i, scores, count), scores;
    });
  }

  double count() const { return count_; }
  bool finite() const { return std::isfinite(mean_); }

  Moments moments() const {
    constexpr double infinity = std::numeric_limits<double>::infinity();
    // infinities, squares that overflow, or one score that outweighs all others
    if (!(square_ < infinity) || (n_ > 16 && peak_ > 0.9 * square_)) return robust_moments(x_, n_);
    return {double(origin_) + mean_, std::sqrt(std::max(0.0, square_ / count_ - mean_ * mean_)), count_};
  }

 private:
  static constexpr T kNothing = -std::numeric_limits<T>::infinity();

  // `scores(i, count)`: those from i on, and -inf in the lanes behind them.
  template <class Scores> [[gnu::always_inline]] void sum(Scores scores) {
    constexpr std::size_t chunk = 64, packs = chunk / kLanes<T>, ways = std::min<std::size_t>(packs, 4);
    const std::size_t stride = n_ <= kSample ? chunk : n_ / (kSample / chunk);
    Pack<T> sums[ways] = {}, squares[ways] = {}, peak{};
    const T origin = origin_;
    for (std::size_t begin = 0; begin + chunk <= n_; begin += stride, count_ += chunk) {
#pragma GCC unroll 16
      for (std::size_t i = 0; i < packs; ++i) {
        const Pack<T> z = scores(begin + i * kLanes<T>, kLanes<T>) - origin, square = z * z;
        sums[i % ways] += z, squares[i % ways] += square, peak = larger<T>(peak, square);
      }
    }
    for (std::size_t at = n_ <= kSample ? n_ / chunk * chunk : n_; at < n_; at += kLanes<T>) {
      const std::size_t lanes = std::min(kLanes<T>, n_ - at);
      const Pack<T> some = scores(at, lanes);
      const Pack<T> z = (lanes == kLanes<T> || some != kNothing ? some : Pack<T>{} + origin) - origin;  // NaN stays
      sums[0] += z, squares[0] += z * z, peak = larger<T>(peak, z * z), count_ += double(lanes);
    }
    for (std::size_t i = 1; i < ways; ++i) sums[0] += sums[i], squares[0] += squares[i];
    mean_ = sum_lanes(sums[0]) / count_, square_ = sum_lanes(squares[0]), peak_ = largest_lane(peak);
  }

  const T* x_;
  std::size_t n_;
  T origin_;
  double count_ = 0, mean_, square_, peak_;
};

// How many scores can be chosen, how many are at +inf, and whether any is NaN.
struct Census {
  double valid, certain = 0;
  bool nan = false;
};

template <class T> Census count_kinds(const T* x, std::size_t n) {
  constexpr T infinity = std::numeric_limits<T>::infinity();
  double out = 0, certain = 0, nan = 0;
  for (std::size_t begin = 0; begin < n; begin += kBlock) {
    const std::size_t count = std::min(kBlock, n - begin);
    Mask<T> outs{}, certains{}, nans{};  // a mask is 0 or -1
    for_packs(x + begin, count, [&](Pack<T> scores, std::size_t, std::size_t) {
      outs += scores == -infinity, certains += scores == infinity, nans += scores != scores;
    });
    const std::size_t padding = (kLanes<T> - count % kLanes<T>) % kLanes<T>;
    out -= sum_lanes(outs) + double(padding), certain -= sum_lanes(certains), nan -= sum_lanes(nans);
  }
  return {double(n) - out, certain, nan > 0};
}

}  // namespace softorder
