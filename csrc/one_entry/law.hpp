// One entry of a row in double: u, log F(u), its derivative, and log f(u), for every density.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "densities.hpp"
#include "threshold/far.hpp"

namespace softorder {

// As the contract of thresholds has it: a NaN spoils its row, x = -inf never takes part, and b = +inf says what x = +inf gets.
template <class T> double distance_to(T score, Threshold<T> b, double temperature) {
  if (std::isnan(b.centre) || std::isnan(b.rest)) return std::numeric_limits<double>::quiet_NaN();
  if (std::isinf(score) && score < 0) return -std::numeric_limits<double>::infinity();
  const double x = score, centre = b.centre, rest = b.rest;
  const double scale = std::min(1 / temperature, std::numeric_limits<double>::max());
  if (x == centre) return -rest * scale;
  if (!std::isfinite(centre)) return (x - centre) * scale;
  return distance_from<double>(x, {centre, rest}, scale);
}

// F(-a) and f(a) for a >= 0.
struct TailAndPdf {
  double tail, pdf;
};

inline TailAndPdf tail_and_pdf(Laplace<double>, double a) {
  const double tail = 0.5 * std::exp(-a);
  return {tail, tail};
}

inline TailAndPdf tail_and_pdf(Logistic<double>, double a) {
  const double e = std::exp(-a), tail = e / (1 + e);
  return {tail, tail / (1 + e)};
}

inline TailAndPdf tail_and_pdf(Normal<double>, double a) {
  constexpr double height = std::numbers::inv_sqrtpi / std::numbers::sqrt2;
  return {0.5 * std::erfc(a / std::numbers::sqrt2), height * std::exp(-0.5 * a * a)};
}

inline TailAndPdf tail_and_pdf(Cauchy<double>, double a) {
  return {std::numbers::inv_pi * std::atan2(1, a), std::numbers::inv_pi / (1 + a * a)};  // 0 far out, as a tail is
}

template <class F> double log_cdf(F law, double u) {
  if (std::isinf(u)) return u < 0 ? u : 0;
  return u < 0 ? F::log_tail(-u) : std::log1p(-tail_and_pdf(law, u).tail);
}

// f/F, the derivative of log F.
template <class F> double rate(F law, double u) {
  if (u < 0) return F::log_slope(-u);
  const auto [tail, pdf] = tail_and_pdf(law, u);
  return pdf / (1 - tail);
}

inline double log_cdf(Uniform<double>, double u) {
  return u <= 0 ? -std::numeric_limits<double>::infinity() : u >= 1 ? 0 : std::log(u);
}

inline double rate(Uniform<double>, double u) { return u > 0 && u < 1 ? 1 / u : 0; }

inline double log_pdf(Laplace<double>, double u) { return -std::abs(u) - std::numbers::ln2; }

inline double log_pdf(Logistic<double>, double u) {
  return -std::abs(u) - 2 * std::log1p(std::exp(-std::abs(u)));
}

inline double log_pdf(Normal<double>, double u) {
  return -0.5 * u * u + std::log(std::numbers::inv_sqrtpi / std::numbers::sqrt2);
}

inline double log_pdf(Cauchy<double>, double u) { return std::log(std::numbers::inv_pi) - 2 * std::log(std::hypot(1, u)); }

inline double log_pdf(Uniform<double>, double u) {
  return u > 0 && u < 1 ? 0 : -std::numeric_limits<double>::infinity();
}

}  // namespace softorder
