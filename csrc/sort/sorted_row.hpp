// A row in ascending order, and what infinities and NaN in it mean.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "sort/radix.hpp"
#include "fsum/places.hpp"

namespace softorder {

template <class T> constexpr T kInfinity = std::numeric_limits<T>::infinity();
template <class T> constexpr T kNan = std::numeric_limits<T>::quiet_NaN();

// First -inf, which is absent; finite scores; +inf, which is certain; or a NaN that spoils the row.
template <class T> struct SortedRow {
  const T* values;
  const std::int32_t* order;
  std::size_t n;
  std::size_t absent, finite;
  bool spoiled;

  SortedRow(const T* sorted, const std::int32_t* places, std::size_t size)
      : values(sorted),
        order(places),
        n(size),
        absent(partition_point(n, [this](std::size_t i) { return values[i] == -kInfinity<T>; })),
        finite(partition_point(n - absent, [this](std::size_t i) { return values[absent + i] < kInfinity<T>; })),
        spoiled(n > 0 && std::isnan(values[n - 1])) {}

  std::size_t present() const { return n - absent; }
  std::size_t certain() const { return present() - finite; }
  const T* finite_values() const { return values + absent; }
  const std::int32_t* finite_order() const { return order + absent; }

  // The ranks of the certain ones, who share theirs, and of the absent ones, who come last.
  void finish_ranks(T* out, bool descending) const {
    const double available = double(present());
    const double shared = 0.5 * (double(finite) + available + 1);
    for (std::size_t i = absent + finite; i < n; ++i) {
      out[order[i]] = T(descending ? available + 1 - shared : shared);
    }
    for (std::size_t i = 0; i < absent; ++i) out[order[i]] = T(0.5 * (available + 1 + double(n)));
  }
};

// Writes the scores of a row in ascending order, and where they came from; words has room for 2n.
template <class T>
void sort_row(const void* scores, std::size_t n, void* values, std::int32_t* order, Word* words, Team team) {
  using F = std::conditional_t<is_single<T>, Float32, Float64>;
  using Bits = typename F::Bits;
  const Bits* from = static_cast<const Bits*>(scores);
  Bits* to = static_cast<Bits*>(values);
  RowSorter<F> sorter(words, words + n, team);
  sorter.sort(from, n, [=](std::size_t place, typename F::Key key, std::size_t index) {
    to[place] = F::ambiguous(key) ? from[index] : F::bits(key);
    order[place] = static_cast<std::int32_t>(index);
  });
}

}  // namespace softorder
