// One row of scores of a call, the largest first, and what belongs to it.
#pragma once

#include <algorithm>
#include <limits>
#include <numbers>
#include <utility>

#include "row_softmax/row_softmax.hpp"
#include "sort/largest.hpp"
#include "threshold/sweep.hpp"

namespace softorder {

template <class T> class SoftmaxRow {
 public:
  SoftmaxRow(const RowSoftmax& a, std::size_t row, const T* scores) : x(scores), a_(&a), row_(row) {
    constexpr double most = std::numeric_limits<T>::max();
    const double temperature = a.temperature[row * a.temperature_stride];
    scale = std::min(std::numbers::log2e / temperature, most);
    inverse = std::min(1 / temperature, most);
  }

  const T* x;             // -inf takes no part
  double scale, inverse;  // log2(e)/τ and 1/τ

  T* p(std::size_t j) const { return static_cast<T*>(a_->p) + (row_ * a_->k + j) * a_->n; }
  const T* upstream(std::size_t j) const {
    return static_cast<const T*>(a_->upstream) + (row_ * a_->k + j) * a_->n;
  }
  std::int32_t* order() const { return a_->order + row_ * a_->n; }
  std::size_t count() const { return std::size_t(a_->count[row_]); }

  // The places [first, second), in order, of the scores that are equal to the one at a place.
  std::pair<std::size_t, std::size_t> equals(std::size_t place) const {
    const T own = x[order()[place]];
    std::size_t first = place, last = place + 1;
    while (first > 0 && x[order()[first - 1]] == own) --first;
    while (last < count() && x[order()[last]] == own) ++last;
    return {first, last};
  }

  void keep_order(const Largest<T>& largest) const {
    a_->count[row_] = static_cast<std::int32_t>(largest.count());
    for (std::size_t j = 0; j < largest.count(); ++j) order()[j] = largest.source(j);
  }

 private:
  const RowSoftmax* a_;
  std::size_t row_;
};

// Calls work(begin, end) on parts of [0, n) that are short enough for sums in float.
template <class Work> inline void for_blocks(std::size_t n, Work work) {
  for (std::size_t begin = 0; begin < n; begin += kBlock) work(begin, std::min(n, begin + kBlock));
}

}  // namespace softorder
