// One row of a transport problem: its gains, and the thresholds that are open.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>

#include "scratch.hpp"
#include "simd/pack.hpp"

namespace softorder::transport {

constexpr double kCertain = 1e100;  // a step where a score cannot but go on; its negative where it must stay
constexpr std::size_t kScores = kLanes<double>;
constexpr double kInfinity = std::numeric_limits<double>::infinity();

inline std::size_t in_packs(std::size_t count) { return (count + kScores - 1) / kScores * kScores; }

// 1/ε, always finite. It may be denormal, which long double knows even where double does not.
inline double scale_of(double temperature) { return std::min(double(1.0L / temperature), 1e300); }

// The steps of a pack of scores at a threshold, before what was found is taken off.
[[gnu::always_inline]] inline Pack<double> steps_at(Pack<double> gains, double centre, double scale) {
  const Pack<double> steps = (gains - centre) * scale, most = Pack<double>{} + kCertain;
  return gains < kInfinity ? smaller<double>(larger<double>(steps, -most), most) : most;
}

// The thresholds between which scores are to be divided: everything passes those before them, and nothing those behind.
struct Open {
  std::size_t first, count;

  Open(const double* levels, std::size_t thresholds, double total) {
    std::size_t last = 0;
    while (last < thresholds && levels[last] < total) ++last;
    for (first = 0; first < last && levels[first] <= 0; ++first) {
    }
    count = last - first;
  }
};

// What lies far behind the last threshold is certainly at the last anchor, and so is what takes no part: only
// the others are here, in ascending order as far as thresholds look at their order, filled up with +inf to whole packs.
struct Row {
  explicit Row(std::size_t n) : gains(in_packs(n)) {}

  Scratch<double> gains;
  std::size_t count = 0, width = 0;  // of gains, without and with what fills up
  bool sorted = true;                // not only the first gains
  std::size_t first = 0, open = 0;   // thresholds that are open
  double scale = 1, beyond = 0;      // 1/ε, and how many scores are at the last anchor for certain

  double* begin() const { return gains.get(); }

  // False where there is NaN, so that there is nothing to solve.
  bool read(const double* from, std::size_t n, const double* levels, std::size_t thresholds, double total,
            double temperature) {
    scale = scale_of(temperature);
    if (!(scale >= 0)) return false;
    const Open opened(levels, thresholds, total);
    first = opened.first, open = opened.count;
    count = 0;
    for (std::size_t i = 0; i < n; ++i) {
      if (from[i] != from[i]) return false;
      if (from[i] < kInfinity) begin()[count++] = from[i];
    }
    order(levels[thresholds - 1], n);
    beyond = total - double(count);
    width = in_packs(count);
    std::fill(begin() + count, begin() + width, kInfinity);
    return true;
  }

  // Midway between the last score below and the first above.
  double middle(double level) const {
    const auto at = [&](double place) {
      return place < double(count) ? begin()[static_cast<std::size_t>(std::max(place, 0.0))] : kInfinity;
    };
    const double found = 0.5 * at(level - 1) + 0.5 * at(level);
    return std::isfinite(found) ? found : 0;
  }

 private:
  // Σ σ((t - gains)/ε) <= level bounds the last threshold t, as more anchors only add to what is below it: t exceeds
  // the next score by no more than ε log n.
  void order(double last_level, std::size_t n) {
    double* const from = begin();
    const double last = std::max(last_level, 0.0);
    std::size_t ordered = count;
    sorted = true;
    if (last < double(count)) {
      const auto place = static_cast<std::size_t>(last);
      std::nth_element(from, from + place, from + count);
      const double next = from[place], reach = 45 + 3 * std::log(double(n));
      count = std::size_t(std::partition(from + place, from + count,
                                         [&](double gain) { return (gain - next) * scale <= reach; }) - from);
      count = std::max(count, place + 1);
      ordered = count;
      sorted = place + 1 > count / 4;
      if (!sorted) ordered = place + 1;
    }
    std::sort(from, from + ordered);
  }
};

}  // namespace softorder::transport
