// Soft ranks, the soft sort and thresholds of one sorted row, with the uniform density, forward and backward.
//
// F-sums of it are linear in what lies in a window, and count what is before the window. All windows of a row
// come from one walk along it; what they hold is a difference of two prefix sums. These are unevaluated sums of
// two doubles, so that a narrow window behind a million scores loses nothing; and scores are counted from
// the first one of their cluster, which no window leaves, so that far ones do not matter.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "fsum/places.hpp"
#include "order/roots.hpp"
#include "scratch.hpp"
#include "team.hpp"

namespace softorder {

// Σ_{i < k} y_i for k = 0..m.
class PairSums {
 public:
  explicit PairSums(std::size_t m) : high_(m + 1), low_(m + 1) {}

  template <class Value> void fill(std::size_t m, Value value) {
    double *const highs = high_.get(), *const lows = low_.get();
    double high = 0, low = 0;
    for (std::size_t i = 0; i < m; ++i) {
      highs[i] = high, lows[i] = low;
      const double y = value(i), sum = high + y, added = sum - high;
      low += (high - (sum - added)) + (y - added);
      high = sum;
    }
    highs[m] = high, lows[m] = low;
  }

  // Σ y over [begin, end).
  double over(std::size_t begin, std::size_t end) const {
    return (high_.get()[end] - high_.get()[begin]) + (low_.get()[end] - low_.get()[begin]);
  }

  // Σ (y - y_i) over [begin, end) for any y: from exact differences and products, since these may cancel.
  double lead(double y, std::int32_t begin, std::int32_t end) const {
    const double from = high_.get()[begin], to = high_.get()[end], count = double(end - begin);
    const double sum = to - from, back = sum - to;
    const double lost = (to - (sum - back)) - (from + back);
    const double product = count * y, rounded = std::fma(count, y, -product);
    return (product - sum) + ((rounded - lost) - (low_.get()[end] - low_.get()[begin]));
  }

