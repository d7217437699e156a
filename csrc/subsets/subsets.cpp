// The law P(x) ∝ e^<θ,x> over the subsets of size k: log P(x), and its gradient x - E[x].
//
// With u = θ - b such that p = σ(u) sums to k, and S a sum of independent Bernoulli(p_i),
//
//   log P(x) = Σ log σ(±u_i) - log P(S = k)      P(S = k) = Re Σ_l share_l e^(-i k t_l) φ(t_l)
//   φ(t) = Π (q_j + p_j e^(it))                  E[x_i] = Re Σ_l g_l σ(u_i + i t_l)
//
// over a few points t_l of a circle, g_l being the terms of the sum over their total:
// src/softorder/kernels/subsets/circle.py says why so few are enough. b need not be exact, since nothing
// depends on it, so that it is found in the precision of θ; everything else of the way there is double.
#include "kernels.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "formats.hpp"
#include "one_entry/law.hpp"
#include "scratch.hpp"
#include "team.hpp"
#include "threshold/sweep.hpp"

namespace softorder {
namespace {

using std::numbers::pi;

constexpr double kOne = 1;

template <class T> Threshold<T> shift_at(const void* b, std::size_t rows, std::size_t row) {
  return {static_cast<const T*>(b)[row], static_cast<const T*>(b)[rows + row]};
}

// u of a row, by the conventions of thresholds.
template <class T, class U> void write_logits(const T* x, U* u, std::size_t n, Threshold<T> b) {
  if (!std::isfinite(b.centre)) {
    for (std::size_t i = 0; i < n; ++i) u[i] = U(distance_to(x[i], b, 1.0));
    return;
  }
  const U centre = U(b.centre), rest = U(b.rest);
#pragma omp simd
  for (std::size_t i = 0; i < n; ++i) u[i] = (U(x[i]) - centre) - rest;
}

template <class T> struct Chances {
  Pack<T> p, q, rise;  // σ(u), σ(-u), 1 + e^-|u|
};

template <class T> inline Chances<T> chances_of(Pack<T> u) {
  const Pack<T> e = exp2_minus<T>(absolute<T>(u), Pack<T>{} + std::numbers::log2e_v<T>);
  const Pack<T> rise = T(1) + e, large = T(1) / rise, small = e * large;
  const Mask<T> above = u >= T(0);
  return {above ? large : small, above ? small : large, rise};
}

template <class T> std::size_t padded(std::size_t n) { return (n + kLanes<T> - 1) / kLanes<T> * kLanes<T>; }

// ---- the points

struct Circle {
  double around;
  std::size_t count;
  double angle(std::size_t l) const { return 2 * pi * double(l) / around; }
  double share(std::size_t l) const { return (l == 0 ? 1 : 2) / around; }
};

Circle points_for(double variance, std::size_t n, double digits, std::size_t most) {
  const double third = digits / 3, wide = third + std::sqrt(third * third + 2 * digits * variance);
  const double half = std::ceil(std::min(wide, double(n)) / 2), around = 2 * half + 1;
  const double reach = 2 * std::asin(std::sqrt(digits / 2 / std::max(variance, digits / 2)));
  const double needed = std::min(half, std::ceil(reach * around / (2 * pi))) + 1;
  if (!(needed >= 1)) return {1, 1};  // NaN
  return {around, std::min(most, static_cast<std::size_t>(needed))};
}

// ---- forward

struct Complex {
  double re, im;
  Complex operator*(Complex o) const { return {re * o.re - im * o.im, re * o.im + im * o.re}; }
};

// Several points at once: one product after another would wait for the one before.
template <std::size_t N> void multiply_out(const double* p, const double* q, std::size_t n, const double* angle, Complex* phi) {
  using D = Pack<double>;
  D re[N], im[N];
  double cosine[N], sine[N];
  for (std::size_t l = 0; l < N; ++l) {
    re[l] = D{} + 1.0, im[l] = D{};
    cosine[l] = std::cos(angle[l]), sine[l] = std::sin(angle[l]);
  }
  for (std::size_t i = 0; i < n; i += kLanes<double>) {
    const D chance = load(p + i), other = load(q + i);
#pragma GCC unroll 4
    for (std::size_t l = 0; l < N; ++l) {
      const D a = other + cosine[l] * chance, b = sine[l] * chance, before = re[l];
      re[l] = before * a - im[l] * b;
      im[l] = before * b + im[l] * a;
    }
  }
  for (std::size_t l = 0; l < N; ++l) {
    phi[l] = {1, 0};
    for (std::size_t lane = 0; lane < kLanes<double>; ++lane) phi[l] = phi[l] * Complex{re[l][lane], im[l][lane]};
  }
}

void characteristic(const double* p, const double* q, std::size_t n, const double* angle, std::size_t count, Complex* phi) {
  std::size_t l = 0;
  for (; l + 4 <= count; l += 4) multiply_out<4>(p, q, n, angle + l, phi + l);
  for (; l + 2 <= count; l += 2) multiply_out<2>(p, q, n, angle + l, phi + l);
  if (l < count) multiply_out<1>(p, q, n, angle + l, phi + l);
}

// Room for a row of doubles thrice, each in whole packs.
struct Room {
  explicit Room(std::size_t n) : length(padded<double>(n)), memory(3 * length) {}
  double* u() const { return memory.get(); }
  double* p() const { return memory.get() + length; }
  double* q() const { return memory.get() + 2 * length; }
  std::size_t length;
  Scratch<double> memory;
};

struct RowSum {
  double log_rise = 0, variance = 0;  // Σ log(1 + e^-|u|), Σ p q
};

RowSum write_chances(const Room& room) {
  constexpr std::size_t kSafe = 512;  // 2^512 is a double
  RowSum sums;
  Pack<double> product = Pack<double>{} + 1.0, variance{};
  const auto take = [&] {
    for (std::size_t lane = 0; lane < kLanes<double>; ++lane) sums.log_rise += std::log(product[lane]);
    product = Pack<double>{} + 1.0;
  };
  for (std::size_t i = 0; i < room.length; i += kLanes<double>) {
    const Chances<double> at = chances_of<double>(load(room.u() + i));
    store<double>(room.p() + i, at.p), store<double>(room.q() + i, at.q);
    product *= at.rise, variance += at.p * at.q;
    if ((i / kLanes<double> + 1) % kSafe == 0) take();
  }
  take();
  sums.variance = sum_lanes(variance);
  return sums;
}

// Σ log σ(±u_i) for what is drawn and what is not; -inf for another number of units.
template <class T> double log_chance(const T* draw, const double* u, std::size_t n, double size, double log_rise) {
  double total = 0, taken = 0;
#pragma omp simd reduction(+ : total, taken)
  for (std::size_t i = 0; i < n; ++i) {
    const double x = double(draw[i]), side = x > 0 ? u[i] : -u[i];
    total += side < 0 ? side : (side == side ? 0 : side);
    taken += x;
  }
  return taken == size ? total - log_rise : -std::numeric_limits<double>::infinity();
}

template <class T> void forward_row(const SubsetsForward& a, std::size_t row, const Room& room) {
  const T* x = static_cast<const T*>(a.logits) + row * a.n;
  write_logits(x, room.u(), a.n, shift_at<T>(a.b, a.rows, row));
  std::fill(room.u() + a.n, room.u() + room.length, -std::numeric_limits<double>::infinity());
  const RowSum sums = write_chances(room);
  const Circle circle = points_for(sums.variance, a.n, is_single<T> ? 25.0 : 37.0, a.points);
  double* angle = a.angle + row * a.points;
  double* weight = a.weight + 2 * row * a.points;
  for (std::size_t l = 0; l < a.points; ++l) angle[l] = circle.angle(l);
  Complex phi[64] = {{1, 0}};  // at t = 0
  if (sums.variance != sums.variance) phi[0].re = sums.variance;
  characteristic(room.p(), room.q(), room.length, angle + 1, circle.count - 1, phi + 1);
  double mass = 0;
  for (std::size_t l = 0; l < circle.count; ++l) {
    const double turn = angle[l] * a.size[row];
    phi[l] = phi[l] * Complex{circle.share(l) * std::cos(turn), -circle.share(l) * std::sin(turn)};
    mass += phi[l].re;
  }
  for (std::size_t l = 0; l < a.points; ++l) {
    weight[2 * l] = l < circle.count ? phi[l].re / mass : 0;
    weight[2 * l + 1] = l < circle.count ? phi[l].im / mass : 0;
  }
  const double log_mass = std::log(mass);
  for (std::size_t draw = 0; draw < a.count; ++draw) {
    const std::size_t at = draw * a.rows + row;
    const T* chosen = static_cast<const T*>(a.draws) + at * a.n;
    a.log_prob[at] = log_chance(chosen, room.u(), a.n, a.size[row], sums.log_rise) - log_mass;
  }
}

template <class T> void forward(const SubsetsForward& a) {
  T* centre = static_cast<T*>(a.b);
  topk_forward({.scores = a.logits,
                .k = a.size,
                .temperature = &kOne,
                .centre = centre,
                .rest = centre + a.rows,
                .rows = a.rows,
                .n = a.n,
                .k_stride = 1,
                .density = static_cast<std::int32_t>(Density::logistic),
                .format = format_of<T>(),
                .threads = a.threads});
  for_rows(a.rows, 8 * a.n, a.threads, [&](std::size_t begin, std::size_t end, Team) {
    const Room room(a.n);
    for (std::size_t row = begin; row < end; ++row) forward_row<T>(a, row, room);
  });
}

// ---- backward

// The points of a row: E[x] = p (q Σ ahead R + p Σ here R) with R = 1/(1 + chord p q).
template <class T> struct Means {
  T chord[64], ahead[64], here[64];
  std::size_t count = 0;

  Means(const double* angle, const double* weight, std::size_t points) {
    for (std::size_t l = 0; l < points; ++l) {
      const double re = weight[2 * l], im = weight[2 * l + 1];
      if (l > 0 && re == 0 && im == 0) continue;
      const double half = std::sin(angle[l] / 2);
      chord[count] = T(-4 * half * half), here[count] = T(re);
      ahead[count++] = T(re * std::cos(angle[l]) - im * std::sin(angle[l]));
    }
  }

  Pack<T> at(const Chances<T>& unit) const {
    const Pack<T> variance = unit.p * unit.q;
    Pack<T> before{}, now{};
    for (std::size_t l = 0; l < count; ++l) {
      const Pack<T> nearness = inverse<T>(T(1) + chord[l] * variance);
      before += ahead[l] * nearness, now += here[l] * nearness;
    }
    return unit.p * (unit.q * before + unit.p * now);
  }
};

template <class T> void backward_row(const SubsetsBackward& a, std::size_t row, T* u) {
  write_logits(static_cast<const T*>(a.logits) + row * a.n, u, a.n, shift_at<T>(a.b, a.rows, row));
  const Means<T> means(a.angle + row * a.points, a.weight + 2 * row * a.points, a.points);
  T* out = static_cast<T*>(a.gradient) + row * a.n;
  std::fill_n(out, a.n, T(0));
  double total = 0;
  for (std::size_t draw = 0; draw < a.count; ++draw) {
    const T* chosen = static_cast<const T*>(a.draws) + (draw * a.rows + row) * a.n;
    double taken = 0;
#pragma omp simd reduction(+ : taken)
    for (std::size_t i = 0; i < a.n; ++i) taken += double(chosen[i]);
    if (taken != a.size[row]) continue;  // cannot be drawn, wherever the logits go
    const double upstream = a.upstream[draw * a.rows + row];
    const T factor = T(upstream);
    total += upstream;
#pragma omp simd
    for (std::size_t i = 0; i < a.n; ++i) out[i] += factor * chosen[i];
  }
  for_packs(u, a.n, [&](Pack<T> logits, std::size_t i, std::size_t count) {
    const Pack<T> drawn = count == kLanes<T> ? load(out + i) : load_part(out + i, count, T(0));
    const Pack<T> gradient = drawn - T(total) * means.at(chances_of<T>(logits));
    const Mask<T> certain = absolute<T>(logits) == std::numeric_limits<T>::infinity();
    const Pack<T> result = certain ? Pack<T>{} : gradient;
    std::memcpy(out + i, &result, count * sizeof(T));
  });
}

template <class T> void backward(const SubsetsBackward& a) {
  for_rows(a.rows, 8 * a.n, a.threads, [&](std::size_t begin, std::size_t end, Team) {
    const Scratch<T> u(a.n);
    for (std::size_t row = begin; row < end; ++row) backward_row<T>(a, row, u.get());
  });
}

}  // namespace

void subsets_forward(const SubsetsForward& a) {
  if (a.points > 64) throw unknown_choice();
  const NoDenormals guard;
  return a.wide ? forward<double>(a) : forward<float>(a);
}

void subsets_backward(const SubsetsBackward& a) {
  if (a.points > 64) throw unknown_choice();
  const NoDenormals guard;
  return a.wide ? backward<double>(a) : backward<float>(a);
}

}  // namespace softorder
