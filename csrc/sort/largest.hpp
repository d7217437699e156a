// The largest scores of a row in order, as many as are asked for: only these are sorted.
//
// The row is dealt into groups. The largest scores of k groups are k different scores, so that at least k
// are at or above the k-th largest of all groups' maxima, and hardly more where there are many groups.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <limits>
#include <numeric>

#include "scratch.hpp"
#include "sort/sorted_row.hpp"

namespace softorder {

template <class T> class Largest {
 public:
  explicit Largest(std::size_t n)
      : n_(n), maxima_(n + kLanes<T>), picked_(n), sorted_(n), source_(n), order_(n), words_(2 * n) {}

  // Deals the row into at least 4k groups; not if these would be too small to tell much.
  bool sample(std::size_t k, const T* x) {
    constexpr std::size_t lanes = kLanes<T>, usual = 64, fewest_members = 4;
    const std::size_t wanted = std::max(4 * k, std::min(usual, n_ / 8));
    groups_ = (wanted + lanes - 1) / lanes * lanes;
    if (fewest_members * groups_ > n_) return false;
    for (std::size_t first = 0; first < groups_; first += lanes) {
      Pack<T> most = Pack<T>{} - kInfinity<T>;
      std::size_t i = first;
      for (; i + lanes <= n_; i += groups_) most = larger<T>(most, load(x + i));
      if (i < n_) most = larger<T>(most, load_part(x + i, n_ - i, -kInfinity<T>));
      store(maxima_.get() + first, most);
    }
    return true;
  }

  // The k-th largest of the groups' maxima.
  T maximum(std::size_t k) {
    T* const maxima = maxima_.get();
    std::nth_element(maxima, maxima + (k - 1), maxima + groups_, std::greater<T>());
    return maxima[k - 1];
  }
  T mean_maximum() const { return std::accumulate(maxima_.get(), maxima_.get() + groups_, T(0)) / T(groups_); }

  // The scores at or above the threshold, in order; -inf takes no part.
  void collect(const T* x, T threshold, Team team) {
    threshold = std::max(threshold, std::numeric_limits<T>::lowest());
    T* const picked = picked_.get();
    std::int32_t* const source = source_.get();
    count_ = 0;
    const auto take = [&](Pack<T> scores, std::size_t begin) {
      for (unsigned lanes = lane_bits<T>(scores >= threshold); lanes != 0; lanes &= lanes - 1) {
        const std::size_t lane = std::size_t(std::countr_zero(lanes));
        picked[count_] = scores[lane], source[count_++] = static_cast<std::int32_t>(begin + lane);
      }
    };
    std::size_t i = 0;
    for (; i + kLanes<T> <= n_; i += kLanes<T>) take(load(x + i), i);
    if (i < n_) take(load_part(x + i, n_ - i, -kInfinity<T>), i);
    sort_row<T>(picked, count_, sorted_.get(), order_.get(), words_.get(), team);
  }

  std::size_t count() const { return count_; }
  double value(std::size_t j) const { return double(sorted_.get()[count_ - 1 - j]); }  // from the largest down
  std::int32_t source(std::size_t j) const { return source_.get()[order_.get()[count_ - 1 - j]]; }

 private:
  std::size_t n_, count_ = 0, groups_ = 0;
  Scratch<T> maxima_, picked_, sorted_;
  Scratch<std::int32_t> source_, order_;
  Scratch<Word> words_;
};

}  // namespace softorder
