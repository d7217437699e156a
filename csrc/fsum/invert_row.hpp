// One row of the equations Σ_i F((t_j - x_i)/τ) = level_j.
#pragma once

#include <limits>
#include <utility>

#include "fsum/places.hpp"

namespace softorder {

template <class T> struct InvertRow {
  using Scalar = T;
  const T* sources;
  const double* levels;
  T* centre;
  T* rest;
  std::size_t m, n;
  double temperature;

  void no_root(std::size_t j, double infinity) const { centre[j] = T(infinity), rest[j] = 0; }
  void root(std::size_t j, double at, double offset) const { centre[j] = T(at), rest[j] = T(offset); }

  double level(std::size_t j) const { return levels[j]; }
  // Root j is the offset from a source; here its slope is of no use.
  void settle(std::size_t j, std::size_t source, double offset, double) const { root(j, double(sources[source]), offset); }

  // The levels [low, high) that have a root; the others get their infinities.
  std::pair<std::size_t, std::size_t> rooted() const {
    constexpr double infinity = std::numeric_limits<double>::infinity();
    const std::size_t low = partition_point(n, [&](std::size_t j) { return levels[j] <= 0; });
    const std::size_t high = std::max(low, partition_point(n, [&](std::size_t j) { return levels[j] < double(m); }));
    for (std::size_t j = 0; j < low; ++j) no_root(j, -infinity);
    for (std::size_t j = high; j < n; ++j) no_root(j, infinity);
    return {low, high};
  }
};

}  // namespace softorder
