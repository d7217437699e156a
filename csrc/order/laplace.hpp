// Soft ranks and the soft sort of one sorted row, with the Laplace density, forward and backward.
//
// All four are made of two sums that run along the row, in a = e^-gap/τ of neighbours:
// left_i = left_{i-1} a_i + w_i from the left and the same from the right. The row is cut into
// blocks that fit into a cache; a first pass gives every block the sums that it starts with, so that
// blocks are independent. Both sums of a block run in one loop: each waits for its own last result,
// and together they wait once.
#pragma once

#include <cmath>
#include <cstdint>
#include <numeric>

#include "simd/logarithm.hpp"
#include "fsum/places.hpp"
#include "scratch.hpp"
#include "team.hpp"

namespace softorder {

template <class T> class LaplaceOrder {
 public:
  // x: m finite scores, ascending. x[m] is not read.
  LaplaceOrder(const T* x, std::size_t m, double temperature, Team team)
      : x_(x), m_(m), tau_(temperature), team_(team) {}

  // out[order[i]] = i + 1 + (right_i - left_i)/2, with the source itself in both; descending, that
  // is subtracted from present + 1.
  void ranks(const std::int32_t* order, T* out, bool descending, std::size_t present) {
    const Vector<Carry> carry = carries([&](Block block) {
      return sums_at_ends(block, [](std::size_t) { return 1.0; });
    });
    each_block([&](Block block, double* a, double* left, double* right) {
      decays_of(block, a);
      scan(block, a, carry[block.number], left, right, [](std::size_t) { return 1.0; });
      const double offset = descending ? double(present) : 1.0, sign = descending ? -1 : 1;
      for (std::size_t i = 0; i < block.size(); ++i) {
        const double rank = double(block.begin + i) + 0.5 * (right[i] - left[i]);
        out[order[block.begin + i]] = T(offset + sign * rank);
      }
    });
  }

  // out[order[i]] = Σ_j (g_i - g_j) f((x_i - x_j)/τ)/τ, with g in the order of the scores.
  void ranks_vjp(const std::int32_t* order, const T* upstream, T* out, bool descending) {
    Scratch<T> sorted(m_);
    T* const g = sorted.get();
    team_.split(m_, [&](std::size_t begin, std::size_t end, int) {
      for (std::size_t i = begin; i < end; ++i) g[i] = upstream[order[i]];
    });
    const Vector<Carry> ones = carries([&](Block block) {
      return sums_at_ends(block, [](std::size_t) { return 1.0; });
    });
    const Vector<Carry> weighted = carries([&](Block block) {
      return sums_at_ends(block, [=](std::size_t i) { return double(g[i]); });
    });
    const double scale = (descending ? -0.5 : 0.5) / tau_;
    each_block([&](Block block, double* a, double* left, double* right) {
      decays_of(block, a);
      scan_differences(block, a, ones[block.number], weighted[block.number], g + block.begin, left, right);
      for (std::size_t i = 0; i < block.size(); ++i) {
        out[order[block.begin + i]] = T(scale * (left[i] + right[i]));
      }
    });
  }

  // -Σ_i g_i Σ_j f(u) u/τ with u = (x_i - x_j)/τ: the gradient of τ.
  double ranks_by_temperature(const std::int32_t* order, const T* upstream, bool descending) {
    const double total = sum_over_blocks([&](Block block, const double*, const Moments& at) {
      double sum = 0;
      for (std::size_t i = 0; i < block.size(); ++i) {
        sum += double(upstream[order[block.begin + i]]) * (at.left_moment[i + 1] - at.right_moment[i]);
      }
      return sum;
    });
    return (descending ? 0.5 : -0.5) * total / (tau_ * tau_);
  }

  // t_j with Σ F((t_j - x_i)/τ) = j + 1/2. Place j lies in the gap below the source segment[j],
  // rest[j] from its upper end (negative, or -0) or from its lower end; slope[j] = Σ f.
  struct Roots {
    T* t;
    std::int32_t* segment;
    T* rest;
    T* slope;
  };
  void roots(const Roots& out) {
    const Vector<Carry> carry = carries([&](Block block) {
      return sums_at_ends(block, [](std::size_t) { return 1.0; });
    });
    each_block([&](Block block, double* a, double* left, double* right, double* ends) {
      const Carry& start = carry[block.number];
      decays_of(block, a);
      ends_of(block, ends);
      scan(block, a, start, left + 1, right, [](std::size_t) { return 1.0; });
      left[0] = start.left;
      right[block.size()] = 0;  // beyond the last source
      const std::size_t first = block.number == 0 ? 0 : first_level(carry, block.number);
      const std::size_t last = block.end == m_ ? m_ : first_level(carry, block.number + 1);
      find_segments(block, left + 1, right, first, last, out.segment);
      solve(block, a, left, right, ends, first, last, out);
      ascend(out.t, first, last);
    });
  }

  // out[order[i]] = Σ_j g_j f((t_j - x_i)/τ)/slope_j, with g in the order of the places.
  void roots_vjp(const std::int32_t* order, const T* upstream, const Roots& at, T* out) {
    const Vector<Carry> carry = carries(
        [&](Block block) { return shares_at_ends(block, upstream, at); }, 1);
    each_block([&](Block block, double* a, double* left, double* right) {
      decays_of(block, a);
      collect_shares(block, a, upstream, at, left, right);
      scan_shares(block, a, carry[block.number], left, right);
      for (std::size_t i = 0; i < block.size(); ++i) out[order[block.begin + i]] = T(0.5 * (left[i] + right[i]));
    });
  }

  // Σ_j g_j Σ_i f(u) u/slope_j with u = (t_j - x_i)/τ: the gradient of τ.
  double roots_by_temperature(const T* upstream, const Roots& at) {
    const double total = sum_over_blocks([&](Block block, const double* a, const Moments& moments) {
      return sum_moments(block, a, upstream, at, moments);
    });
    return 0.5 * total / tau_;
  }

 private:
  static constexpr std::size_t kBlock = 16384;

  struct Block {
    std::size_t number, begin, end;
    std::size_t size() const { return end - begin; }
  };
  // What a block starts with: the sum of everything before it, seen from the source before it, and
  // of everything behind it, seen from the source behind it.
  // With their first moments, Σ d e^-d/τ, where somebody asks for them.
  struct Carry {
    double left = 0, right = 0, left_moment = 0, right_moment = 0;
  };

  std::size_t blocks() const { return (m_ + kBlock - 1) / kBlock; }
  Block block(std::size_t number) const {
    return {number, number * kBlock, std::min(m_, (number + 1) * kBlock)};
  }
  double x(std::size_t i) const { return double(x_[i]); }
  double decay(double distance) const { return std::exp(-distance / tau_); }

  // Calls work(block, ...) with buffers, as many as it takes, that hold a block and two more each.
  template <class Work> void each_block(Work work) const {
    team_.split_evenly(blocks(), [&](std::size_t begin, std::size_t end) {
      const std::size_t room = std::min(m_, kBlock) + 2 + kLanes<double>;
      Scratch<double> buffers(5 * room);
      double* const a = buffers.get();
      for (; begin < end; ++begin) {
        if constexpr (std::is_invocable_v<Work, Block, double*, double*, double*>) {
          work(block(begin), a, a + room, a + 2 * room);
        } else if constexpr (std::is_invocable_v<Work, Block, double*, double*, double*, double*>) {
          work(block(begin), a, a + room, a + 2 * room, a + 3 * room);
        } else {
          work(block(begin), a, a + room, a + 2 * room, a + 3 * room, a + 4 * room);
        }
      }
    });
  }

  // From `own`, the sums of a block's own sources seen from its last and from its first source.
  // What comes from behind may also be seen from `back` sources further to the left.
  template <class Own> Vector<Carry> carries(Own own, std::size_t back = 0) const {
    Vector<Carry> sums(blocks()), carry(blocks());
    if (blocks() < 2) return carry;
    team_.split_evenly(blocks(), [&](std::size_t begin, std::size_t end) {
      for (; begin < end; ++begin) sums[begin] = own(block(begin));
    });
    for (std::size_t i = 1; i < blocks(); ++i) {
      const Block before = block(i - 1);
      const double distance = i > 1 ? x(before.end - 1) - x(before.begin - 1) : 0, factor = decay(distance);
      carry[i].left = sums[i - 1].left, carry[i].left_moment = sums[i - 1].left_moment;
      if (i > 1) carry[i].left += carry[i - 1].left * factor;
      carry[i].left_moment += factor * (carry[i - 1].left_moment + distance * carry[i - 1].left);
    }
    for (std::size_t i = blocks() - 1; i-- > 0;) {
      const Block after = block(i + 1);
      carry[i].right = sums[i + 1].right, carry[i].right_moment = sums[i + 1].right_moment;
      if (after.end < m_) {
        const double distance = x(after.end - back) - x(after.begin - back), factor = decay(distance);
        carry[i].right += carry[i + 1].right * factor;
        carry[i].right_moment += factor * (carry[i + 1].right_moment + distance * carry[i + 1].right);
      }
    }
    return carry;
  }

  template <bool kMoments = false, class Weight> Carry sums_at_ends(Block block, Weight weight) const {
    constexpr std::size_t kPiece = 512;
    double near_first[kPiece + kLanes<double>], near_last[kPiece + kLanes<double>];
    Carry total;
    const double first = x(block.begin), last = x(block.end - 1);
    for (std::size_t from = block.begin; from < block.end; from += kPiece) {
      const std::size_t count = std::min(kPiece, block.end - from);
      for (std::size_t i = 0; i < count; ++i) near_first[i] = x(from + i) - first;
      for (std::size_t i = 0; i < count; ++i) near_last[i] = last - x(from + i);
      decays(near_first, count, tau_);
      decays(near_last, count, tau_);
      double left = 0, right = 0;
      for (std::size_t i = 0; i < count; ++i) {
        left += weight(from + i) * near_last[i], right += weight(from + i) * near_first[i];
      }
      total.left += left, total.right += right;
      for (std::size_t i = 0; kMoments && i < count; ++i) {
        total.left_moment += weight(from + i) * near_last[i] * (last - x(from + i));
        total.right_moment += weight(from + i) * near_first[i] * (x(from + i) - first);
      }
    }
    return total;
  }

  // a[i] = e^-(gap below the block's source i)/τ, up to the source behind the block; 0 where the
  // gap has no end.
  void decays_of(Block block, double* a) const {
    const std::size_t inner = std::min(block.size() + 1, m_ - block.begin);
    const T* const x = x_ + block.begin;
    a[0] = 0;
    for (std::size_t i = block.begin == 0; i < inner; ++i) a[i] = double(x[i]) - double(x[std::ptrdiff_t(i) - 1]);
    decays(a, inner, tau_);
    if (block.begin == 0) a[0] = 0;
    if (inner <= block.size()) a[inner] = 0;
  }

  // The ends of the gap below the block's source i are ends[i] and ends[i + 1].
  void ends_of(Block block, double* ends) const {
    ends[0] = block.begin == 0 ? -std::numeric_limits<double>::infinity() : x(block.begin - 1);
    for (std::size_t i = 0; i < block.size(); ++i) ends[i + 1] = x(block.begin + i);
    ends[block.size() + 1] = std::numeric_limits<double>::infinity();
  }

  template <class Weight>
  void scan(Block block, const double* a, Carry carry, double* left, double* right, Weight weight) const {
    const std::size_t n = block.size();
    double l = carry.left, r = carry.right;
    for (std::size_t i = 0, k = n - 1; i < n; ++i, --k) {
      left[i] = l = l * a[i] + weight(block.begin + i);
      right[k] = r = r * a[k + 1] + weight(block.begin + k);
    }
  }

  // left_i = Σ (g_i - g_j) e^-(x_i - x_j)/τ over the sources before i; right_i likewise behind.
  void scan_differences(Block block, const double* a, Carry one, Carry all, const T* g, double* left,
                        double* right) const {
    const std::size_t n = block.size();
    double l = one.left, r = one.right, lg = all.left, rg = all.right;
    for (std::size_t i = 0, k = n - 1; i < n; ++i, --k) {
      const double gi = double(g[i]), gk = double(g[k]);
      l = l * a[i], lg = lg * a[i];
      left[i] = gi * l - lg;
      l += 1, lg += gi;
      r = r * a[k + 1], rg = rg * a[k + 1];
      right[k] = gk * r - rg;
      r += 1, rg += gk;
    }
  }

  // ---- roots ----------------------------------------------------------------------------------

  // How many levels j + 1/2 are below the sum at a source.
  std::size_t levels_below(std::size_t source, double left, double right) const {
    const double level = double(source) + 0.5 * (right - left);  // the sum, less 1/2
    const double most = std::clamp(std::ceil(level), 0.0, double(m_));
    return static_cast<std::size_t>(most);
  }
  std::size_t first_level(const Vector<Carry>& carry, std::size_t number) const {
    const std::size_t begin = block(number).begin;
    const double right = 1 + decay(x(begin) - x(begin - 1)) * carry[number - 1].right;
    return levels_below(begin - 1, carry[number].left, right);
  }

  // segment[j] for the levels [first, last): the number of sources whose sum is not above.
  void find_segments(Block block, const double* left, const double* right, std::size_t first, std::size_t last,
                     std::int32_t* segment) const {
    std::fill(segment + first, segment + last, static_cast<std::int32_t>(block.begin));
    const bool open = block.end == m_;
    for (std::size_t i = 0; i + !open < block.size(); ++i) {
      const std::size_t at = std::max(first, levels_below(block.begin + i, left[i], right[i]));
      if (at < last) segment[at] = static_cast<std::int32_t>(block.begin + i + 1);
    }
    for (std::size_t j = first + 1; j < last; ++j) segment[j] = std::max(segment[j], segment[j - 1]);
  }

  // In the gap below source s the sum is s - L e^-d/2 + R e^-d'/2: with excess = level - s,
  // L e^-d = both - excess and R e^-d' = both + excess, where both² = excess² + L R e^-gap, and the
  // slope of the sum is both. left[i] is L of the gap below the block's source i, right[i] is R.
  void solve(Block block, const double* a, const double* left, const double* right, const double* ends,
             std::size_t first, std::size_t last, const Roots& out) const {
    constexpr std::size_t kPiece = 256;
    T ratio[kPiece + kLanes<T>], product[kPiece], excess[kPiece];
    for (; first < last; first += kPiece) {
      const std::size_t count = std::min(kPiece, last - first);
      const std::int32_t* const segment = out.segment + first;
      const std::int32_t begin = std::int32_t(block.begin), level = std::int32_t(first);
#pragma omp simd
      for (std::size_t k = 0; k < count; ++k) {
        const std::int32_t i = segment[k] - begin, above = level + std::int32_t(k) - segment[k];
        excess[k] = T(double(above) + 0.5);
        product[k] = T(left[i] * right[i] * a[i]);
        ratio[k] = T(above >= 0 ? right[i] : left[i]);
      }
      T *const slope = out.slope + first, *const rest = out.rest + first, *const t = out.t + first;
#pragma omp simd
      for (std::size_t k = 0; k < count; ++k) {
        const T both = std::sqrt(excess[k] * excess[k] + product[k]);
        ratio[k] /= both + std::fabs(excess[k]);
        slope[k] = both;
      }
      for (std::size_t k = count; k % kLanes<T>; ++k) ratio[k] = 1;
      for (std::size_t k = 0; k < count; k += kLanes<T>) store(ratio + k, log<T>(load(ratio + k)));
#pragma omp simd
      for (std::size_t k = 0; k < count; ++k) {
        const double low = ends[segment[k] - begin], high = ends[segment[k] - begin + 1];
        const double wanted = tau_ * double(ratio[k]), width = high - low;
        const double positive = wanted > 0 ? wanted : 0.0, distance = positive < width ? positive : width;
        const bool from_above = level + std::int32_t(k) >= segment[k];
        rest[k] = T(from_above ? -distance : distance);
        t[k] = T(from_above ? high - distance : low + distance);
      }
    }
  }

  // Roundings apart, t ascends within a gap.
  static void ascend(T* t, std::size_t first, std::size_t last) {
    int falls = 0;
#pragma omp simd reduction(| : falls)
    for (std::size_t j = first + 1; j < last; ++j) falls |= t[j] < t[j - 1];
    if (!falls) return;
    for (std::size_t j = first + 1; j < last; ++j) t[j] = std::max(t[j], t[j - 1]);
  }

  // ---- the roots as sources of their own --------------------------------------------------------

  // The levels whose gaps are below the block's sources; the last block has those beyond, too.
  std::pair<std::size_t, std::size_t> levels_of(Block block, const std::int32_t* segment) const {
    const auto before = [&](std::size_t source) {
      return partition_point(m_, [&](std::size_t j) { return std::size_t(segment[j]) < source; });
    };
    return {block.begin == 0 ? 0 : before(block.begin), block.end == m_ ? m_ : before(block.end)};
  }
  static double share(const T* upstream, const Roots& at, std::size_t j) {
    return at.slope[j] < std::numeric_limits<T>::min() ? 0.0 : double(upstream[j]) / double(at.slope[j]);
  }

  // Adds up shares in the gaps: up[i] as seen from the block's source i, down[i] as seen from the
  // source before it.
  void collect_shares(Block block, const double* a, const T* upstream, const Roots& at, double* up,
                      double* down) const {
    std::fill(up, up + block.size() + 1, 0.0);
    std::fill(down, down + block.size() + 1, 0.0);
    each_share(block, a, upstream, at, [&](std::size_t j, std::size_t i, double own, double near, double far) {
      const bool from_above = std::signbit(at.rest[j]);
      up[i] += own * (from_above ? near : far);
      down[i] += own * (from_above ? far : near);
    });
  }

  // Calls work(j, i, share, near, far) for every root j in the gap below the block's source i, with e^-d/τ
  // for its distances from the end of the gap to which it is drawn, and from the other one.
  template <class Work>
  void each_share(Block block, const double* a, const T* upstream, const Roots& at, Work work) const {
    constexpr std::size_t kPiece = 256;
    double near[kPiece + kLanes<double>];
    auto [first, last] = levels_of(block, at.segment);
    for (; first < last; first += kPiece) {
      const std::size_t count = std::min(kPiece, last - first);
      for (std::size_t k = 0; k < count; ++k) near[k] = std::fabs(double(at.rest[first + k]));
      decays(near, count, tau_);
      for (std::size_t k = 0; k < count; ++k) {
        const std::size_t j = first + k, i = std::size_t(at.segment[j]) - block.begin;
        work(j, i, share(upstream, at, j), near[k], near[k] > 0 ? a[i] / near[k] : 0.0);
      }
    }
  }

  Carry shares_at_ends(Block block, const T* upstream, const Roots& at) const {
    Carry total;
    const auto [first, last] = levels_of(block, at.segment);
    for (std::size_t j = first; j < last; ++j) {
      const std::size_t s = std::size_t(at.segment[j]);
      const double centre = x(std::signbit(at.rest[j]) ? s : s - 1), rest = double(at.rest[j]);
      const double own = share(upstream, at, j);
      if (s < m_) total.left += own * decay((x(block.end - 1) - centre) - rest);
      if (block.begin > 0) total.right += own * decay((centre - x(block.begin - 1)) + rest);
    }
    return total;
  }

  // up becomes the sum of all shares below each source of the block, down of those above.
  void scan_shares(Block block, const double* a, Carry carry, double* up, double* down) const {
    const std::size_t n = block.size();
    double l = carry.left, r = carry.right + down[n];
    for (std::size_t i = 0, k = n - 1; i < n; ++i, --k) {
      up[i] = l = l * a[i] + up[i];
      const double below = down[k];
      down[k] = r;
      r = r * a[k] + below;
    }
  }

  // ---- first moments, for the gradient of τ ------------------------------------------------------

  struct Moments {
    double *left, *right, *left_moment, *right_moment;
  };

  // The sum of work(block, decays, moments) over all blocks.
  template <class Work> double sum_over_blocks(Work work) const {
    const Vector<Carry> carry = carries([&](Block block) {
      return sums_at_ends<true>(block, [](std::size_t) { return 1.0; });
    });
    Vector<double> sums(blocks());
    each_block([&](Block block, double* a, double* left, double* right, double* left_moment, double* right_moment) {
      const Moments moments{left, right, left_moment, right_moment};
      decays_of(block, a);
      scan_moments(block, a, carry[block.number], moments);
      sums[block.number] = work(block, a, moments);
    });
    return std::accumulate(sums.begin(), sums.end(), 0.0);
  }

  // left[i]: Σ e^-d/τ over everything before the block's source i, seen from the source before it;
  // right[i]: over source i and everything behind it, seen from source i. Moments likewise.
  void scan_moments(Block block, const double* a, Carry carry, const Moments& at) const {
    const auto [left, right, left_moment, right_moment] = at;
    const std::size_t n = block.size();
    const auto gap = [&](std::size_t i) {
      const std::size_t at = block.begin + i;
      return at == 0 || at == m_ ? 0.0 : x(at) - x(at - 1);
    };
    left[0] = carry.left, left_moment[0] = carry.left_moment;
    right[n] = carry.right, right_moment[n] = carry.right_moment;
    for (std::size_t i = 0, k = n; i < n; ++i, --k) {
      left_moment[i + 1] = a[i] * (left_moment[i] + gap(i) * left[i]), left[i + 1] = a[i] * left[i] + 1;
      right_moment[k - 1] = a[k] * (right_moment[k] + gap(k) * right[k]), right[k - 1] = a[k] * right[k] + 1;
    }
  }

  // Σ_j g_j/slope_j (Σ d e^-d/τ over the sources below t_j, less that over those above).
  double sum_moments(Block block, const double* a, const T* upstream, const Roots& at, const Moments& moments) const {
    double total = 0;
    each_share(block, a, upstream, at, [&](std::size_t j, std::size_t i, double own, double near, double far) {
      const std::size_t s = block.begin + i;
      const bool from_above = std::signbit(at.rest[j]);
      const double gap = s == 0 || s == m_ ? 0.0 : x(s) - x(s - 1), rest = std::fabs(double(at.rest[j]));
      const double to_lower = from_above ? gap - rest : rest, to_upper = from_above ? rest : gap - rest;
      const double below = (moments.left_moment[i] + to_lower * moments.left[i]) * (from_above ? far : near);
      const double above = (moments.right_moment[i] + to_upper * moments.right[i]) * (from_above ? near : far);
      total += own * (below - above);
    });
    return total;
  }

  const T* x_;
  std::size_t m_;
  double tau_;
  Team team_;
};

}  // namespace softorder
