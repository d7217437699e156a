// The levels of a row and what they weigh: the law of Pareto sampling as a sum over the level s of the last unit,
//
//   c_i = Σ_l w_l q_il      q_il = 1/(1 + e^(u_i + s_l))      w_l = step e^(k s_l) Π (1 + e^u_j)/(1 + e^(u_j + s_l))
//
// src/softorder/kernels/pareto/levels.py says why so few levels are enough, and where they are.
#pragma once

#include <algorithm>
#include <cmath>

#include "scratch.hpp"
#include "simd/exponential.hpp"
#include "simd/logarithm.hpp"

namespace softorder {

// 1/x of x >= 1, to a rounding or two: an estimate and two Newton steps where that is faster than dividing.
inline Pack<double> inverse_above_one(Pack<double> x) {
#if defined(__AVX512F__)
  const __m512d one = _mm512_set1_pd(1), first = _mm512_rcp14_pd(x);
  const __m512d second = _mm512_fmadd_pd(first, _mm512_fnmadd_pd(x, first, one), first);
  return Pack<double>(_mm512_fmadd_pd(second, _mm512_fnmadd_pd(x, second, one), second));
#else
  return 1.0 / x;
#endif
}

class ParetoLevels {
  using D = Pack<double>;

 public:
  static constexpr double kFarthest = 37, kLowest = 3 * kFarthest;  // of logits, and of levels
  static constexpr std::size_t kMost = 2048;

  explicit ParetoLevels(std::size_t n)
      : n_(n), length((n + kLanes<double> - 1) / kLanes<double> * kLanes<double>), odds_(length), levels_(2 * kMost) {}

  void find(const double* u, double size, bool fine) {
    size_ = size;
    write_odds(u);
    place(fine ? Rule{37, 0.7, 8, 12.5} : Rule{25, 0.8, 6, 9});
    double* const weight = levels_.get() + kMost;
    for (std::size_t l = 0; l < count; ++l) {
      const double level = low_ + step_ * double(l);
      levels_.get()[l] = std::exp(level);
      weight[l] = step_ * std::exp(size * level + log_all_ - log_risen(levels_.get()[l], level));
    }
  }

  const double* odds() const { return odds_.get(); }         // e^u; 0 behind the last unit
  const double* times() const { return levels_.get(); }      // e^s
  const double* weight() const { return levels_.get() + kMost; }
  D outside(D odds, std::size_t l) const { return inverse_above_one(1.0 + odds * times()[l]); }

 private:
  // What is below e^-digits is left out; kernels/pareto/levels.py has the same numbers.
  struct Rule {
    double digits, step, least, far;
  };

  struct End {
    double height, slope;
  };

  void write_odds(const double* u) {
    D variance{}, most = D{} - kFarthest;
    double logs = 0;
    for (std::size_t i = 0; i < length; i += kLanes<double>) {
      const std::size_t there = std::min(kLanes<double>, n_ - i);
      const D given = load_part(u + i, there, -1e300);
      const D held = given > kFarthest ? D{} + kFarthest : given < -kFarthest ? D{} - kFarthest : given;
      const D e = exp2_minus<double>(absolute<double>(held), D{} + std::numbers::log2e);
      const D odds = held > 0.0 ? 1.0 / e : e, rest = 1.0 / (1.0 + odds);
      most = larger<double>(most, held);
      D kept = odds;
      for (std::size_t lane = there; lane < kLanes<double>; ++lane) kept[lane] = 0;
      store<double>(odds_.get() + i, kept);
      variance += kept * rest * rest;
      logs += sum_lanes(log<double>(1.0 + kept));
    }
    variance_ = sum_lanes(variance), log_all_ = logs, most_ = largest_lane(most);
  }

  void place(const Rule& rule) {
    step_ = rule.step / std::sqrt(variance_ + rule.least);
    const double from = -rule.far * step_, to = -from;
    const End left = end(from), right = end(to);
    low_ = bounded(from - (rule.digits + std::max(most_, 0.0) + left.height) / left.slope, -kLowest, 0, -kLowest);
    const double high =
        bounded(to - (rule.digits + right.height) / right.slope, 0, kFarthest + rule.digits, kFarthest);
    const double steps = std::ceil((high - low_) / step_) + 1;
    count = steps >= 1 ? std::min(kMost, std::size_t(steps)) : 1;
  }

  static double bounded(double x, double least, double most, double otherwise) {
    return std::isfinite(x) ? std::clamp(x, least, most) : x > 0 ? most : x < 0 ? least : otherwise;
  }

  End end(double level) const {
    const double times = std::exp(level);
    D rest{};
    for (std::size_t i = 0; i < length; i += kLanes<double>) {
      rest += inverse_above_one(1.0 + load(odds_.get() + i) * times);
    }
    const double others = double(length - n_);  // whose odds are 0
    return {size_ * level + log_all_ - log_risen(times, level), size_ - double(n_) + (sum_lanes(rest) - others)};
  }

  // Σ log(1 + e^(u+s)): products save logarithms, as many as are finite.
  double log_risen(double times, double level) const {
    const double most = most_ + std::max(level, 0.0) + 1;
    const std::size_t few = most > 11 ? std::size_t(700 / most) : 64;
    double sum = 0;
    for (std::size_t i = 0; i < length;) {
      D product = D{} + 1.0;
      const std::size_t end = std::min(length, i + few * kLanes<double>);
      for (; i < end; i += kLanes<double>) product *= 1.0 + load(odds_.get() + i) * times;
      sum += sum_lanes(log<double>(product));
    }
    return sum;
  }

  std::size_t n_;
  double size_, variance_, log_all_, most_, step_, low_;

 public:
  const std::size_t length;  // n in whole packs
  std::size_t count = 0;     // of levels

 private:
  Scratch<double> odds_, levels_;
};

}  // namespace softorder
