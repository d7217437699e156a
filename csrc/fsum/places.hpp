// Sorted places on the real line, and the one row of an F-sum.
#pragma once

#include <algorithm>
#include <cstddef>

#include "simd/pack.hpp"

namespace softorder {

// Each place is an unevaluated sum of two scalars, or of one: rest may be null. Differences are
// taken in double, where those of floats are exact and those of near doubles are, too.
template <class T> struct Places {
  const T* value;
  const T* rest;

  template <class U> double minus(std::size_t i, const Places<U>& other, std::size_t j) const {
    double difference = double(value[i]) - double(other.value[j]);
    if (rest) difference += double(rest[i]);
    if (other.rest) difference -= double(other.rest[j]);
    return difference;
  }
};

template <class T> struct FsumRow {
  Places<T> sources, targets;
  const T* weights;  // may be null: ones
  T* out;
  std::size_t m, n;
  double temperature;
  int derivative, moment;

  double weight(std::size_t i) const { return weights ? double(weights[i]) : 1.0; }
  bool at_sources() const { return targets.value == sources.value && targets.rest == sources.rest && m == n; }
};

// In the first n places `before` holds and then it does not: n.
template <class Before> std::size_t partition_point(std::size_t count, Before before) {
  std::size_t low = 0;
  while (count > 0) {
    const std::size_t half = count / 2;
    if (before(low + half)) {
      low += half + 1, count -= half + 1;
    } else {
      count = half;
    }
  }
  return low;
}

// e^-(distance/τ) of a block, in place. There is room for one more pack behind it.
inline void decays(double* distances, std::size_t count, double temperature) {
  const double scale = std::min(1.4426950408889634 / temperature, std::numeric_limits<double>::max());
  const Pack<double> scales = Pack<double>{} + scale;
  for (std::size_t i = 0; i < count; i += kLanes<double>) {
    store(distances + i, exp2_minus<double>(load(distances + i), scales));
  }
}

}  // namespace softorder
