// The same shares for the smooth densities, with u in τ: p below the score, q above it, w = p + q from one to the other.
//
// A share is e^-depth · share, so that it is there however far away the score is from both of its thresholds, and every
// density writes it as a product, as one integral or as one angle where F(above) - F(below) would cancel.
#pragma once

#include "densities.hpp"
#include "placement/share.hpp"

namespace softorder {

struct Parts {
  Pack<double> depth, share, kept;  // kept = 1 - share, exact where it is small
  Pack<double> below, above;        // f at both thresholds, times e^depth
};

// Parts of a score: Parts parts_of(Law, p, q, w).
template <class Law> class SmoothShare {
 public:
  explicit SmoothShare(double temperature) : inverse_(std::min(1 / temperature, kMost)) {}

  void losses(const Distances& at, std::size_t count, double* out) const {
    for (std::size_t k = 0; k < count; k += kLanes<double>) {
      const Parts parts = parts_at(at, k);
      store(out + k, parts.depth - log_of(parts));
    }
  }

  void rates(const Distances& at, std::size_t count, Rates& out) const {
    for (std::size_t k = 0; k < count; k += kLanes<double>) {
      const Parts parts = parts_at(at, k);
      const Pack<double> scale = 1.0 / parts.share;
      store(out.below + k, scale * parts.below);
      store(out.above + k, scale * parts.above);
    }
  }

 private:
  static constexpr double kMost = std::numeric_limits<double>::max();

  Parts parts_at(const Distances& at, std::size_t k) const {
    constexpr double kLeast = std::numeric_limits<double>::epsilon();  // thresholds that rounding made one
    const Pack<double> most = Pack<double>{} + kMost, least = Pack<double>{} + kLeast;
    const auto in_range = [=](Pack<double> u) { return smaller<double>(larger<double>(u, -most), most); };
    const Pack<double> p = in_range(load(at.below + k) * inverse_), q = in_range(load(at.above + k) * inverse_);
    Parts parts = parts_of(Law{}, p, q, larger<double>(in_range(load(at.width + k) * inverse_), least));
    parts.share = larger<double>(parts.share, Pack<double>{} + std::numeric_limits<double>::min());
    return parts;
  }

  // log(share), as log(1 - kept) where that is the smaller part.
  static Pack<double> log_of(const Parts& parts) {
    const Pack<double> rounded = 1.0 - parts.kept;
    const Mask<double> mostly = parts.share > 0.5;
    const Pack<double> missing = ((1.0 - rounded) - parts.kept) / rounded;
    return log<double>(mostly ? rounded : parts.share) + (mostly ? missing : Pack<double>{});
  }

  double inverse_;
};

inline Pack<double> exp_minus(Pack<double> x) { return exp2_minus<double>(x, Pack<double>{} + std::numbers::log2e); }

// (1 - e^-w)/((1 + e^-p)(1 + e^-q)): where p or q is negative, its e^-|u| is taken out.
inline Parts parts_of(Logistic<double>, Pack<double> p, Pack<double> q, Pack<double> w) {
  const Pack<double> none{};
  const Pack<double> e = exp_minus(absolute<double>(p)), d = exp_minus(absolute<double>(q));
  const Decay whole = decay(w);
  const Pack<double> over_p = 1.0 / (1.0 + e), over_q = 1.0 / (1.0 + d);
  const Pack<double> below = q < 0.0 ? whole.rest : p < 0.0 ? none + 1.0 : e;
  const Pack<double> above = p < 0.0 ? whole.rest : q < 0.0 ? none + 1.0 : d;
  return {larger<double>(larger<double>(-p, -q), none), whole.lost * (over_p * over_q), (e + d + e * d + whole.rest) * (over_p * over_q),
          below * (over_p * over_p), above * (over_q * over_q)};
}

// Thresholds that are near each other, beside 1/|u|: ∫ f around their middle m, with half of the width h, is
// w f(m) Σ_k He_2k(m) h^2k/(2k + 1)!, as far as k = 5, with He_(j+1) = m He_j - j He_(j-1). f(m) is taken out.
inline Parts near_parts(Pack<double> m, Pack<double> h) {
  constexpr double kFactorial[] = {6, 120, 5040, 362880, 39916800};
  const Pack<double> x = h * m, y = h * h;
  Pack<double> even = Pack<double>{} + 1.0, odd = x, series = even;  // He_j h^j
  for (int k = 0; k < 5; ++k) {
    even = x * odd - double(2 * k + 1) * y * even;
    odd = x * even - double(2 * k + 2) * y * odd;
    series += even * (1 / kFactorial[k]);
  }
  const Pack<double> fall = exp_minus(absolute<double>(x)), half = exp_minus(0.5 * y);
  const Pack<double> less = half * fall, more = half / fall;
  return {(0.5 * m) * m, 2.0 * h * series, Pack<double>{} + 1.0, x < 0.0 ? less : more, x < 0.0 ? more : less};
}

// The Mills ratio of any a >= 0: 1/a where a² would overflow. The loss may be infinite there, its slope a is not.
inline Pack<double> mills(Pack<double> a) {
  const Pack<double> most = Pack<double>{} + 1e150;
  return Normal<double>::mills(smaller<double>(a, most)) * (most / larger<double>(a, most));
}

// Elsewhere tails f M with the Mills ratio M, whose difference is then no smaller than they are, or what they leave of 1.
// Where both thresholds are on one side, f at the nearer one, at a, is taken out.
inline Parts wide_parts(Pack<double> p, Pack<double> q, Pack<double> w) {
  const Pack<double> none{}, one = none + 1.0;
  const Mask<double> lower = p < 0.0, upper = q < 0.0, aside = lower | upper;
  const Pack<double> a = lower ? -p : upper ? -q : p, b = aside ? a + w : q;  // to the first and to the second one
  const Pack<double> f = aside ? one : exp_minus((0.5 * a) * a), g = exp_minus(aside ? w * (0.5 * a + 0.5 * b) : (0.5 * b) * b);
  const Pack<double> tail = f * mills(a), other = g * mills(b);
  constexpr double height = std::numbers::inv_sqrtpi / std::numbers::sqrt2;
  const Pack<double> kept = height * (tail + other);
  const Pack<double> share = aside ? tail - other : (1.0 - kept) * (1 / height);
  return {aside ? (0.5 * a) * a : none, share, aside ? one : kept, upper ? g : f, upper ? f : g};
}

inline Parts parts_of(Normal<double>, Pack<double> p, Pack<double> q, Pack<double> w) {
  constexpr double height = std::numbers::inv_sqrtpi / std::numbers::sqrt2, kNear = 0.25;
  const Pack<double> none{}, m = 0.5 * q - 0.5 * p, h = 0.5 * w;
  const Mask<double> near = h * larger<double>(absolute<double>(m), none + 1.0) <= kNear;
  Parts parts = near_parts(near ? m : none, near ? h : none + kNear);
  if (any<double>(~near)) {
    const Parts wide = wide_parts(p, q, w);
    parts = {near ? parts.depth : wide.depth, near ? parts.share : wide.share, near ? parts.kept : wide.kept,
             near ? parts.below : wide.below, near ? parts.above : wide.above};
  }
  parts.share *= height, parts.below *= height, parts.above *= height;
  return parts;
}

// arctan(u)/u for u in [0, 1].
inline Pack<double> arctan_ratio(Pack<double> u) { return horner<double>(Polynomials<double>::kArctan, u * u); }

// scale/(1 + u²) for any u.
inline Pack<double> scaled_pi_pdf(Pack<double> u, Pack<double> scale) {
  const Pack<double> v = 1.0 / larger<double>(absolute<double>(u), Pack<double>{} + 1.0), inward = u * v;
  return scale * v * v / (v * v + inward * inward);
}

// The angle under which the score sees both thresholds, over π: arctan p + arctan q = arctan2(w, 1 - p q), and both sides
// of that are divided by the largest one of 1, |p| and |q|. Where 1 - p q still is more than 1, it is taken out.
inline Parts parts_of(Cauchy<double>, Pack<double> p, Pack<double> q, Pack<double> w) {
  constexpr double over_pi = std::numbers::inv_pi;
  const Pack<double> none{}, one = none + 1.0, most = none + 4e307;
  p = smaller<double>(larger<double>(p, -most), most), q = smaller<double>(larger<double>(q, -most), most), w = smaller<double>(w, most);
  const Pack<double> a = absolute<double>(p), b = absolute<double>(q), unit = 1.0 / larger<double>(larger<double>(a, b), one);
  const Pack<double> side = larger<double>(w * unit, none + std::numeric_limits<double>::min());
  const Pack<double> front = unit - (a > b ? (p * unit) * q : p * (q * unit)), length = absolute<double>(front);
  const Mask<double> narrow = side <= front, steep = side > length;
  const Pack<double> ratio = (steep ? length : side) / (steep ? side : length), series = over_pi * arctan_ratio(ratio), angle = ratio * series;
  const Pack<double> large = narrow ? larger<double>(front, one) : one;
  const Pack<double> kept = steep ? 0.5 + (front < 0.0 ? -angle : angle) : angle;
  const Pack<double> share = narrow ? side * (front > 1.0 ? one : 1.0 / front) * series : 1.0 - kept;
  const Pack<double> depth = any<double>(large > 1.0) ? log<double>(large) : none;
  return {depth, share, narrow ? 1.0 - share : kept, over_pi * scaled_pi_pdf(p, large), over_pi * scaled_pi_pdf(q, large)};
}

}  // namespace softorder
