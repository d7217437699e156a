// Weighted places of a row, and their Chebyshev moments.
#pragma once

#include <array>

#include "fsum/chebyshev.hpp"
#include "fsum/places.hpp"

namespace softorder {

// 1 in the first `count` lanes and 0 in the others.
inline Pack<double> ones(std::size_t count) {
  static constexpr auto row = [] {
    std::array<double, 2 * kLanes<double>> row{};
    std::fill(row.begin(), row.begin() + kLanes<double>, 1.0);
    return row;
  }();
  return load(row.data() + kLanes<double> - count);
}

// The weights of the sources, from the one called `first` on; null: ones.
struct Weights {
  const double* data;
  std::size_t first = 0;

  // 0 in the lanes behind `count`.
  Pack<double> load(std::size_t from, std::size_t count) const {
    if (!data) return ones(count);
    const double* const here = data + (from - first);
    return count == kLanes<double> ? softorder::load(here) : load_part(here, count, 0.0);
  }

  // Those of the first 0, 1, ... m sources.
  Vector<double> prefix_sums(std::size_t m) const {
    Vector<double> sums(m + 1);
    for (std::size_t i = 0; i < m; ++i) sums[i + 1] = sums[i] + data[i];
    return sums;
  }
};

// A pack of scalars as doubles, of which the first `count` are read.
template <class T> Pack<double> load_wide(const T* from, std::size_t count) {
  typedef T Narrow __attribute__((vector_size(kLanes<double> * sizeof(T))));
  Narrow pack{};
  if (count == kLanes<double>) {
    std::memcpy(&pack, from, sizeof pack);
  } else {
    for (std::size_t i = 0; i < count; ++i) pack[i] = from[i];
  }
  return __builtin_convertvector(pack, Pack<double>);
}

// The differences of `count` places from one; the other lanes are finite.
template <class T> Pack<double> differences(const Places<T>& places, std::size_t from, std::size_t count, double minus, double rest) {
  Pack<double> found = load_wide(places.value + from, count) - minus;
  if (places.rest) found += load_wide(places.rest + from, count);
  return found - rest;
}

// Σ_i w_i T_k(b_i) over the places [begin, end), with b = scale·(x - middle).
template <class T>
void find_moments(const Places<T>& x, const Weights& weights, std::size_t begin, std::size_t end, double middle, double scale,
                  double* found) {
  Pack<double> total[kTerms] = {};
  for (std::size_t i = begin; i < end; i += kLanes<double>) {
    const std::size_t count = std::min(kLanes<double>, end - i);
    const Pack<double> b = scale * differences(x, i, count, middle, 0.0), twice = b + b;
    Pack<double> before = weights.load(i, count), last = before * b;
    total[0] += before, total[1] += last;
    for (int k = 2; k < kTerms; ++k) {
      const Pack<double> next = twice * last - before;
      total[k] += next;
      before = last, last = next;
    }
  }
  for (int k = 0; k < kTerms; ++k) found[k] = sum_lanes(total[k]);
}

}  // namespace softorder
