// Soft ranks, the soft sort and thresholds of one sorted row, with the Laplace density, forward and
// backward. All are made of the sums that order/laplace_blocks.hpp runs along the row.
#pragma once

#include <cmath>
#include <cstdint>

#include "simd/logarithm.hpp"
#include "order/laplace_blocks.hpp"
#include "order/roots.hpp"

namespace softorder {

template <class T> class LaplaceOrder : LaplaceBlocks<T> {
  using Base = LaplaceBlocks<T>;
  using Block = typename Base::Block;
  using Carry = typename Base::Carry;
  using Moments = typename Base::Moments;
  using Base::blocks, Base::block, Base::x, Base::decay, Base::each_block, Base::carries, Base::decays_of, Base::scan,
      Base::m_, Base::tau_, Base::team_;

 public:
  using Base::Base;

  // out[order[i]] = i + 1 + (right_i - left_i)/2, with the source itself in both; descending, that
  // is subtracted from present + 1.
  void ranks(const std::int32_t* order, T* out, bool descending, std::size_t present) {
    const Vector<Carry> carry = sums_of_ones();
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
    const Vector<Carry> ones = sums_of_ones();
    const Vector<Carry> weighted = carries([&](Block block) {
      return this->sums_at_ends(block, [=](std::size_t i) { return double(g[i]); });
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
    const double total = this->sum_over_blocks([&](Block block, const double*, const Moments& at) {
      double sum = 0;
      for (std::size_t i = 0; i < block.size(); ++i) {
        sum += double(upstream[order[block.begin + i]]) * (at.left_moment[i + 1] - at.right_moment[i]);
      }
      return sum;
    });
    return (descending ? 0.5 : -0.5) * total / (tau_ * tau_);
  }

  // The places where Σ_i F((t - x_i)/τ) takes the levels. Root j lies in the gap below the source segment[j],
  // rest[j] from its upper end (negative, or -0) or from its lower end.
  void roots(Levels levels, const Roots<T>& out) {
    const Vector<Carry> carry = sums_of_ones();
    each_block([&](Block block, double* a, double* left, double* right, double* ends) {
      decays_of(block, a);
      ends_of(block, ends);
      scan_gaps(block, a, carry[block.number], left, right);
      const std::size_t first = block.number == 0 ? 0 : first_level(levels, carry, block.number);
      const std::size_t last = block.end == m_ ? levels.count : first_level(levels, carry, block.number + 1);
      find_segments(levels, block, left + 1, right, first, last, out.segment);
      solve(levels, block, a, left, right, ends, first, last, out);
      if (out.t) ascend(out.t, first, last);
    });
  }

  // The source from which rest[j] leads to root j.
  static std::size_t source_of(const Roots<T>& at, std::size_t j) {
    return std::size_t(at.segment[j]) - (std::signbit(at.rest[j]) ? 0 : 1);
  }

  // out[order[i]] = Σ_j g_j f((t_j - x_i)/τ)/slope_j, with g in the order of the levels.
  void roots_vjp(Levels levels, const std::int32_t* order, const T* upstream, const Roots<T>& at, T* out) {
    const Vector<Carry> ones = levels.whole ? sums_of_ones() : Vector<Carry>(blocks());
    const auto collect = [&](Block block, double* a, double* up, double* down, double* left, double* right) {
      decays_of(block, a);
      if (levels.whole) scan_gaps(block, a, ones[block.number], left, right);
      collect_shares(levels, block, {a, left, right}, upstream, at, up, down);
    };
    Vector<Carry> own(blocks());
    if (blocks() > 1) {
      each_block([&](Block block, double* a, double* up, double* down, double* left, double* right) {
        collect(block, a, up, down, left, right);
        own[block.number] = scan_shares(block, a, {}, up, down);
      });
    }
    const Vector<Carry> carry = carries([&](Block block) { return own[block.number]; }, 1);
    each_block([&](Block block, double* a, double* up, double* down, double* left, double* right) {
      collect(block, a, up, down, left, right);
      scan_shares(block, a, carry[block.number], up, down);
      for (std::size_t i = 0; i < block.size(); ++i) out[order[block.begin + i]] = T(0.5 * (up[i] + down[i]));
    });
  }

  // Σ_j g_j Σ_i f(u) u/slope_j with u = (t_j - x_i)/τ: the gradient of τ.
  double roots_by_temperature(Levels levels, const T* upstream, const Roots<T>& at) {
    const double total = this->sum_over_blocks([&](Block block, const double* a, const Moments& moments) {
      return sum_moments(levels, block, a, upstream, at, moments);
    });
    return 0.5 * total / tau_;
  }

 private:
  Vector<Carry> sums_of_ones() const {
    return carries([&](Block block) { return this->sums_at_ends(block, [](std::size_t) { return 1.0; }); });
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

  // The ends of the gap below the block's source i are ends[i] and ends[i + 1].
  void ends_of(Block block, double* ends) const {
    ends[0] = block.begin == 0 ? -std::numeric_limits<double>::infinity() : x(block.begin - 1);
    for (std::size_t i = 0; i < block.size(); ++i) ends[i + 1] = x(block.begin + i);
    ends[block.size() + 1] = std::numeric_limits<double>::infinity();
  }

  // Of the gap below the block's source i: left[i] sums all sources below it, seen from its lower end,
  // right[i] those above it, seen from its upper end.
  void scan_gaps(Block block, const double* a, Carry carry, double* left, double* right) const {
    scan(block, a, carry, left + 1, right, [](std::size_t) { return 1.0; });
    left[0] = carry.left;
    right[block.size()] = 0;  // beyond the last source
  }

  // How many levels are below the sum at a source.
  std::size_t levels_below(Levels levels, std::size_t source, double left, double right) const {
    const double above_first = double(source) + 0.5 * (right - left) + (0.5 - levels.first());
    const double most = std::clamp(std::ceil(above_first), 0.0, double(levels.count));
    return static_cast<std::size_t>(most);
  }
  std::size_t first_level(Levels levels, const Vector<Carry>& carry, std::size_t number) const {
    const std::size_t begin = block(number).begin;
    const double right = 1 + decay(x(begin) - x(begin - 1)) * carry[number - 1].right;
    return levels_below(levels, begin - 1, carry[number].left, right);
  }

  // segment[j] for the levels [first, last): the number of sources whose sum is not above.
  void find_segments(Levels levels, Block block, const double* left, const double* right, std::size_t first,
                     std::size_t last, std::int32_t* segment) const {
    if (first >= last) return;
    std::fill(segment + first, segment + last, static_cast<std::int32_t>(block.begin));
    const bool open = block.end == m_;
    for (std::size_t i = 0; i + !open < block.size(); ++i) {
      const std::size_t at = std::max(first, levels_below(levels, block.begin + i, left[i], right[i]));
      if (at < last) segment[at] = static_cast<std::int32_t>(block.begin + i + 1);
    }
    for (std::size_t j = first + 1; j < last; ++j) segment[j] = std::max(segment[j], segment[j - 1]);
  }

  // In the gap below source s the sum is s - L e^-d/2 + R e^-d'/2: with excess = level - s,
  // L e^-d = both - excess and R e^-d' = both + excess, where both² = excess² + L R e^-gap, and the
  // slope of the sum is both. Where excess is 0 the root is in the middle of the gap but for
  // τ log(L/R)/2, however wide it is. left[i] is L of the gap below the block's source i, right[i] is R.
  void solve(Levels levels, Block block, const double* a, const double* left, const double* right,
             const double* ends, std::size_t first, std::size_t last, const Roots<T>& out) const {
    constexpr std::size_t kPiece = 256;
    T ratio[kPiece + kLanes<T>], product[kPiece], excess[kPiece], unwanted[kPiece];
    const double lowest = levels.first();
    for (; first < last; first += kPiece) {
      const std::size_t count = std::min(kPiece, last - first);
      const std::int32_t* const segment = out.segment + first;
      const std::int32_t begin = std::int32_t(block.begin), level = std::int32_t(first);
#pragma omp simd
      for (std::size_t k = 0; k < count; ++k) {
        const std::int32_t i = segment[k] - begin, above = level + std::int32_t(k) - segment[k];
        excess[k] = T(double(above) + lowest);
        product[k] = T(left[i] * right[i] * a[i]);
        ratio[k] = T(above >= 0 ? right[i] : excess[k] == 0 ? left[i] / right[i] : left[i]);
      }
      T *const slope = out.slope + first, *const rest = out.rest + first;
      T* const t = out.t ? out.t + first : unwanted;
#pragma omp simd
      for (std::size_t k = 0; k < count; ++k) {
        const T both = std::sqrt(excess[k] * excess[k] + product[k]);
        ratio[k] /= excess[k] == 0 ? T(1) : both + std::fabs(excess[k]);
        slope[k] = both;
      }
      for (std::size_t k = count; k % kLanes<T>; ++k) ratio[k] = 1;
      for (std::size_t k = 0; k < count; k += kLanes<T>) store(ratio + k, log<T>(load(ratio + k)));
#pragma omp simd
      for (std::size_t k = 0; k < count; ++k) {
        const double low = ends[segment[k] - begin], high = ends[segment[k] - begin + 1], width = high - low;
        const double drawn = tau_ * double(ratio[k]), wanted = excess[k] == 0 ? 0.5 * (width + drawn) : drawn;
        const double positive = wanted > 0 ? wanted : 0.0, distance = positive < width ? positive : width;
        const bool from_above = level + std::int32_t(k) >= segment[k];
        rest[k] = T(from_above ? -distance : distance);
        t[k] = T(from_above ? high - distance : low + distance);
      }
    }
  }

  // ---- the roots as sources of their own --------------------------------------------------------

  // The levels whose gaps are below the block's sources; the last block has those beyond, too.
  std::pair<std::size_t, std::size_t> levels_of(Levels levels, Block block, const std::int32_t* segment) const {
    const auto before = [&](std::size_t source) {
      return partition_point(levels.count, [&](std::size_t j) { return std::size_t(segment[j]) < source; });
    };
    return {block.begin == 0 ? 0 : before(block.begin), block.end == m_ ? levels.count : before(block.end)};
  }
  static double share(const T* upstream, const Roots<T>& at, std::size_t j) {
    return at.slope[j] < std::numeric_limits<T>::min() ? 0.0 : double(upstream[j]) / double(at.slope[j]);
  }

  // The gaps below the sources of a block; left and right are wanted for whole levels only.
  struct Gaps {
    const double *a, *left, *right;
  };

  // Adds up shares in the gaps: up[i] as seen from the block's source i, down[i] as seen from the
  // source before it.
  void collect_shares(Levels levels, Block block, Gaps gaps, const T* upstream, const Roots<T>& at, double* up,
                      double* down) const {
    std::fill(up, up + block.size() + 1, 0.0);
    std::fill(down, down + block.size() + 1, 0.0);
    each_share(levels, block, gaps, upstream, at,
               [&](std::size_t j, std::size_t i, double own, double near, double far) {
                 const bool from_above = std::signbit(at.rest[j]);
                 up[i] += own * (from_above ? near : far);
                 down[i] += own * (from_above ? far : near);
               });
  }

  // Calls work(j, i, own, near, far) for every root j in the gap below the block's source i: own·near is
  // g_j/slope_j e^-d/τ, with the distance from the end of the gap to which it is drawn; far: from the other.
  template <class Work>
  void each_share(Levels levels, Block block, Gaps gaps, const T* upstream, const Roots<T>& at, Work work) const {
    const auto [first, last] = levels_of(levels, block, at.segment);
    if (levels.whole) return each_whole_share(block, gaps, first, last, upstream, at, work);
    constexpr std::size_t kPiece = 256;
    double near[kPiece + kLanes<double>];
    for (std::size_t from = first; from < last; from += kPiece) {
      const std::size_t count = std::min(kPiece, last - from);
      for (std::size_t k = 0; k < count; ++k) near[k] = std::fabs(double(at.rest[from + k]));
      decays(near, count, tau_);
      for (std::size_t k = 0; k < count; ++k) {
        const std::size_t j = from + k, i = std::size_t(at.segment[j]) - block.begin;
        work(j, i, share(upstream, at, j), near[k], near[k] > 0 ? gaps.a[i] / near[k] : 0.0);
      }
    }
  }

  // At whole levels e^-d and the slope underflow together in a wide gap. By the equations of `solve` their
  // ratio is (both + |excess|)/(N both) for the end to which the root is drawn, whose sum is N, and
  // N e^-gap/((both + |excess|) both) for the other; where nothing draws, 1/L and 1/R.
  template <class Work>
  void each_whole_share(Block block, Gaps gaps, std::size_t first, std::size_t last, const T* upstream,
                        const Roots<T>& at, Work work) const {
    constexpr std::size_t kPiece = 256;
    double near[kPiece], far[kPiece];
    const std::int32_t begin = std::int32_t(block.begin);
    for (std::size_t from = first; from < last; from += kPiece) {
      const std::size_t count = std::min(kPiece, last - from);
      const std::int32_t* const segment = at.segment + from;
      const std::int32_t level = std::int32_t(from) + 1;
#pragma omp simd
      for (std::size_t k = 0; k < count; ++k) {
        const std::int32_t i = segment[k] - begin, above = level + std::int32_t(k) - segment[k];
        const double left = gaps.left[i], right = gaps.right[i], product = left * right * gaps.a[i];
        const double excess = double(above), drawing = above > 0 ? right : left;
        const double both = std::sqrt(excess * excess + product), sum = both + std::fabs(excess);
        near[k] = (above == 0 ? 1.0 : sum) / (above == 0 ? left : drawing * both);
        far[k] = (above == 0 ? 1.0 : drawing * gaps.a[i]) / (above == 0 ? right : sum * both);
      }
      for (std::size_t k = 0; k < count; ++k) {
        work(from + k, std::size_t(segment[k] - begin), double(upstream[from + k]), near[k], far[k]);
      }
    }
  }

  // up becomes the sum of all shares below each source of the block, down of those above. Returns what the
  // block adds to the next one, seen from its last source, and to the one before, seen from its last one.
  Carry scan_shares(Block block, const double* a, Carry carry, double* up, double* down) const {
    const std::size_t n = block.size();
    double l = carry.left, r = carry.right + down[n];
    for (std::size_t i = 0, k = n - 1; i < n; ++i, --k) {
      up[i] = l = l * a[i] + up[i];
      const double below = down[k];
      down[k] = r;
      r = r * a[k] + below;
    }
    return {l, r};
  }

  // Σ_j g_j/slope_j (Σ d e^-d/τ over the sources below t_j, less that over those above).
  double sum_moments(Levels levels, Block block, const double* a, const T* upstream, const Roots<T>& at,
                     const Moments& moments) const {
    double total = 0;
    const Gaps gaps{a, moments.left, moments.right};
    each_share(levels, block, gaps, upstream, at, [&](std::size_t j, std::size_t i, double own, double near, double far) {
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
};

}  // namespace softorder
