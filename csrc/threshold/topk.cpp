// soft top-k over the rows of a matrix: thresholds, forward and backward.
#include "kernels.hpp"

#include "failure.hpp"
#include "scratch.hpp"
#include "threshold/solver.hpp"
#include "threshold/tile.hpp"

namespace softorder {
namespace {

constexpr std::size_t kShortRow = 64;

// A row's threshold; a `shift` that is not NaN says that p holds what Solver::solve left there.
template <class T> struct Answer {
  Threshold<T> b;
  int sweeps;
  double shift = std::numeric_limits<double>::quiet_NaN();
};

template <class F, class T>
void write_row(const T* x, T* p, std::size_t n, const Answer<T>& answer, T scale, Team team) {
  const Threshold<T> b = answer.b;
  if (std::isfinite(b.centre)) {
    return team.split(n, [&](std::size_t begin, std::size_t end, int) {
      if (answer.shift == answer.shift) return shift_topk(p + begin, end - begin, answer.shift);
      write_topk<F>(x + begin, p + begin, end - begin, b, scale);
    });
  }
  for_packs(x, n, [&](Pack<T> scores, std::size_t i, std::size_t count) {  // see without_root
    const Pack<T> none{};
    const Pack<T> z = scores == b.centre ? none - b.rest : scores - b.centre;
    const Pack<T> tail = values_at<F, T>(z, Pack<T>{} + scale).tail;
    const Pack<T> p_in = z * scale < F::kMiddle ? tail : T(1) - tail;
    const Pack<T> result = scores == -std::numeric_limits<T>::infinity() ? none : p_in;
    std::memcpy(p + i, &result, count * sizeof(T));
  });
}

template <class F, class T>
void finish_row(const TopkForward& a, std::size_t row, const Answer<T>& answer, T scale, Team team) {
  static_cast<T*>(a.centre)[row] = answer.b.centre;
  static_cast<T*>(a.rest)[row] = answer.b.rest;
  if (a.sweeps) a.sweeps[row] = answer.sweeps;
  if (a.p == nullptr) return;
  const T* x = static_cast<const T*>(a.scores) + row * a.n;
  write_row<F>(x, static_cast<T*>(a.p) + row * a.n, a.n, answer, scale, team);
}

template <class F, class T> Answer<T> solve_row(Solver<F, T>& solver, const TopkForward& a, std::size_t row) {
  const T* x = static_cast<const T*>(a.scores) + row * a.n;
  const double temperature = a.temperature[row * a.temperature_stride];
  T* p = a.p ? static_cast<T*>(a.p) + row * a.n : nullptr;
  const Threshold<T> b = solver.solve(x, a.n, a.k[row * a.k_stride], temperature, p);
  return {b, solver.sweeps(), solver.shift()};
}

// What a tile has left to do.
template <class F, class T>
Answer<T> complete_row(Solver<F, T>& solver, const TopkForward& a, std::size_t row,
                       const typename Tile<F, T>::Row& found) {
  using End = typename Tile<F, T>::End;
  if (found.end == End::solved) return {found.b, found.sweeps};
  if (found.end == End::open) {
    Answer<T> answer = solve_row(solver, a, row);
    answer.sweeps += found.sweeps;
    return answer;
  }
  const T* x = static_cast<const T*>(a.scores) + row * a.n;
  const Threshold<T> b = solver.balance(x, a.n, a.k[row * a.k_stride], found.temperature, found.b);
  return {b, found.sweeps + solver.sweeps()};
}

template <class F, class T>
void forward_tiles(const TopkForward& a, std::size_t begin, std::size_t end, Solver<F, T>& solver) {
  using Rows = Tile<F, T>;
  Rows tile(a.n, a.p != nullptr);
  typename Rows::Row rows[Rows::kRows];
  for (std::size_t first = begin; first < end; first += Rows::kRows) {
    const std::size_t count = std::min(Rows::kRows, end - first);
    for (std::size_t i = 0; i < count; ++i) {
      rows[i] = {a.k[(first + i) * a.k_stride], a.temperature[(first + i) * a.temperature_stride]};
    }
    tile.solve(static_cast<const T*>(a.scores) + first * a.n, rows, count);
    for (std::size_t i = 0; i < count; ++i) {
      finish_row<F>(a, first + i, complete_row(solver, a, first + i, rows[i]), tile.scale(i), Team{1});
    }
  }
}

template <class F, class T> void forward(const TopkForward& a) {
  for_rows(a.rows, a.n, a.threads, [&](std::size_t begin, std::size_t end, Team team) {
    const Scratch<T> scratch(Solver<F, T>::scratch_size(a.n));
    Solver<F, T> solver(scratch.get(), team);
    if (a.n > 0 && a.n <= kShortRow && end - begin >= 4) {
      return forward_tiles<F, T>(a, begin, end, solver);
    }
    for (std::size_t row = begin; row < end; ++row) {
      const Answer<T> answer = solve_row(solver, a, row);
      finish_row<F>(a, row, answer, solver.scale(), team);
    }
  });
}

struct GradientSums {
  double pdf = 0, pdf_v = 0, pdf_u = 0, pdf_uv = 0;
  GradientSums& operator+=(const GradientSums& o) {
    pdf += o.pdf, pdf_v += o.pdf_v, pdf_u += o.pdf_u, pdf_uv += o.pdf_uv;
    return *this;
  }
};

// Writes f(u_i) to d and sums it against 1 and v, and against u and uv where τ wants a gradient. Without
// kDense there is no v, and nothing is summed against it.
template <class F, class T, bool kByTemperature, bool kDense>
GradientSums sum_gradients(const T* x, const T* v, T* d, std::size_t n, Threshold<T> b, T scale) {
  GradientSums total;
  const T unit = scale / F::kUnit;
  for (std::size_t begin = 0; begin < n; begin += kBlock) {
    Pack<T> pdf{}, pdf_v{}, pdf_u{}, pdf_uv{};
    for_packs(x + begin, std::min(kBlock, n - begin), [&](Pack<T> scores, std::size_t i, std::size_t count) {
      const Pack<T> z = (scores - b.centre) - b.rest;
      const Pack<T> f = values_at<F, T>(z, Pack<T>{} + scale).pdf;
      std::memcpy(d + begin + i, &f, count * sizeof(T));
      pdf += f;
      Pack<T> fu{};
      if constexpr (kByTemperature) fu = f == T(0) ? Pack<T>{} : f * (z * unit), pdf_u += fu;
      if constexpr (kDense) {
        const Pack<T> upstream = count == kLanes<T> ? load(v + begin + i) : load_part(v + begin + i, count, T(0));
        pdf_v += f * upstream;
        if constexpr (kByTemperature) pdf_uv += fu * upstream;
      }
    });
    total += {sum_lanes(pdf), sum_lanes(pdf_v)};
    if constexpr (kByTemperature) total += {0, 0, sum_lanes(pdf_u), sum_lanes(pdf_uv)};
  }
  return total;
}

// An upstream that is 0 but for one element.
template <class T> struct OneHot {
  std::size_t at;
  T weight, pdf;
};

template <class F, class T>
OneHot<T> add_one_hot(const TopkBackward& a, std::size_t row, Threshold<T> b, T unit, GradientSums& sums) {
  const auto at = static_cast<std::size_t>(a.index[row]);
  const T pdf = static_cast<const T*>(a.grad_scores)[row * a.n + at], weight = static_cast<const T*>(a.upstream)[row];
  const T u = ((static_cast<const T*>(a.scores)[row * a.n + at] - b.centre) - b.rest) * unit;
  sums.pdf_v = double(pdf) * double(weight);
  sums.pdf_uv = pdf == T(0) ? 0 : sums.pdf_v * double(u);
  return {at, weight, pdf};
}

template <class F, class T>
void backward_row(const TopkBackward& a, std::size_t row, double temperature, Team team) {
  const T* x = static_cast<const T*>(a.scores) + row * a.n;
  const T* v = a.index ? nullptr : static_cast<const T*>(a.upstream) + row * a.n;
  T* out = static_cast<T*>(a.grad_scores) + row * a.n;
  const Threshold<T> b{static_cast<const T*>(a.centre)[row], static_cast<const T*>(a.rest)[row]};
  const T scale = scale_of<F, T>(temperature);
  GradientSums sums;
  OneHot<T> one{};
  if (std::isfinite(b.centre)) {
    const auto dense = a.grad_temperature ? sum_gradients<F, T, true, true> : sum_gradients<F, T, false, true>;
    const auto sparse = a.grad_temperature ? sum_gradients<F, T, true, false> : sum_gradients<F, T, false, false>;
    sums = team.sum<GradientSums>(a.n, [&](std::size_t begin, std::size_t end, int) {
      if (!v) return sparse(x + begin, nullptr, out + begin, end - begin, b, scale);
      return dense(x + begin, v + begin, out + begin, end - begin, b, scale);
    });
    if (!v) one = add_one_hot<F, T>(a, row, b, scale / F::kUnit, sums);
  }
  const bool flat = sums.pdf == 0;
  const double mean = flat ? 0 : sums.pdf_v / sums.pdf;
  a.grad_k[row] = b.centre != b.centre ? double(b.centre) : mean;
  if (a.grad_temperature) {
    a.grad_temperature[row] = flat ? a.grad_k[row] * 0 : -(sums.pdf_uv - mean * sums.pdf_u) / temperature;
  }
  const T centre = T(mean), inverse = T(1 / temperature);
  team.split(a.n, [&](std::size_t begin, std::size_t end, int) {
    if (flat) return std::fill(out + begin, out + end, T(a.grad_k[row]) * T(0));
    if (!v) {
      const T factor = -inverse * centre;
#pragma omp simd
      for (std::size_t i = begin; i < end; ++i) out[i] *= factor;
      return;
    }
#pragma omp simd
    for (std::size_t i = begin; i < end; ++i) {
      out[i] = out[i] > T(0) ? out[i] * inverse * (v[i] - centre) : T(0);
    }
  });
  if (!v && !flat) out[one.at] = one.pdf * inverse * (one.weight - centre);
}

// A short row that wants no gradient in τ stays in registers between the sums and the result. False if
// it is not an ordinary one.
template <class F, class T> bool backward_short(const TopkBackward& a, std::size_t row, T scale, T inverse) {
  constexpr std::size_t most = kShortRow / kLanes<T>;
  const Threshold<T> b{static_cast<const T*>(a.centre)[row], static_cast<const T*>(a.rest)[row]};
  if (!std::isfinite(b.centre)) return false;
  const T* upstream = static_cast<const T*>(a.upstream) + row * a.n;
  Pack<T> f[most], v[most], pdf{}, pdf_v{};
  for_packs(static_cast<const T*>(a.scores) + row * a.n, a.n, [&](Pack<T> scores, std::size_t i, std::size_t count) {
    const std::size_t at = i / kLanes<T>;
    f[at] = values_at<F, T>((scores - b.centre) - b.rest, Pack<T>{} + scale).pdf;
    v[at] = count == kLanes<T> ? load(upstream + i) : load_part(upstream + i, count, T(0));
    pdf += f[at], pdf_v += f[at] * v[at];
  });
  const double total = sum_lanes(pdf);
  if (total == 0) return false;
  const double mean = sum_lanes(pdf_v) / total;
  a.grad_k[row] = mean;
  T* out = static_cast<T*>(a.grad_scores) + row * a.n;
  for (std::size_t i = 0; i < a.n; i += kLanes<T>) {
    const std::size_t at = i / kLanes<T>, count = std::min(kLanes<T>, a.n - i);
    const Pack<T> d = f[at] > T(0) ? f[at] * inverse * (v[at] - T(mean)) : Pack<T>{};
    if (count == kLanes<T>) std::memcpy(out + i, &d, sizeof d);
    else std::memcpy(out + i, &d, count * sizeof(T));
  }
  return true;
}

template <class F, class T> void backward(const TopkBackward& a) {
  const bool is_short = a.n <= kShortRow && a.grad_temperature == nullptr && a.index == nullptr;
  for_rows(a.rows, a.n, a.threads, [&](std::size_t begin, std::size_t end, Team team) {
    double temperature = std::numeric_limits<double>::quiet_NaN();
    T scale{}, inverse{};  // rows mostly share τ
    for (std::size_t row = begin; row < end; ++row) {
      if (const double own = a.temperature[row * a.temperature_stride]; own != temperature) {
        temperature = own, scale = scale_of<F, T>(own), inverse = T(1 / own);
      }
      if (is_short && backward_short<F, T>(a, row, scale, inverse)) continue;
      backward_row<F, T>(a, row, temperature, team);
    }
  });
}

template <class T> void run_forward(const TopkForward& a) {
  switch (static_cast<Density>(a.density)) {
    case Density::laplace: return forward<Laplace<T>, T>(a);
    case Density::logistic: return forward<Logistic<T>, T>(a);
    case Density::normal: return forward<Normal<T>, T>(a);
    case Density::cauchy: return forward<Cauchy<T>, T>(a);
    case Density::uniform: return forward<Uniform<T>, T>(a);
  }
  throw unknown_choice();
}

template <class T> void run_backward(const TopkBackward& a) {
  switch (static_cast<Density>(a.density)) {
    case Density::laplace: return backward<Laplace<T>, T>(a);
    case Density::logistic: return backward<Logistic<T>, T>(a);
    case Density::normal: return backward<Normal<T>, T>(a);
    case Density::cauchy: return backward<Cauchy<T>, T>(a);
    case Density::uniform: return backward<Uniform<T>, T>(a);
  }
  throw unknown_choice();
}

}  // namespace

void topk_forward(const TopkForward& a) {
  const NoDenormals guard;
  return a.wide ? run_forward<double>(a) : run_forward<float>(a);
}

void topk_backward(const TopkBackward& a) {
  const NoDenormals guard;
  return a.wide ? run_backward<double>(a) : run_backward<float>(a);
}

}  // namespace softorder
