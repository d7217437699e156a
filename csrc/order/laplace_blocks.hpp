// Sums along one sorted row, Σ e^-d/τ on either side of every source, in blocks.
//
// They run in a = e^-gap/τ of neighbours: left_i = left_{i-1} a_i + w_i from the left, and the same
// from the right. The row is cut into blocks that fit into a cache; a first pass gives every block the
// sums that it starts with, so that blocks are independent. Both sums of a block run in one loop: each
// waits for its own last result, and together they wait once.
#pragma once

#include <cmath>
#include <cstdint>
#include <numeric>

#include "fsum/places.hpp"
#include "scratch.hpp"
#include "team.hpp"

namespace softorder {

template <class T> class LaplaceBlocks {
 public:
  // x: m finite scores, ascending. x[m] is not read.
  LaplaceBlocks(const T* x, std::size_t m, double temperature, Team team)
      : x_(x), m_(m), tau_(temperature), team_(team) {}

 protected:
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

  template <class Weight>
  void scan(Block block, const double* a, Carry carry, double* left, double* right, Weight weight) const {
    const std::size_t n = block.size();
    double l = carry.left, r = carry.right;
    for (std::size_t i = 0, k = n - 1; i < n; ++i, --k) {
      left[i] = l = l * a[i] + weight(block.begin + i);
      right[k] = r = r * a[k + 1] + weight(block.begin + k);
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

  const T* x_;
  std::size_t m_;
  double tau_;
  Team team_;
};

}  // namespace softorder
