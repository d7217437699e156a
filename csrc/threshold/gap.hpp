// Exactly k scores above b, and tails that underflow: any b in the gap between two scores fits the
// sum, but only one fits log p. There the logarithms of the two tail sums are balanced.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>

#include "threshold/sweep.hpp"

namespace softorder {

template <class F, class T> class Gap {
 public:
  // The gap that holds b; `scratch` has room for the row and two packs.
  Gap(const T* x, std::size_t n, Threshold<T> b, double temperature, T* scratch)
      : temperature_(temperature), list_(scratch) {
    find_edges(x, n, b);
    if (F::kTail == Tail::none || !std::isfinite(width())) return;
    list_scores(x, n);
    // hyperbolas have no unit: a larger one, in which nothing overflows, has the same balance
    if (F::kTail == Tail::hyperbola) temperature_ = std::max(temperature_, 1e-200 * width());
  }

  double low() const { return low_; }
  double width() const { return high_ - low_; }

  // How far above the lower edge b belongs.
  double balance() const {
    const double gap = width();
    double at = 0.5 * (gap - 2 * F::kMiddle * temperature_);
    if (F::kTail == Tail::none) return at;  // any b in the gap will do
    for (int turn = 0; turn < 8; ++turn) {
      const LogSum lower = log_sum(list_, lower_count_, low_, at, -1);
      const LogSum upper = log_sum(list_ + lower_count_, upper_count_, high_, gap - at, 1);
      if (!std::isfinite(lower.value) || !std::isfinite(upper.value)) break;  // beside a² numbers do not count
      double next = at + (lower.value - upper.value) / (lower.rate + upper.rate) * temperature_;
      if (F::kTail == Tail::hyperbola) {  // tails like A/at and B/(gap - at) balance at once
        const double most = std::max(lower.value, upper.value);
        const double below = std::exp(lower.value - most) * at, above = std::exp(upper.value - most) * (gap - at);
        next = gap * (below / (below + above));
      }
      const double move = std::clamp(next, 0.0, gap) - at;
      at += move;
      if (std::abs(move) <= 1e-12 * gap) break;
    }
    return at;
  }

 private:
  void find_edges(const T* x, std::size_t n, Threshold<T> b) {
    constexpr T infinity = std::numeric_limits<T>::infinity();
    const T middle = F::kMiddle * T(temperature_);
    Pack<T> low = Pack<T>{} - infinity, high = Pack<T>{} + infinity;
    for_packs(x, n, [&](Pack<T> scores, std::size_t, std::size_t) {
      const Mask<T> below = (scores - b.centre) - b.rest < middle;
      low = larger<T>(low, below ? scores : Pack<T>{} - infinity);
      high = smaller<T>(high, below ? Pack<T>{} + infinity : scores);
    });
    low_ = -infinity, high_ = infinity;
    for (std::size_t i = 0; i < kLanes<T>; ++i) {
      low_ = std::max<double>(low_, low[i]), high_ = std::min<double>(high_, high[i]);
    }
  }

  // The scores that count on either side: those so near to the edge that their tail is not nothing
  // beside its own.
  void list_scores(const T* x, std::size_t n) {
    const double most = std::numeric_limits<T>::max();
    const T reach = T(F::kTail == Tail::hyperbola ? most : std::min(most, 50 * temperature_));
    for (const bool upper : {false, true}) {
      T* list = list_ + (upper ? lower_count_ : 0);
      const T edge = T(upper ? high_ : low_);
      std::size_t count = 0;
      for_packs(x, n, [&](Pack<T> scores, std::size_t, std::size_t) {
        const Pack<T> beyond = upper ? scores - edge : edge - scores;
        count += append<T>(list + count, scores, (beyond >= T(0)) & (beyond <= reach));
      });
      (upper ? upper_count_ : lower_count_) = count;
    }
  }

  struct LogSum {
    double value, rate;
  };

  // log Σ F(-|x_i - b|/τ) over the scores on one side of the gap, and minus its slope in |x - b|/τ;
  // `edge` is the nearest of them, `distance` away from b.
  LogSum log_sum(const T* x, std::size_t n, double edge, double distance, int side) const {
    const double nearest = distance / temperature_, top = F::log_tail(nearest);
    double sum = 0, slope = 0;
    for (std::size_t i = 0; i < n; ++i) {
      const double beyond = side * (double(x[i]) - edge) / temperature_;
      const double weight = std::exp(F::log_tail(nearest + beyond) - top);
      sum += weight;
      slope += weight * F::log_slope(nearest + beyond);
    }
    return {top + std::log(sum), slope / sum};
  }

  double temperature_, low_, high_;
  T* list_;
  std::size_t lower_count_ = 0, upper_count_ = 0;
};

}  // namespace softorder
