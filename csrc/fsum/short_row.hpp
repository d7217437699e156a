// The sources of a short row, all of which are summed at every target: no term is looked for or left out, so that
// nothing but the terms is to be computed.
#pragma once

#include "fsum/moments.hpp"
#include "scratch.hpp"

namespace softorder {

// As doubles, in whole packs: behind the last source there are some of weight 0.
class ShortRow {
 public:
  ShortRow() = default;
  template <class T> ShortRow(const Places<T>& x, const Weights& weights, std::size_t m)
      : packs_((m + kLanes<double> - 1) / kLanes<double>), value_(wide(x.value, m)) {
    if (x.rest) rest_ = wide(x.rest, m);
    weight_.resize(value_.size());
    for (std::size_t i = 0; i < m; ++i) weight_[i] = weights.data ? weights.data[i] : 1;
  }

  bool empty() const { return value_.empty(); }

  // Calls visit(x_i - t, w_i) for all of them, a pack at a time, with t = value + rest.
  template <class Visit> [[gnu::always_inline]] void each(double value, double rest, Visit visit) const {
    rest_.empty() ? each<false>(value, rest, visit) : each<true>(value, rest, visit);
  }

 private:
  template <bool kRest, class Visit> [[gnu::always_inline]] void each(double value, double rest, Visit visit) const {
    for (std::size_t i = 0; i < packs_; ++i) {
      const std::size_t at = i * kLanes<double>;
      Pack<double> apart = load(value_.data() + at) - value;
      if (kRest) apart += load(rest_.data() + at);
      visit(apart - rest, load(weight_.data() + at));
    }
  }

  // The last one is repeated behind them.
  template <class T> Vector<double> wide(const T* from, std::size_t m) const {
    Vector<double> made(packs_ * kLanes<double>);
    for (std::size_t i = 0; i < made.size(); ++i) made[i] = double(from[std::min(i, m - 1)]);
    return made;
  }

  std::size_t packs_ = 0;
  Vector<double> value_, rest_, weight_;
};

}  // namespace softorder
