// The largest scores of a row, in order, as many as are asked for: only these are sorted.
//
// A threshold comes from a small sample; the scores above it are collected and sorted. While somebody
// wants more, the threshold falls, in the end to -inf: then all scores that take part are there.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>

#include "scratch.hpp"
#include "sort/sorted_row.hpp"

namespace softorder {

template <class T> class Largest {
 public:
  explicit Largest(std::size_t n)
      : n_(n), picked_(n), sorted_(n), source_(n), order_(n), words_(2 * n) {}

  // Until enough(threshold) says so, with the scores above the threshold in order.
  template <class Enough> void find(const T* x, Team team, Enough enough) {
    std::size_t place = take_sample(x);
    for (;; place *= 4) {
      const T threshold = place < kSample ? sample_[place] : -std::numeric_limits<T>::infinity();
      collect(x, threshold, team);
      if (place >= kSample || enough(double(threshold))) return;
    }
  }

  std::size_t count() const { return count_; }
  double value(std::size_t j) const { return double(sorted_.get()[count_ - 1 - j]); }  // from the largest down
  std::int32_t source(std::size_t j) const { return source_.get()[order_.get()[count_ - 1 - j]]; }

 private:
  static constexpr std::size_t kSample = 256, kFirst = 4;

  // Fills the sample, from the largest down, and says where in it to begin.
  std::size_t take_sample(const T* x) {
    if (n_ < 4 * kSample) return kSample;
    for (std::size_t i = 0; i < kSample; ++i) sample_[i] = x[i * n_ / kSample];
    std::sort(sample_, sample_ + kSample, [](T a, T b) { return a > b; });
    return kFirst;
  }

  void collect(const T* x, T threshold, Team team) {
    T* const picked = picked_.get();
    std::int32_t* const source = source_.get();
    count_ = 0;
    for (std::size_t i = 0; i < n_; ++i) {
      if (x[i] > threshold) picked[count_] = x[i], source[count_++] = static_cast<std::int32_t>(i);
    }
    sort_row<T>(picked, count_, sorted_.get(), order_.get(), words_.get(), team);
  }

  std::size_t n_, count_ = 0;
  T sample_[kSample];
  Scratch<T> picked_, sorted_;
  Scratch<std::int32_t> source_, order_;
  Scratch<Word> words_;
};

}  // namespace softorder
