// Rows of soft permutation matrices and their vector-Jacobian product, for every density: one F or one
// f per entry. All in double: a row of P is a sum of n small differences, and an F whose last bit is
// always off in the same sense would show in it.
#include "kernels.hpp"

#include <cmath>

#include "failure.hpp"
#include "scratch.hpp"
#include "threshold/sweep.hpp"
#include "team.hpp"

namespace softorder {
namespace {

// Scores, thresholds and τ are taken by quarters, so that the difference of no two of them overflows.
constexpr double kQuarter = 0.25;

constexpr std::size_t padded(std::size_t n) {
  return (n + kLanes<double> - 1) / kLanes<double> * kLanes<double>;
}

// Signed tails: F(u) = g for u < 0 and 1 + g for u >= 0. Differences of g are exact where F is near 1.
template <class F> class Edge {
 public:
  Edge(const Permutation& a, std::size_t row)
      : centre_(a.centre + row * (a.k + 1)), rest_(a.rest + row * (a.k + 1)) {
    const double temperature = kQuarter * a.temperature[row * a.temperature_stride];
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
  Pack<double> distance(std::size_t j, Pack<double> x) const {
    return (kQuarter * centre_[j] - x) + kQuarter * rest_[j];
  }

  const double *centre_, *rest_;
  double scale_, shift_;
};

// The finite scores of a row, by quarters; the columns of the others are 0.
template <class T> class FiniteScores {
 public:
  FiniteScores(std::size_t n, std::size_t buffers) : n_(n), columns_(n), buffers_(buffers * padded(n)) {}

  void read(const T* from) {
    double* const to = buffer(0);
    bool all = true;
    for (std::size_t i = 0; i < n_; ++i) to[i] = kQuarter * double(from[i]), all &= std::isfinite(from[i]);
    count_ = n_;
    if (!all) {
      count_ = 0;
      for (std::size_t i = 0; i < n_; ++i) {
        if (std::isfinite(from[i])) to[count_] = kQuarter * double(from[i]), columns_.get()[count_++] = std::int32_t(i);
      }
    }
    std::fill(to + count_, to + padded(count_), 0.0);
  }

  const double* x() const { return buffer(0); }
  std::size_t count() const { return count_; }
  double* buffer(std::size_t number) const { return buffers_.get() + number * padded(n_); }

  // to = one number for every finite score, at its column.
  template <class Value> void write(T* to, Value value) const {
    if (count_ == n_) {
      for (std::size_t i = 0; i < n_; ++i) to[i] = T(value(i));
      return;
    }
    std::fill(to, to + n_, T(0));
    for (std::size_t i = 0; i < count_; ++i) to[columns_.get()[i]] = T(value(i));
  }

  // to += sign × what stands at the columns of the finite scores.
  void add(const T* from, double sign, double* to) const {
    if (count_ == n_) {
      for (std::size_t i = 0; i < n_; ++i) to[i] += sign * double(from[i]);
      return;
    }
    for (std::size_t i = 0; i < count_; ++i) to[i] += sign * double(from[columns_.get()[i]]);
  }

 private:
  std::size_t n_, count_ = 0;
  Scratch<std::int32_t> columns_;
  Scratch<double> buffers_;
};

// Rows [begin, end) of one matrix.
template <class F, class T>
void write_rows(const Permutation& a, std::size_t row, std::size_t begin, std::size_t end, FiniteScores<T>& scores) {
  scores.read(static_cast<const T*>(a.scores) + row * a.n);
  double *low = scores.buffer(1), *low_above = scores.buffer(2), *high = scores.buffer(3), *high_above = scores.buffer(4);
  const Edge<F> edge(a, row);
  edge.tails(begin, scores.x(), scores.count(), low, low_above);
  for (std::size_t j = begin; j < end; ++j) {
    edge.tails(j + 1, scores.x(), scores.count(), high, high_above);
    T* out = static_cast<T*>(a.out) + (row * a.k + (a.flip ? a.k - 1 - j : j)) * a.n;
    scores.write(out, [=](std::size_t i) {
      return std::max((high[i] - low[i]) + (high_above[i] - low_above[i]), 0.0);
    });
    std::swap(low, high), std::swap(low_above, high_above);
  }
}

template <class F, class T> void forward(const Permutation& a) {
  if (a.n == 0 || a.k == 0) return;
  const int useful = static_cast<int>(std::clamp<std::size_t>(a.rows * a.k * a.n / 16384, 1, std::size_t(std::max(a.threads, 1))));
  Team{std::min(useful, Team::kMost)}.split_evenly(a.rows * a.k, [&](std::size_t begin, std::size_t end) {
    FiniteScores<T> scores(a.n, 5);
    while (begin < end) {
      const std::size_t row = begin / a.k, first = begin % a.k, count = std::min(end - begin, a.k - first);
      write_rows<F, T>(a, row, first, first + count, scores);
      begin += count;
    }
  });
}

// With W_ji = V_{j-1,i} - V_ji, the weight of F(u_ji), and S_j = Σ_i f(u_ji):
// gradient_i = Σ_j f(u_ji) (Σ_l W_jl f(u_jl)/S_j - W_ji)/τ
template <class F, class T> void backward_row(const Permutation& a, std::size_t row, FiniteScores<T>& scores) {
  scores.read(static_cast<const T*>(a.scores) + row * a.n);
  const std::size_t n = scores.count();
  double *f = scores.buffer(1), *weight = scores.buffer(2), *gradient = scores.buffer(3);
  std::fill(gradient, gradient + n, 0.0);
  const Edge<F> edge(a, row);
  const T* v = static_cast<const T*>(a.upstream) + row * a.k * a.n;
  const auto matrix_row = [&](std::size_t j) { return v + (a.flip ? a.k - 1 - j : j) * a.n; };
  for (std::size_t j = 0; j <= a.k; ++j) {
    if (!edge.finite(j)) continue;
    edge.slopes(j, scores.x(), n, f);
    std::fill(weight, weight + n, 0.0);
    if (j > 0) scores.add(matrix_row(j - 1), 1.0, weight);
    if (j < a.k) scores.add(matrix_row(j), -1.0, weight);
    double slope = 0, total = 0;
#pragma omp simd reduction(+ : slope, total)
    for (std::size_t i = 0; i < n; ++i) slope += f[i], total += f[i] * weight[i];
    if (slope < std::numeric_limits<double>::min()) continue;
    const double mean = total / slope;
    for (std::size_t i = 0; i < n; ++i) gradient[i] += f[i] * (mean - weight[i]);
  }
  const double inverse = 1 / a.temperature[row * a.temperature_stride];
  scores.write(static_cast<T*>(a.out) + row * a.n, [=](std::size_t i) { return inverse * gradient[i]; });
}

template <class F, class T> void backward(const Permutation& a) {
  for_rows(a.rows, a.n * (a.k + 1), a.threads, [&](std::size_t begin, std::size_t end, Team) {
    FiniteScores<T> scores(a.n, 4);
    for (std::size_t row = begin; row < end; ++row) backward_row<F, T>(a, row, scores);
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
