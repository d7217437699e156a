// Where a threshold is, and the interval around it, in double precision.
#pragma once

#include <limits>

#include "threshold/sweep.hpp"

namespace softorder {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// The threshold as an unevaluated sum of two doubles: a row near 10^6 with τ = 10^-6 needs it.
struct TwoDoubles {
  double high = 0, low = 0;

  void add(double d) {
    const double sum = high + d;
    const double part = sum - high;
    const double error = (high - (sum - part)) + (d - part);
    const double tail = low + error;
    high = sum + tail;
    low = tail - (high - sum);
  }
  template <class T> Threshold<T> split() const {
    const T centre = static_cast<T>(high);
    return {centre, static_cast<T>((high - centre) + low)};
  }
};

// An interval around the root, with the residuals at its ends.
template <class T> struct Bracket {
  double low, high;
  double low_residual = kInfinity, high_residual = -kInfinity;
  bool halve = true;  // whether it was the middle last time

  void update(double at, double residual) {
    if (residual >= 0 && at >= low) low = at, low_residual = residual;
    if (residual <= 0 && at <= high) high = at, high_residual = residual;
  }
  void cut(double lowest, double highest) {
    if (low < lowest) low = lowest, low_residual = kInfinity;
    if (high > highest) high = highest, high_residual = -kInfinity;
  }
  double width() const { return high - low; }
  // Whether `at` is an end whose residual has been seen: rounding allows nothing between the ends.
  bool knows(double at) const {
    return (at == low && low_residual < kInfinity) || (at == high && high_residual > -kInfinity);
  }
  double middle() const { return double(T(0.5 * (low + high))); }
  // `wanted` where it lies inside; else the middle and the false position by turns. Only where the
  // sum is `linear` may the latter be very near to an end.
  double inside(double wanted, bool linear) {
    if (wanted > low && wanted < high) return wanted;
    const double share = low_residual / (low_residual - high_residual), least = linear ? 0 : 0.02;
    halve = !halve || !(share > least && share < 1 - least);
    return low + width() * (halve ? 0.5 : share);
  }
};

}  // namespace softorder
