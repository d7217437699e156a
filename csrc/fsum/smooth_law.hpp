// What the fast F-sums of smooth densities ask of a density, beside its values.
#pragma once

#include <cmath>
#include <numbers>

#include "densities.hpp"

namespace softorder {

// A box is a stretch of the row so short that the kernel between two boxes is a polynomial to working
// precision; boxes that are at most kNear boxes apart meet at that width, others as boxes twice as
// wide, or four times, and so on. Further than the reach, a term does not matter beside one at
// distance d; boxes reckon with d <= kAlone. tail(a) = F(-a), better rounded than that of packs. All
// lengths are in units of τ.
template <class Law> struct Smooth;

template <> struct Smooth<Logistic<double>> {
  static constexpr double kBox = 1;
  static constexpr int kNear = 3;
  static constexpr double kAlone = 15;
  static double tail(double a) { return 1 / (1 + std::exp(a)); }
  static double reach(double d, int moment) { return d + 44 + 4 * moment; }
};

template <> struct Smooth<Normal<double>> {
  static constexpr double kBox = 1;
  static constexpr int kNear = 13;
  static constexpr double kAlone = 4;
  static double tail(double a) { return 0.5 * std::erfc(a * std::numbers::sqrt2 / 2); }
  static double reach(double d, int moment) { return std::sqrt(d * d + (moment == 0 ? 90 : 92)); }
};

// G(u) = u^moment F^(derivative)(u). Of F itself the step is left out, which is counted and not summed.
template <class Law> struct SmoothKernel {
  int derivative = 0, moment = 0;

  bool operator==(const SmoothKernel&) const = default;

  // G(-u)/G(u)
  double parity() const { return (derivative + moment) % 2 ? 1 : -1; }
  double reach(double d) const { return Smooth<Law>::reach(d, moment); }

  Pack<double> operator()(Pack<double> u) const {
    switch (derivative) {
      case 0: return of<0>(u);
      case 1: return of<1>(u);
      case 2: return of<2>(u);
      default: return of<3>(u);
    }
  }

  // The same, with the derivative known to the compiler.
  template <int kDerivative> [[gnu::always_inline]] Pack<double> of(Pack<double> u) const {
    const Values<double> v = Law::values(absolute<double>(u), Pack<double>{} + Law::kUnit);
    Pack<double> g = v.pdf;
    if constexpr (kDerivative == 0) g = u < 0 ? v.tail : -v.tail;
    if constexpr (kDerivative == 2) g = u < 0 ? v.drop : -v.drop;
    if constexpr (kDerivative == 3) g = v.pdf * (Law::kThird[0] + Law::kThird[1] * v.third);
    for (int m = 0; m < moment; ++m) g *= u;
    return g;
  }
};

}  // namespace softorder
