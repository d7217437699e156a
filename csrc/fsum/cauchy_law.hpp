// The Cauchy density as its fast F-sums want it: the kernels G, and their tables between boxes.
#pragma once

#include "densities.hpp"
#include "fsum/chebyshev.hpp"

namespace softorder {

// G(u) = u^moment F^(derivative)(u). Of F itself the step is left out, which is counted and not summed.
struct CauchyKernel {
  int derivative = 0, moment = 0;

  bool operator==(const CauchyKernel&) const = default;

  // G(-u)/G(u)
  double parity() const { return (derivative + moment) % 2 ? 1 : -1; }

  // With h = 1/(1 + u²): π f = h, π f' = -2 u h² and π f'' = (6 - 8h) h². Every h takes a u along while there is
  // one, so that nothing leaves the range of numbers before G does.
  Pack<double> operator()(Pack<double> u) const {
    if (derivative == 0) return tail(u);
    const int powers = moment + (derivative == 2);  // of u
    const Pack<double> most = Pack<double>{} + 1e150;
    u = smaller<double>(larger<double>(u, -most), most);
    const Pack<double> h = pi_pdf(u), v = u * h;
    Pack<double> g = std::numbers::inv_pi * (powers > 0 ? v : h);
    if (derivative > 1) g *= powers > 1 ? v : h;
    if (derivative == 2) g *= -2.0;
    if (derivative == 3) g *= 6.0 - 8.0 * h;
    return powers > 2 ? g * u : g;
  }

  static Pack<double> pi_pdf(Pack<double> u) { return inverse<double>(1.0 + u * u); }
  // f'/f, which is 0 far out.
  static Pack<double> fall(Pack<double> u) {
    const Pack<double> v = smaller<double>(larger<double>(u, Pack<double>{} - 1e150), Pack<double>{} + 1e150);
    return -2.0 * v * pi_pdf(v);
  }

  // F(u) less its step: arctan(1/|u|)/π, negative for u >= 0.
  static Pack<double> tail(Pack<double> u) {
    const Pack<double> a = absolute<double>(u), one = Pack<double>{} + 1;
    const Mask<double> inner = a < 1;
    const Pack<double> small = (inner ? a : one) / (inner ? one : a);
    const Pack<double> angle = std::numbers::inv_pi * small * horner<double>(Polynomials<double>::kArctan, small * small);
    const Pack<double> tail = inner ? 0.5 - angle : angle;
    return u < 0 ? tail : -tail;
  }
};

// The tables of one kernel and one width of boxes (in τ) between two boxes of a level, made when first asked for
// and kept from row to row.
//
// Boxes that are at most kNear apart meet in the next narrower level, or at the narrowest by a table of their own.
template <class T> class CauchyTables {
 public:
  static constexpr int kNear = is_single<T> ? 1 : 3;
  static constexpr double kBox = is_single<T> ? 2.0 / 3 : 1.0 / 3;  // in τ

  void prepare(const CauchyKernel& kernel, double width) {
    if (kernel == kernel_ && width == width_) return;
    kernel_ = kernel, width_ = width;
    levels_.clear();
    near_.clear();
  }

  const CauchyKernel& kernel() const { return kernel_; }
  const Chebyshev& basis() const { return basis_; }

  // Between boxes more than kNear apart.
  void make_far(int level) {
    if (levels_.size() <= std::size_t(level)) levels_.resize(std::size_t(level) + 1);
    Vector<double>& tables = levels_[std::size_t(level)];
    if (!tables.empty()) return;
    tables.resize(kSize * (kNear + 1));
    const double wide = std::ldexp(width_, level);
    for (int i = 0; i <= kNear; ++i) {
      fit_kernel(basis_, kernel_, (kNear + 1 + i) * wide, 0.5 * wide, tables.data() + kSize * std::size_t(i));
    }
  }
  const double* far(int level, int apart) const {
    return levels_[std::size_t(level)].data() + kSize * std::size_t(apart - kNear - 1);
  }

  // Between the narrowest boxes; F in a box with itself is F less 1/2.
  void make_near() {
    if (!near_.empty()) return;
    near_.resize(kSize * (kNear + 1));
    const auto inner = [&](Pack<double> u) { return kernel_.derivative == 0 ? rounded(u, 0.5) : kernel_(u); };
    const auto beside = [&](Pack<double> u) { return kernel_.derivative == 0 ? rounded(u, 0) : kernel_(u); };
    fit_kernel(basis_, inner, 0, 0.5 * width_, near_.data());
    for (int apart = 1; apart <= kNear; ++apart) {
      fit_kernel(basis_, beside, apart * width_, 0.5 * width_, near_.data() + kSize * std::size_t(apart));
    }
  }
  const double* near(int apart) const { return near_.data() + kSize * std::size_t(apart); }

 private:
  static constexpr std::size_t kSize = kTerms * kTerms;

  // F less its step and, in one box (middle = 1/2), less that of a half. All sources share the errors of these
  // tables: they are as good as they can be.
  static Pack<double> rounded(Pack<double> u, double middle) {
    for (std::size_t i = 0; i < kLanes<double>; ++i) {
      const double above = middle - std::atan2(1, std::fabs(u[i])) * std::numbers::inv_pi;
      u[i] = u[i] < 0 ? -above : above;
    }
    return u;
  }

  Chebyshev basis_;
  CauchyKernel kernel_;
  double width_ = 0;
  Vector<Vector<double>> levels_;
  Vector<double> near_;
};

}  // namespace softorder
