// Weighted places of a row, and their Chebyshev moments.
#pragma once

#include "fsum/chebyshev.hpp"
#include "fsum/places.hpp"

namespace softorder {

// The weights of the sources; null: ones.
struct Weights {
  const double* data;

  Pack<double> load(std::size_t from, std::size_t count) const {
    if (data) return count == kLanes<double> ? softorder::load(data + from) : load_part(data + from, count, 0.0);
    double ones[kLanes<double>] = {};
    std::fill(ones, ones + count, 1.0);
    return softorder::load(ones);
  }

  // Those of the first 0, 1, ... m sources.
  Vector<double> prefix_sums(std::size_t m) const {
    Vector<double> sums(m + 1);
    for (std::size_t i = 0; i < m; ++i) sums[i + 1] = sums[i] + data[i];
    return sums;
  }
};

// The differences of `count` places from one, and 0 in the other lanes.
template <class T> Pack<double> differences(const Places<T>& places, std::size_t from, std::size_t count, double minus, double rest) {
  double found[kLanes<double>] = {};
  if (count == kLanes<double>) {
    for (std::size_t i = 0; i < kLanes<double>; ++i) found[i] = double(places.value[from + i]) - minus;
    if (places.rest) {
      for (std::size_t i = 0; i < kLanes<double>; ++i) found[i] += double(places.rest[from + i]);
    }
  } else {
    for (std::size_t i = 0; i < count; ++i) {
      found[i] = double(places.value[from + i]) - minus + (places.rest ? double(places.rest[from + i]) : 0.0);
    }
  }
  return load(found) - rest;
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
