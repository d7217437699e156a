// Exact selection in about one pass over the row: a small sorted sample brackets the wanted rank, and
// only the scores inside the bracket are kept (Floyd and Rivest, 1975).
#pragma once

#include <algorithm>
#include <cmath>
#include <functional>

#include "threshold/sweep.hpp"

namespace softorder {

template <class T> class Selection {
 public:
  // Finds the score that exactly `rank` others precede in descending order, and the one before it.
  // `list` has room for n and one pack more.
  Selection(const T* x, std::size_t n, std::size_t rank, T* list)
      : source_(x), count_(n), rank_(rank), list_(list) {
    while (count_ > kSmall && narrow()) continue;
    finish();
  }

  double value() const { return value_; }
  double next_larger() const { return larger_; }
  double touched() const { return touched_; }

 private:
  static constexpr std::size_t kSample = 64, kSmall = 96;
  static constexpr T kInfinite = std::numeric_limits<T>::infinity();

  // Shortens the list; false when that no longer works, as with many equal scores.
  bool narrow() {
    T sample[kSample];
    const std::size_t stride = count_ / kSample, before = count_;
    for (std::size_t i = 0; i < kSample; ++i) sample[i] = source_[i * stride + stride / 2];
    std::sort(sample, sample + kSample, std::greater<T>());
    const double share = double(rank_) / double(count_);
    const double margin = 2 + 3 * std::sqrt(kSample * share * (1 - share));
    const double upper = share * kSample - margin, lower = share * kSample + margin;
    const T high = upper < 0 ? kInfinite : sample[std::size_t(upper)];
    const T low = lower >= kSample ? -kInfinite : sample[std::size_t(lower)];
    const auto [above, inside] = count(low, high);
    const std::size_t first = rank_ > 0 ? rank_ - 1 : 0;
    if (first < above) keep(high, kInfinite, 0);
    else if (rank_ >= above + inside) keep(-kInfinite, low, above + inside - count_equal(low));
    else keep(low, high, above);
    return count_ < before - before / 8;
  }

  struct Counts {
    std::size_t above, inside;
  };

  Counts count(T low, T high) {
    Mask<T> above{}, inside{};
    for_packs(source_, count_, [&](Pack<T> scores, std::size_t, std::size_t) {
      above -= scores > high;
      inside -= (scores >= low) & (scores <= high);
    });
    touched_ += 0.5 * double(count_);  // compares only
    // padding lanes hold -inf, which a low of -inf lets in
    const std::size_t padding = low == -kInfinite ? (kLanes<T> - count_ % kLanes<T>) % kLanes<T> : 0;
    return {std::size_t(sum_lanes(above)), std::size_t(sum_lanes(inside)) - padding};
  }

  std::size_t count_equal(T value) { return count(value, value).inside; }

  void keep(T low, T high, std::size_t dropped_above) {
    std::size_t kept = 0;
    for_packs(source_, count_, [&](Pack<T> scores, std::size_t, std::size_t lanes) {
      Mask<T> wanted = (scores >= low) & (scores <= high);
      for (std::size_t i = lanes; i < kLanes<T>; ++i) wanted[i] = 0;
      kept += append<T>(list_ + kept, scores, wanted);
    });
    touched_ += 0.5 * double(count_);
    source_ = list_, count_ = kept, rank_ -= dropped_above;
  }

  void finish() {
    if (source_ != list_) std::copy_n(source_, count_, list_);
    std::nth_element(list_, list_ + rank_, list_ + count_, std::greater<T>());
    touched_ += 3 * double(count_);  // introselect looks at each about three times
    value_ = list_[rank_];
    larger_ = rank_ > 0 ? double(*std::min_element(list_, list_ + rank_)) : double(kInfinite);
  }

  const T* source_;
  std::size_t count_, rank_;
  T* list_;
  double value_ = 0, larger_ = 0, touched_ = 0;
};

}  // namespace softorder
