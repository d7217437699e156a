// Solves Σ_i F((t - x_i)/τ) = level for ascending levels, with the Laplace F, in linear time.
//
// Between two neighbours x_{i-1} <= t <= x_i the sum is i - L e^-s/2 + R e^-s'/2 with s = (t - x_{i-1})/τ
// and s' = (x_i - t)/τ: L and R sum what is on either side, seen from its nearest source. That is a
// quadratic in e^s. It is solved for the distance from the source that t is drawn to, so that a gap
// may be so wide that e^-gap underflows; exactly on the plateau, where nothing draws, the logarithms
// balance.
#pragma once

#include <cmath>
#include <memory>

#include "fsum/invert_row.hpp"
#include "team.hpp"

namespace softorder {

template <class T> class LaplaceInverse {
 public:
  // `right` has room for m numbers.
  LaplaceInverse(const InvertRow<T>& row, double* right) : row_(row), right_(right) {}

  void run(Team team) {
    const auto [low, high] = row_.rooted();
    if (low == high) return;
    double left[Team::kMost];
    find_sums(team, left);
    std::size_t first[Team::kMost + 1];
    for (int member = 0; member < team.size; ++member) {
      const std::size_t begin = team.bound(row_.m, member);
      first[member] = begin == 0 ? low : first_level(low, high, at_source(begin - 1, left[member]));
    }
    first[team.size] = high;
    team.split(row_.m, [&](std::size_t begin, std::size_t end, int member) {
      part(begin, end, first[member], first[member + 1], left[member]);
    });
  }

 private:
  static constexpr std::size_t kBlock = 512;
  static constexpr std::size_t kRoom = kBlock + kLanes<double>;

  double gap(std::size_t i) const { return double(row_.sources[i]) - double(row_.sources[i - 1]); }

  // Σ F at the i-th source, from L there; R without the source itself.
  double at_source(std::size_t i, double left) const {
    return double(i + 1) - 0.5 * left + 0.5 * (right_[i] - 1);
  }
  std::size_t first_level(std::size_t low, std::size_t high, double value) const {
    return low + partition_point(high - low, [&](std::size_t j) { return row_.levels[low + j] < value; });
  }

  // e^-(x_{i+1} - x_i)/τ for i in [from, from + count), 0 behind the last source.
  void gap_decays(std::size_t from, std::size_t count, double* decay) const {
    const std::size_t inner = std::min(count, row_.m - 1 - from);
    for (std::size_t i = 0; i < inner; ++i) decay[i] = gap(from + i + 1);
    if (inner < count) decay[inner] = 0;
    decays(decay, count, row_.temperature);
    if (inner < count) decay[inner] = 0;
  }

  // Fills right_ with R from every source on, and left[member] with L at the source before a part.
  void find_sums(Team team, double* left) {
    double own_left[Team::kMost] = {}, own_right[Team::kMost] = {}, right[Team::kMost];
    if (team.size > 1) {
      team.split(row_.m, [&](std::size_t begin, std::size_t end, int member) {
        own_left[member] = seen_from(begin, end, end - 1);
        own_right[member] = seen_from(begin, end, begin);
      });
    }
    left[0] = right[team.size - 1] = 0;
    for (int member = 1; member < team.size; ++member) {
      const std::size_t begin = team.bound(row_.m, member - 1), end = team.bound(row_.m, member);
      left[member] = begin == end ? left[member - 1] : own_left[member - 1];
      if (begin > 0 && begin < end) left[member] += left[member - 1] * decay_between(begin - 1, end - 1);
    }
    for (int member = team.size - 1; member > 0; --member) {
      const std::size_t begin = team.bound(row_.m, member), end = team.bound(row_.m, member + 1);
      right[member - 1] = begin == end ? right[member] : own_right[member];
      if (end < row_.m && begin < end) right[member - 1] += right[member] * decay_between(begin, end);
    }
    team.split(row_.m, [&](std::size_t begin, std::size_t end, int member) { scan_right(begin, end, right[member]); });
  }
  double decay_between(std::size_t i, std::size_t j) const {
    return std::exp(-(double(row_.sources[j]) - double(row_.sources[i])) / row_.temperature);
  }

  // Σ e^-|x_i - x_at|/τ over a part.
  double seen_from(std::size_t begin, std::size_t end, std::size_t at) const {
    if (begin == end) return 0;
    double decay[kRoom], total = 0;
    const double place = double(row_.sources[at]);
    for (; begin < end; begin += kBlock) {
      const std::size_t count = std::min(kBlock, end - begin);
      for (std::size_t i = 0; i < count; ++i) decay[i] = std::fabs(place - double(row_.sources[begin + i]));
      decays(decay, count, row_.temperature);
      for (std::size_t i = 0; i < count; ++i) total += decay[i];
    }
    return total;
  }

  // Between blocks the sums are found directly: a chain of a million factors near 1 would add up the
  // rounding of every one of them.
  void scan_right(std::size_t begin, std::size_t end, double sum) {
    double decay[kRoom];
    while (end > begin) {
      const std::size_t count = std::min(kBlock, end - begin), from = end - count;
      gap_decays(from, count, decay);
      double chain = sum;
      for (std::size_t i = count; i-- > 0;) right_[from + i] = chain = chain * decay[i] + 1;
      sum = seen_from(from, end, from) + (end == row_.m ? 0 : sum * decay_between(from, end));
      end = from;
    }
  }

  // What a level needs to know of its gap.
  struct Gap {
    double level, left, right, width, decay;
    std::size_t above;  // index of the source above it
  };

  // The levels [level, last) between the source before `begin` and the last one of the part.
  void part(std::size_t begin, std::size_t end, std::size_t level, std::size_t last, double left) const {
    double decay[kRoom];
    const bool to_the_end = end == row_.m;
    for (std::size_t from = begin; from < end; from += kBlock) {
      const std::size_t count = std::min(kBlock, end - from);
      // of the gap below each source
      for (std::size_t i = 0; i < count; ++i) decay[i] = from + i == 0 ? 0 : gap(from + i);
      decays(decay, count, row_.temperature);
      const std::size_t last_source = from + count - 1;
      const double behind = seen_from(from, from + count, last_source) +
                            (from == 0 ? 0 : left * decay_between(from - 1, last_source));
      for (std::size_t i = 0; i < count; ++i) {
        const std::size_t above = from + i;
        const double before = left;
        left = left * decay[i] + 1;
        const double most = at_source(above, left);
        const std::size_t start = level;
        while (level < last && row_.levels[level] < most) ++level;
        for (std::size_t j = start; j < level; ++j) {
          solve(j, {row_.levels[j], before, right_[above], above == 0 ? 0 : gap(above), decay[i], above});
        }
      }
      left = behind;
    }
    for (; level < last; ++level) {
      if (to_the_end) {
        solve_beyond(level, left);
      } else {  // a rounding put the level behind the last source
        row_.root(level, double(row_.sources[end - 1]), 0);
      }
    }
  }

  void solve(std::size_t j, const Gap& g) const {
    const double tau = row_.temperature, above = double(row_.sources[g.above]);
    if (g.above == 0) return row_.root(j, above, -tau * std::log(std::max(g.right / (2 * g.level), 1.0)));
    const double excess = g.level - double(g.above), below = double(row_.sources[g.above - 1]);
    const double both = std::sqrt(excess * excess + g.left * g.right * g.decay);
    double from_below, from_above;
    if (excess > 0) {
      from_above = std::clamp(tau * std::log(g.right / (both + excess)), 0.0, g.width);
      from_below = g.width - from_above;
    } else {
      from_below = excess < 0 ? tau * std::log(g.left / (both - excess))
                              : 0.5 * (g.width + tau * std::log(g.left / g.right));
      from_below = std::clamp(from_below, 0.0, g.width);
      from_above = g.width - from_below;
    }
    from_above < from_below ? row_.root(j, above, -from_above) : row_.root(j, below, from_below);
  }

  void solve_beyond(std::size_t j, double left) const {
    const double missing = double(row_.m) - row_.levels[j];
    const double s = std::log(std::max(left / (2 * missing), 1.0));
    row_.root(j, double(row_.sources[row_.m - 1]), row_.temperature * s);
  }

  const InvertRow<T>& row_;
  double* right_;
};

}  // namespace softorder