 private:
  Scratch<double> high_, low_;
};

template <class T> class UniformOrder {
 public:
  // x: m finite scores, ascending.
  UniformOrder(const T* x, std::size_t m, double temperature, Team team)
      : x_(x), m_(m), tau_(temperature), team_(team), offset_(m), begin_(m), end_(m) {}

  // out[order[i]] = 1/2 + Σ_j F((x_i - x_j)/τ); descending, that is subtracted from present + 1.
  void ranks(const std::int32_t* order, T* out, bool descending, std::size_t present) {
    find_windows(0.5 * tau_);
    PairSums sums(m_);
    sum_offsets(sums);
    const double inverse = 1 / tau_, offset = descending ? double(present) + 0.5 : 0.5, sign = descending ? -1 : 1;
    each([&](std::size_t i) {
      const double inside = 0.5 * double(end(i) - begin(i)) + lead(sums, i, begin(i), end(i)) * inverse;
      out[order[i]] = T(offset + sign * (double(begin(i)) + inside));
    });
  }

  // out[order[i]] = Σ_j (g_i - g_j) f((x_i - x_j)/τ)/τ, with g in the order of the scores.
  void ranks_vjp(const std::int32_t* order, const T* upstream, T* out, bool descending) {
    find_windows(0.5 * tau_);
    PairSums sums(m_);
    sums.fill(m_, [&](std::size_t i) { return double(upstream[order[i]]); });
    const double scale = (descending ? -1 : 1) / tau_;
    each([&](std::size_t i) {
      const double g = double(upstream[order[i]]);
      out[order[i]] = T(scale * sums.lead(g, begin(i), end(i)));
    });
  }

  // -Σ_i g_i Σ_j f(u) u/τ with u = (x_i - x_j)/τ: the gradient of τ.
  double ranks_by_temperature(const std::int32_t* order, const T* upstream, bool descending) {
    find_windows(0.5 * tau_);
    PairSums sums(m_);
    sum_offsets(sums);
    double total = 0;
    for (std::size_t i = 0; i < m_; ++i) total += double(upstream[order[i]]) * lead(sums, i, begin(i), end(i));
    return (descending ? 1 : -1) * total / (tau_ * tau_);
  }

  // The places where Σ_i F((t - x_i)/τ) takes the levels: root j is rest[j] from the source segment[j], the first
  // one in its window, and slope[j] tells how many are. On a plateau, where none is, the root is in the middle,
  // and the source is the last one before.
  void roots(Levels levels, const Roots<T>& out) {
    Scratch<std::int32_t> ends(levels.count);
    find_windows(tau_);
    PairSums sums(m_);
    sum_offsets(sums);
    find_root_windows(levels, sums, out.segment, ends.get());
    team_.split(levels.count, [&](std::size_t first, std::size_t last, int) {
      for (std::size_t j = first; j < last; ++j) solve(levels, j, std::size_t(ends.get()[j]), sums, out);
    });
    for (std::size_t j = 0; j < levels.count && out.t; ++j) {
      out.t[j] = T(x(source_of(out, j)) + double(out.rest[j]));
    }
    if (out.t) ascend(out.t, 0, levels.count);
  }

  // The source from which rest[j] leads to root j.
  static std::size_t source_of(const Roots<T>& at, std::size_t j) { return std::size_t(at.segment[j]); }

  // out[order[i]] = Σ_j g_j f((t_j - x_i)/τ)/slope_j, with g in the order of the levels.
  void roots_vjp(Levels levels, const std::int32_t* order, const T* upstream, const Roots<T>& at, T* out) {
    PairSums shares(levels.count);
    shares.fill(levels.count,
                [&](std::size_t j) { return at.slope[j] > 0 ? double(upstream[j]) / double(at.slope[j]) : 0.0; });
    std::size_t first = 0, last = 0;  // the roots in whose windows the source is
    for (std::size_t i = 0; i < m_; ++i) {
      while (last < levels.count && window_begin(at, last) <= i) ++last;
      while (first < last && window_begin(at, first) + std::size_t(at.slope[first]) <= i) ++first;
      out[order[i]] = T(shares.over(first, last));
    }
  }

  // Σ_j g_j Σ_i f(u) u/slope_j with u = (t_j - x_i)/τ: the gradient of τ. The level tells what the u sum to.
  double roots_by_temperature(Levels levels, const T* upstream, const Roots<T>& at) {
    double total = 0;
    for (std::size_t j = 0; j < levels.count; ++j) {
      if (!(at.slope[j] > 0)) continue;
      const double level = levels.first() + double(j), inside = double(at.slope[j]);
      total += double(upstream[j]) * ((level - double(at.segment[j])) / inside - 0.5);
    }
    return total;
  }

 private:
  std::int32_t begin(std::size_t i) const { return begin_.get()[i]; }
  std::int32_t end(std::size_t i) const { return end_.get()[i]; }
  double x(std::size_t i) const { return double(x_[i]); }

  template <class Work> void each(Work work) const {
    team_.split(m_, [&](std::size_t first, std::size_t last, int) {
#pragma omp simd
      for (std::size_t i = first; i < last; ++i) work(i);
    });
  }

  // [begin(i), end(i)): the sources nearer to source i than the distance. Whether the next step of a walk along
  // the row is one of i or of the begin is anybody's guess: there is no branch, and every part of the row is
  // walked in a few places at a time, which wait together. A window ends behind the last one that begins there or
  // before.
  void find_windows(double distance) {
    team_.split(m_, [&](std::size_t first, std::size_t last, int) {
      std::size_t at[kWalks], begin[kWalks], limit[kWalks], sure = m_;
      for (std::size_t k = 0; k < kWalks; ++k) {
        at[k] = first + (last - first) * k / kWalks, limit[k] = first + (last - first) * (k + 1) / kWalks;
        begin[k] = at[k] == limit[k] ? 0 : begin_of(at[k], distance);
        sure = std::min(sure, limit[k] - at[k]);
      }
      for (; sure > 0; sure = steps_left(at, limit)) {
        for (; sure > 0; --sure) {
          for (std::size_t k = 0; k < kWalks; ++k) step(distance, at[k], begin[k]);
        }
      }
      for (std::size_t k = 0; k < kWalks; ++k) {
        while (at[k] < limit[k]) step(distance, at[k], begin[k]);
      }
    });
    std::int32_t *const ends = end_.get(), *const begins = begin_.get();
    std::fill(ends, ends + m_, 0);
    for (std::size_t i = 0; i < m_; ++i) ends[begins[i]] = std::int32_t(i) + 1;
    for (std::size_t i = 1; i < m_; ++i) ends[i] = std::max(ends[i], ends[i - 1]);
  }

  static constexpr std::size_t kWalks = 4;
  // Where the window of source i begins.
  std::size_t begin_of(std::size_t i, double distance) const {
    return partition_point(i, [&](std::size_t k) { return x(i) - x(k) >= distance; });
  }
  void step(double distance, std::size_t& at, std::size_t& begin) const {
    const std::size_t passes = x(at) - x(begin) >= distance;
    begin_.get()[at] = std::int32_t(begin);
    begin += passes, at += 1 - passes;
  }
  // So many steps no walk can end.
  static std::size_t steps_left(const std::size_t* at, const std::size_t* limit) {
    std::size_t least = limit[0] - at[0];
    for (std::size_t k = 1; k < kWalks; ++k) least = std::min(least, limit[k] - at[k]);
    return least;
  }

  // Offsets from the first source of the cluster: windows end at gaps of τ.
  void sum_offsets(PairSums& sums) {
    double* const offsets = offset_.get();
    double first = m_ > 0 ? x(0) : 0, before = first;
    sums.fill(m_, [&](std::size_t i) {
      const double own = x(i);
      first = own - before >= tau_ ? own : first;
      before = own;
      return offsets[i] = own - first;
    });
  }

  // Σ (x_i - x_j) over a window [first, last) next to source i.
  double lead(const PairSums& sums, std::size_t i, std::int32_t first, std::int32_t last) const {
    return sums.lead(offset_.get()[i], first, last);
  }

  // Of every level: how many sources have left the window, with FSum(x + τ/2) <= level, and how many have
  // entered it, with FSum(x - τ/2) < level.
  void find_root_windows(Levels levels, const PairSums& sums, std::int32_t* left, std::int32_t* entered) const {
    Scratch<std::int32_t> leaves(m_), enters(m_);
    const double inverse = 1 / tau_;
    const auto level_at = [&](double place) {
      return std::int32_t(std::clamp(place, 0.0, double(levels.count)));
    };
    each([&](std::size_t i) {
      const double leaving = double(end(i)) + lead(sums, i, std::int32_t(i) + 1, end(i)) * inverse;
      const double entering = double(begin(i)) + lead(sums, i, begin(i), std::int32_t(i)) * inverse;
      leaves.get()[i] = level_at(std::ceil(leaving - levels.first()));
      enters.get()[i] = level_at(std::floor(entering - levels.first()) + 1);
    });
    count_from(leaves.get(), levels.count, left);
    count_from(enters.get(), levels.count, entered);
  }

  // out[j] = how many sources there are up to the last one whose level is not above j.
  void count_from(const std::int32_t* level, std::size_t count, std::int32_t* out) const {
    std::fill(out, out + count, 0);
    for (std::size_t i = 0; i < m_; ++i) {
      if (std::size_t(level[i]) < count) out[level[i]] = std::int32_t(i + 1);
    }
    for (std::size_t j = 1; j < count; ++j) out[j] = std::max(out[j], out[j - 1]);
  }

  // With the sources [a, b) in the window FSum(t) is a + Σ ((t - x_i)/τ + 1/2): linear in t.
  void solve(Levels levels, std::size_t j, std::size_t b, const PairSums& sums, const Roots<T>& out) const {
    const std::size_t a = std::size_t(out.segment[j]);
    if (b > a) {
      const double inside = double(b - a), level = levels.first() + double(j);
      const double along = tau_ * ((level - double(a)) / inside - 0.5);
      out.slope[j] = T(inside);
      out.rest[j] = T(along - lead(sums, a, std::int32_t(a), std::int32_t(b)) / inside);
      return;
    }
    const std::size_t before = a == 0 ? 0 : a - 1;
    out.segment[j] = std::int32_t(before);
    out.slope[j] = 0;
    out.rest[j] = T(a == 0 ? -0.5 * tau_ : a == m_ ? 0.5 * tau_ : 0.5 * (x(a) - x(before)));
  }

  // The first source that is not before the window of root j.
  static std::size_t window_begin(const Roots<T>& at, std::size_t j) {
    return std::size_t(at.segment[j]) + (at.slope[j] > 0 ? 0 : 1);
  }

  const T* x_;
  std::size_t m_;
  double tau_;
  Team team_;
  Scratch<double> offset_;
  Scratch<std::int32_t> begin_, end_;
};

}  // namespace softorder
