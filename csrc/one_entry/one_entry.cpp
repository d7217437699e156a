// log p of one entry a row for several k, the loss -log Σ_k share_k p_k of it, and the gradients.
//
// With u = (x - b)/τ, q = f(u)/Σf(u), and y the entry, log p = log F(u_y) has the derivatives
//
//   by x: r/τ (e_y - q)     by τ: -r/τ (u_y - <q, u>)     r = f(u_y)/F(u_y)
//
// and a softmax, log p = x_y - log Σ e^x, is the same with q = softmax(x) and r/τ = 1. Where scores
// other than y hardly count, 1 - q_y is small: it is summed over these, never subtracted.
#include "kernels.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <type_traits>

#include "densities.hpp"
#include "formats.hpp"
#include "one_entry/law.hpp"
#include "scratch.hpp"
#include "team.hpp"
#include "threshold/sweep.hpp"

namespace softorder {
namespace {

constexpr double kInfinite = std::numeric_limits<double>::infinity();
constexpr double kMost = 600;       // e^600 is a double: a share of 0 may belong to a far larger p
constexpr double kFaint = 8.8e-27;  // e^-60; sums of f below it are taken in logarithms

template <class T> Threshold<T> threshold_at(const void* b, std::size_t rows, std::size_t column, std::size_t row) {
  const T* centres = static_cast<const T*>(b) + 2 * column * rows;
  return {centres[row], centres[rows + row]};
}

// ---- a softmax, as if it were a density: b is the largest score, and the logarithm of what follows; where that score
// is infinite, so many share it

template <class T> T largest_score(const T* x, std::size_t n) {
  Pack<T> most = Pack<T>{} - std::numeric_limits<T>::infinity();
  for_packs(x, n, [&](Pack<T> scores, std::size_t, std::size_t) { most = scores > most ? scores : most; });
  return T(largest_lane(most));
}

template <class T> Pack<T> exponential_below(Pack<T> scores, T most) {
  return exp2_minus<T>(most - scores, Pack<T>{} + std::numbers::log2e_v<T>);  // NaN stays NaN
}

template <class T> Threshold<T> solve_softmax(const T* x, std::size_t n) {
  const T most = largest_score(x, n);
  double total = 0;
  if (std::isinf(most)) {
    bool spoiled = false;
    for (std::size_t i = 0; i < n; ++i) total += x[i] == most, spoiled = spoiled || std::isnan(x[i]);
    return {most, spoiled ? std::numeric_limits<T>::quiet_NaN() : T(std::log(total))};
  }
  for (std::size_t begin = 0; begin < n; begin += kBlock) {
    Pack<T> sum{};
    for_packs(x + begin, std::min(kBlock, n - begin),
              [&](Pack<T> scores, std::size_t, std::size_t) { sum += exponential_below<T>(scores, most); });
    total += sum_lanes(sum);
  }
  return {most, T(std::log(total))};
}

// ---- forward

// -log Σ_j share_j p_j of one row, and its derivatives by log p_j; 0 where no share is above 0.
double mix(const double* log_p, const double* shares, double* pull, std::size_t count) {
  double most = -kInfinite, total = 0;
  bool weighted = false;
  for (std::size_t j = 0; j < count; ++j) {
    if (shares[j] > 0) weighted = true, most = std::max(most, log_p[j]);
  }
  if (!std::isfinite(most)) most = 0;
  for (std::size_t j = 0; j < count; ++j) total += pull[j] = shares[j] * std::exp(std::min(log_p[j] - most, kMost));
  const bool some = weighted && total != 0;  // NaN included
  for (std::size_t j = 0; j < count; ++j) pull[j] = some ? -pull[j] / total : 0;
  return !weighted ? 0 : some ? -(std::log(total) + most) : kInfinite;
}

// With the first share apart: share_0 (-log p_0) + (1 - share_0) times the mixture of the others.
double loss_of(const double* log_p, const double* shares, double* pull, std::size_t count, bool apart) {
  if (!apart) return mix(log_p, shares, pull, count);
  const double others = mix(log_p + 1, shares + 1, pull + 1, count - 1), left = 1 - shares[0];
  pull[0] = -shares[0];
  for (std::size_t j = 1; j < count; ++j) pull[j] *= left;
  return (count > 1 ? left * others : 0) - shares[0] * log_p[0];
}

// Thresholds of some rows, for one k.
template <class T>
void solve_column(const OneEntryForward& a, std::size_t column, std::size_t begin, std::size_t end, int threads) {
  const T* x = static_cast<const T*>(a.scores) + begin * a.n;
  T* centre = static_cast<T*>(a.b) + 2 * column * a.rows + begin;
  T* rest = centre + a.rows;
  if (a.k[column] == 0) {
    for (std::size_t i = 0; i < end - begin; ++i) {
      const Threshold<T> b = solve_softmax(x + i * a.n, a.n);
      centre[i] = b.centre, rest[i] = b.rest;
    }
    return;
  }
  topk_forward({.scores = x,
                .k = a.k + column,
                .temperature = a.temperature + begin * a.temperature_stride,
                .centre = centre,
                .rest = rest,
                .rows = end - begin,
                .n = a.n,
                .temperature_stride = a.temperature_stride,
                .density = a.density,
                .format = format_of<T>(),
                .threads = threads});
}

template <class F, class T> void finish_row(const OneEntryForward& a, std::size_t row) {
  double* log_p = a.log_p + row * a.columns;
  double* pull = a.shares ? a.pull + row * a.columns : nullptr;
  if (a.index[row] < 0) {
    std::fill_n(log_p, a.columns, 0.0);
    if (a.shares) std::fill_n(pull, a.columns, 0.0), a.loss[row] = 0;
    return;
  }
  const T own = static_cast<const T*>(a.scores)[row * a.n + std::size_t(a.index[row])];
  const double temperature = a.temperature[row * a.temperature_stride];
  for (std::size_t j = 0; j < a.columns; ++j) {
    const Threshold<T> b = threshold_at<T>(a.b, a.rows, j, row);
    if (a.k[j] == 0) log_p[j] = distance_to(own, b, 1);
    else log_p[j] = log_cdf(F{}, distance_to(own, b, temperature));
  }
  if (a.shares) a.loss[row] = loss_of(log_p, a.shares + row * a.columns * a.shares_stride, pull, a.columns, a.apart);
}

// The sum of all losses, or their mean.
double reduced_loss(const OneEntryForward& a) {
  double sum = 0, count = 0;
  for (std::size_t row = 0; row < a.rows; ++row) sum += a.loss[row], count += a.index[row] >= 0;
  return a.mean ? sum / count : sum;
}

template <class F, class T> void forward(const OneEntryForward& a) {
  constexpr std::size_t kCached = std::size_t(1) << 17;  // bytes of rows that all k look at in turn
  const std::size_t some = std::max<std::size_t>(16, kCached / (sizeof(T) * std::max<std::size_t>(a.n, 1)));
  constexpr std::size_t kLooks = 4;  // at a score, until a threshold is found
  for_rows(a.rows, kLooks * a.n * a.columns, a.threads, [&](std::size_t begin, std::size_t end, Team team) {
    for (std::size_t first = begin; first < end; first += some) {
      const std::size_t last = std::min(first + some, end);
      for (std::size_t j = 0; j < a.columns; ++j) solve_column<T>(a, j, first, last, team.size);
      for (std::size_t row = first; row < last; ++row) finish_row<F, T>(a, row);
    }
  });
  if (a.total) *static_cast<T*>(a.total) = T(reduced_loss(a));
}

// ---- backward

// Sums over all scores but y.
struct OtherSums {
  double f = 0, fu = 0;
  OtherSums& operator+=(const OtherSums& o) {
    f += o.f, fu += o.fu;
    return *this;
  }
};

// The f of one score after another in their packs; u counts from b. kFar: b and scale are those of quarters.
template <class F, class T, bool kFar> struct Weigh {
  Threshold<T> b;
  T scale;
  Pack<T> f(Pack<T> scores) const { return pdf_at<F, T>(z(scores), Pack<T>{} + scale); }
  Pack<T> u(Pack<T> scores) const { return z(scores) * (scale / F::kUnit); }

 private:
  Pack<T> z(Pack<T> scores) const {
    if constexpr (kFar) scores *= T(0.25);
    return (scores - b.centre) - b.rest;
  }
};

template <class T> struct WeighSoftmax {
  Threshold<T> b;
  Pack<T> f(Pack<T> scores) const { return exponential_below<T>(scores, b.centre); }
  Pack<T> u(Pack<T>) const { return Pack<T>{}; }
};

// f(u) of the scores x[begin, end), with 0 for y, to d, and their sums.
template <class T, class W, bool kByTemperature>
OtherSums weigh_others(const T* x, T* d, std::size_t begin, std::size_t end, std::size_t y, const W& weigh) {
  OtherSums total;
  for (; begin < end; begin += kBlock) {
    Pack<T> sum{}, sum_u{};
    for_packs(x + begin, std::min(kBlock, end - begin), [&](Pack<T> scores, std::size_t i, std::size_t count) {
      Pack<T> f = weigh.f(scores);
      if (y - (begin + i) < count) f[y - (begin + i)] = 0;
      std::memcpy(d + begin + i, &f, count * sizeof(T));
      sum += f;
      if constexpr (kByTemperature) sum_u += f == T(0) ? Pack<T>{} : f * weigh.u(scores);
    });
    total += {sum_lanes(sum), kByTemperature ? sum_lanes(sum_u) : 0};
  }
  return total;
}

// What one column adds to the gradients of a row.
template <class T> class RowGradient {
 public:
  RowGradient(const T* x, std::size_t n, std::size_t y, T* out, T* scratch, Team team, bool by_temperature)
      : x_(x), n_(n), y_(y), out_(out), scratch_(scratch), team_(team), by_temperature_(by_temperature) {}

  // The pull of log p times r/τ, and u_y.
  template <class F> [[gnu::noinline]] /* gcc 12 crashes where it is not */ void add(Threshold<T> b, T scale, double factor, double u, double temperature) {
    const bool done = is_far(b) ? add_from(Weigh<F, T, true>{quartered(b), quartered_scale(scale)}, factor, u)
                                : add_from(Weigh<F, T, false>{b, scale}, factor, u);
    if constexpr (!requires { F::kEdge; }) {  // a uniform density is nowhere faint
      if (!done) add_faint<F>(b, factor, u, temperature);
    }
  }

  void add(const WeighSoftmax<T>& weigh, double factor) {
    OtherSums others = weigh_all(weigh);
    finish({others.f, 0}, double(weigh.f(Pack<T>{} + x_[y_])[0]), factor, 0);
  }

  // Ends the row, and returns the gradient of τ.
  double end() {
    if (fresh_) std::fill_n(out_, n_, T(0));
    out_[y_] = T(own_);
    return temperature_;
  }

 private:
  // False where every f all but underflows.
  template <class W> bool add_from(const W& weigh, double factor, double u) {
    const OtherSums others = weigh_all(weigh);
    const double own = double(weigh.f(Pack<T>{} + x_[y_])[0]);
    if (others.f + own < kFaint) return false;
    finish(others, own, factor, u);
    return true;
  }

  template <class W> OtherSums weigh_all(const W& weigh) {
    T* d = fresh_ ? out_ : scratch_;
    return team_.template sum<OtherSums>(n_, [&](std::size_t begin, std::size_t end, int) {
      if (by_temperature_) return weigh_others<T, W, true>(x_, d, begin, end, y_, weigh);
      return weigh_others<T, W, false>(x_, d, begin, end, y_, weigh);
    });
  }

  void finish(const OtherSums& others, double own, double factor, double u) {
    const double inverse = 1 / (others.f + own);
    subtract(T(factor * inverse));
    own_ += factor * (others.f * inverse);
    if (by_temperature_) temperature_ -= factor * ((others.f * u - others.fu) * inverse);
  }

  // out -= what was weighed, times this.
  void subtract(T factor) {
    team_.split(n_, [&](std::size_t begin, std::size_t end, int) {
      if (fresh_) {
#pragma omp simd
        for (std::size_t i = begin; i < end; ++i) out_[i] *= -factor;
        return;
      }
#pragma omp simd
      for (std::size_t i = begin; i < end; ++i) out_[i] -= factor * scratch_[i];
    });
    fresh_ = false;
  }

  // Where every f all but underflows: q is a softmax of log f, in double.
  template <class F> void add_faint(Threshold<T> b, double factor, double own_u, double temperature) {
    using Law = typename Wide<F>::Type;
    const auto at = [&](std::size_t i) { return distance_to(x_[i], b, temperature); };
    double most = -kInfinite;
    for (std::size_t i = 0; i < n_; ++i) most = std::max(most, log_pdf(Law{}, at(i)));
    OtherSums others;
    T* d = fresh_ ? out_ : scratch_;
    for (std::size_t i = 0; i < n_; ++i) {
      const double u = at(i), f = i == y_ ? 0 : std::exp(log_pdf(Law{}, u) - most);
      d[i] = T(f);
      if (f != 0) others += {f, f * u};
    }
    finish(others, std::exp(log_pdf(Law{}, own_u) - most), factor, own_u);
  }

  template <class F> struct Wide;
  template <template <class> class F> struct Wide<F<T>> {
    using Type = F<double>;
  };

  const T* x_;
  std::size_t n_, y_;
  T* out_;
  T* scratch_;
  Team team_;
  bool by_temperature_, fresh_ = true;
  double own_ = 0, temperature_ = 0;
};

// Whether a score of the row is NaN: the threshold of a softmax then has a rest of NaN, others a centre.
template <class T> bool is_spoiled(const OneEntryBackward& a, std::size_t row) {
  const Threshold<T> b = threshold_at<T>(a.b, a.rows, 0, row);
  return std::isnan(a.k[0] == 0 ? b.rest : b.centre);
}

template <template <class> class F, class T>
void backward_row(const OneEntryBackward& a, std::size_t row, T* scratch, Team team) {
  T* out = static_cast<T*>(a.grad_scores) + row * a.n;
  const T* x = static_cast<const T*>(a.scores) + row * a.n;
  const double upstream = a.upstream[row * a.upstream_stride];
  if (a.index[row] < 0 || (a.columns > 0 && is_spoiled<T>(a, row))) {
    std::fill_n(out, a.n, T(0));
    if (a.grad_temperature) a.grad_temperature[row] = 0;
    return;
  }
  const auto y = static_cast<std::size_t>(a.index[row]);
  const double temperature = a.temperature[row * a.temperature_stride];
  RowGradient<T> gradient(x, a.n, y, out, scratch, team, a.grad_temperature != nullptr);
  for (std::size_t j = 0; j < a.columns; ++j) {
    const double pull = a.pull[row * a.columns + j] * upstream;
    const Threshold<T> b = threshold_at<T>(a.b, a.rows, j, row);
    if (pull == 0 || !std::isfinite(b.centre)) continue;  // nobody pulls, or nothing moves
    if (a.k[j] == 0) {
      gradient.add(WeighSoftmax<T>{b}, pull);
      continue;
    }
    const double u = distance_to(x[y], b, temperature);
    if (!std::isfinite(u)) continue;  // certain, or hopeless
    const double factor = pull * rate(F<double>{}, u) / temperature;
    if (factor != 0) gradient.template add<F<T>>(b, scale_of<F<T>, T>(temperature), factor, u, temperature);
  }
  const double by_temperature = gradient.end();
  if (a.grad_temperature) a.grad_temperature[row] = by_temperature;
}

template <template <class> class F, class T> void backward(const OneEntryBackward& a) {
  constexpr std::size_t kLooks = 2;  // at a score, for each k
  for_rows(a.rows, kLooks * a.n * a.columns, a.threads, [&](std::size_t begin, std::size_t end, Team team) {
    const Scratch<T> scratch(a.n);
    for (std::size_t row = begin; row < end; ++row) backward_row<F, T>(a, row, scratch.get(), team);
  });
}

template <class T> void run(const OneEntryForward& a) {
  switch (static_cast<Density>(a.density)) {
    case Density::laplace: return forward<Laplace<double>, T>(a);
    case Density::logistic: return forward<Logistic<double>, T>(a);
    case Density::normal: return forward<Normal<double>, T>(a);
    case Density::cauchy: return forward<Cauchy<double>, T>(a);
    case Density::uniform: return forward<Uniform<double>, T>(a);
  }
  throw unknown_choice();
}

template <class T> void run(const OneEntryBackward& a) {
  switch (static_cast<Density>(a.density)) {
    case Density::laplace: return backward<Laplace, T>(a);
    case Density::logistic: return backward<Logistic, T>(a);
    case Density::normal: return backward<Normal, T>(a);
    case Density::cauchy: return backward<Cauchy, T>(a);
    case Density::uniform: return backward<Uniform, T>(a);
  }
  throw unknown_choice();
}

}  // namespace

void one_entry_forward(const OneEntryForward& a) {
  const NoDenormals guard;
  return a.wide ? run<double>(a) : run<float>(a);
}

void one_entry_backward(const OneEntryBackward& a) {
  const NoDenormals guard;
  return a.wide ? run<double>(a) : run<float>(a);
}

}  // namespace softorder
