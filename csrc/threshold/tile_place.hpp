// What the threshold of a short row needs to know of k and of how many scores take part, and nothing else of the row.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>

#include "densities.hpp"

namespace softorder {

// k = whole + part. Quantiles of F, where a bracket or a guess wants them, and of the normal density.
template <class T> struct PlaceNumbers {
  double k = -1, n = -1;
  int valid = 0;
  T whole, part, most, most_left, part_quantile, low, high, own, bell;
};

// The last ones of many.
template <class F, class T> class KnownPlaces {
 public:
  const PlaceNumbers<T>& of(double k, double n) {
    const double within = k > 0 ? std::min(k, n) : 0;
    PlaceNumbers<T>& known = numbers_[(std::size_t(within) + 5 * std::size_t(n)) % kKnown];
    if (known.k == k && known.n == n) return known;
    // a k that T cannot tell from a whole number, but is none, has its gap left to the search of one row
    const bool told = k == std::round(k) || T(std::floor(k)) + T(k - std::floor(k)) != T(std::round(k));
    known.k = k, known.n = n, known.valid = k > 0 && k < n && told ? -1 : 0;
    if (!known.valid) n = std::max(n, 1.0), k = 0.5 * n;
    const double whole = std::floor(k), part = k - whole, last = part > 0 ? part : 1;
    known.whole = T(whole), known.part = T(part);
    known.most = k < 1 ? T(k) : kInfinite, known.most_left = n - k < 1 ? T(n - k) : kInfinite;
    known.part_quantile = T(part > 0 ? F::quantile(part) : 0);
    known.low = T(F::quantile(1 - std::min(0.5, (1 - part) / (whole + 1))));
    known.high = T(F::quantile(std::min(0.5, last / (n - std::ceil(k) + 1))));
    known.own = T(F::quantile(k / n)), known.bell = T(-Normal<double>::quantile(k / n));
    return known;
  }

 private:
  static constexpr T kInfinite = std::numeric_limits<T>::infinity();
  static constexpr std::size_t kKnown = 64;
  PlaceNumbers<T> numbers_[kKnown];
};

}  // namespace softorder
