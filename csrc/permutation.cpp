// Rows of soft permutation matrices and their vector-Jacobian product, for every density: one F or one
// f per entry. All in double: a row of P is a sum of n small differences, and an F whose last bit is
// always off in the same sense would show in it.
#include "kernels.hpp"

#include <cmath>

#include "failure.hpp"
#include "scratch.hpp"
#include "sweep.hpp"
#include "team.hpp"

namespace softorder {
namespace {

constexpr std::size_t padded(std::size_t n) {
  return (n + kLanes<double> - 1) / kLanes<double> * kLanes<double>;
}

// Signed tails: F(u) = g for u < 0 and 1 + g for u >= 0. Differences of g are exact where F is near 1.
template <class F> class Edge {
 public:
  Edge(const Permutation& a, std::size_t row)
      : centre_(a.centre + row * (a.k + 1)), rest_(a.rest + row * (a.k + 1)) {
    const double temperature = a.temperature[row * a.temperature_stride];
    scale_ = scale_of<F, double>(temperature);
    shift_ = F::kMiddle == 0 ? 0.0 : F::kMiddle * temperature;
  }
  bool finite(std::size_t j) const { return std::isfinite(centre_[j]); }

  // g for threshold j and every score; `above` says where u >= 0, as 1 or 0.
  void tails(std::size_t j, const double* x, std::size_t n, double* g, double* above) const {
    for (std::size_t i = 0; i < n; i += kLanes<double>) {
      const Pack<double> z = distance(j, load(x + i)), none = {};
      const Pack<double> tail = values_at<F, double>(z + shift_, none + scale_).tail;
      store(g + i, z < 0.0 ? tail : -tail);
      store(above + i, z < 0.0 ? none : none + 1.0);
    }
  }
  // f for threshold j and every score.
  void slopes(std::size_t j, const double* x, std::size_t n, double* f) const {
    for (std::size_t i = 0; i < n; i += kLanes<double>) {
      const Pack<double> z = distance(j, load(x + i)), none = {};
      store(f + i, values_at<F, double>(z + shift_, none + scale_).pdf);
    }
  }

 private:
  Pack<double> distance(std::size_t j, Pack<double> x) const { return (centre_[j] - x) + rest_[j]; }

  const double *centre_, *rest_;
  double scale_, shift_;
};

template <class T> void widen(const T* from, std::size_t n, double* to) {
  for (std::size_t i = 0; i < n; ++i) to[i] = double(from[i]);
  std::fill(to + n, to + padded(n), 0.0);
}

// Rows [begin, end) of one matrix.
template <class F, class T>
void write_rows(const Permutation& a, std::size_t row, std::size_t begin, std::size_t end, double* buffers) {
  const std::size_t room = padded(a.n);
  double *x = buffers, *low = x + room, *low_above = low + room, *high = low_above + room, *high_above = high + room;
  widen(static_cast<const T*>(a.scores) + row * a.n, a.n, x);
  const Edge<F> edge(a, row);
  edge.tails(begin, x, a.n, low, low_above);
  for (std::size_t j = begin; j < end; ++j) {
    edge.tails(j + 1, x, a.n, high, high_above);
    T* out = static_cast<T*>(a.out) + (row * a.k + (a.flip ? a.k - 1 - j : j)) * a.n;
    for (std::size_t i = 0; i < a.n; ++i) {
      out[i] = T(std::max((high[i] - low[i]) + (high_above[i] - low_above[i]), 0.0));
    }
    std::swap(low, high), std::swap(low_above, high_above);
  }
}

template <class F, class T> void forward(const Permutation& a) {
  if (a.n == 0 || a.k == 0) return;
  const int useful = static_cast<int>(std::clamp<std::size_t>(a.rows * a.k * a.n / 16384, 1, std::size_t(std::max(a.threads, 1))));
  Team{std::min(useful, Team::kMost)}.split_evenly(a.rows * a.k, [&](std::size_t begin, std::size_t end) {
    Scratch<double> buffers(5 * padded(a.n));
    while (begin < end) {
      const std::size_t row = begin / a.k, first = begin % a.k, count = std::min(end - begin, a.k - first);
      write_rows<F, T>(a, row, first, first + count, buffers.get());
      begin += count;
    }
  });
}

// With W_ji = V_{j-1,i} - V_ji, the weight of F(u_ji), and S_j = Σ_i f(u_ji):
// gradient_i = Σ_j f(u_ji) (Σ_l W_jl f(u_jl)/S_j - W_ji)/τ
template <class F, class T> void backward_row(const Permutation& a, std::size_t row, double* buffers) {
  const std::size_t room = padded(a.n), n = a.n;
  double *x = buffers, *f = x + room, *weight = f + room, *gradient = weight + room;
  widen(static_cast<const T*>(a.scores) + row * n, n, x);
  std::fill(gradient, gradient + n, 0.0);
  const Edge<F> edge(a, row);
  const T* v = static_cast<const T*>(a.upstream) + row * a.k * n;
  const auto matrix_row = [&](std::size_t j) { return v + (a.flip ? a.k - 1 - j : j) * n; };
  for (std::size_t j = 0; j <= a.k; ++j) {
    if (!edge.finite(j)) continue;
    edge.slopes(j, x, n, f);
    std::fill(weight, weight + n, 0.0);
    if (j > 0) for (std::size_t i = 0; i < n; ++i) weight[i] += double(matrix_row(j - 1)[i]);
    if (j < a.k) for (std::size_t i = 0; i < n; ++i) weight[i] -= double(matrix_row(j)[i]);
    double slope = 0, total = 0;
#pragma omp simd reduction(+ : slope, total)
    for (std::size_t i = 0; i < n; ++i) slope += f[i], total += f[i] * weight[i];
    if (slope < std::numeric_limits<double>::min()) continue;
    const double mean = total / slope;
    for (std::size_t i = 0; i < n; ++i) gradient[i] += f[i] * (mean - weight[i]);
  }
  const double inverse = 1 / a.temperature[row * a.temperature_stride];
  T* out = static_cast<T*>(a.out) + row * n;
  for (std::size_t i = 0; i < n; ++i) out[i] = T(inverse * gradient[i]);
}

template <class F, class T> void backward(const Permutation& a) {
  for_rows(a.rows, a.n * (a.k + 1), a.threads, [&](std::size_t begin, std::size_t end, Team) {
    Scratch<double> buffers(4 * padded(a.n));
    for (std::size_t row = begin; row < end; ++row) backward_row<F, T>(a, row, buffers.get());
  });
}

// Calls run with a value of the density's type.
template <class Run> void with_density(std::int32_t density, Run run) {
  switch (static_cast<Density>(density)) {
    case Density::laplace: return run(Laplace<double>{});
    case Density::logistic: return run(Logistic<double>{});
    case Density::normal: return run(Normal<double>{});
    case Density::cauchy: return run(Cauchy<double>{});
    case Density::uniform: return run(Uniform<double>{});
  }
  throw unknown_choice();
}

}  // namespace

void permutation_forward(const Permutation& a) {
  const NoDenormals guard;
  with_density(a.density, [&](auto law) {
    using F = decltype(law);
    a.wide ? forward<F, double>(a) : forward<F, float>(a);
  });
}

void permutation_backward(const Permutation& a) {
  const NoDenormals guard;
  with_density(a.density, [&](auto law) {
    using F = decltype(law);
    a.wide ? backward<F, double>(a) : backward<F, float>(a);
  });
}

}  // namespace softorder
