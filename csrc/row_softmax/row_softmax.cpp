// Rows of SoftSort's and NeuralSort's permutations, and their vector-Jacobian products.
//
// Descending, with a_j the j-th largest score, j = 1, ... (ascending: the same of -x):
//
//   SoftSort     P_ji = softmax_i(-|a_j - x_i|/τ)
//   NeuralSort   P_ji = softmax_i(L_j(x_i)/τ),  L_j(x) = (1 - 2j) x - 2 U(x),  U(x) = Σ_{x_l > x} (x_l - x)
//
// L_j differs from the usual (n + 1 - 2j) x - Σ_l |x - x_l| by a constant. It is concave, and largest at
// a_j, so no pass for a maximum is needed, and what falls short of L_k(a_k) by more than e^- can
// represent does so for every row: with k of many scores, only the scores near the top count. U is 0
// at the largest score, so that nothing cancels there.
#include "kernels.hpp"

#include <cmath>

#include "failure.hpp"
#include "sort/largest.hpp"
#include "threshold/sweep.hpp"
#include "team.hpp"

namespace softorder {
namespace {

// One row of scores, on its way forward or back.
template <class T> class Row {
 public:
  explicit Row(const RowSoftmax& a)
      : a_(a), x_(a.n), gradient_(a.n), largest_(a.upstream ? 0 : a.n), e_(a.n), u_(a.n), z_(a.n) {}

  void run(std::size_t row, Team team) {
    row_ = row;
    const double temperature = a_.temperature[row * a_.temperature_stride];
    scale_ = std::min(std::numbers::log2e / temperature, double(std::numeric_limits<T>::max()));
    inverse_ = std::min(1 / temperature, double(std::numeric_limits<T>::max()));
    const T* scores = static_cast<const T*>(a_.scores) + row * a_.n;
    const T sign = a_.descending ? T(1) : T(-1);
    for (std::size_t i = 0; i < a_.n; ++i) x_.get()[i] = sign * scores[i];
    const bool neural = static_cast<RowSoftmaxFamily>(a_.family) == RowSoftmaxFamily::neuralsort;
    if (!a_.upstream) return neural ? neuralsort(team) : softsort(team);
    std::fill_n(gradient_.get(), a_.n, T(0));
    neural ? neuralsort_vjp() : softsort_vjp();
    T* out = static_cast<T*>(a_.gradient) + row * a_.n;
    for (std::size_t i = 0; i < a_.n; ++i) out[i] = sign * gradient_.get()[i];
  }

 private:
  T* p(std::size_t j) const { return static_cast<T*>(a_.p) + (row_ * a_.k + j) * a_.n; }
  const T* upstream(std::size_t j) const { return static_cast<const T*>(a_.upstream) + (row_ * a_.k + j) * a_.n; }
  std::int32_t* order() const { return a_.order + row_ * a_.n; }
  std::size_t count() const { return std::size_t(a_.count[row_]); }

  void keep_order() {
    a_.count[row_] = static_cast<std::int32_t>(largest_.count());
    for (std::size_t j = 0; j < largest_.count(); ++j) order()[j] = largest_.source(j);
  }

  // ---- SoftSort

  void softsort(Team team) {
    largest_.find(x_.get(), team, [this](double) { return largest_.count() >= a_.k; });
    keep_order();
    const std::size_t rows = std::min(a_.k, largest_.count());
    for (std::size_t j = rows; j < a_.k; ++j) std::fill_n(p(j), a_.n, T(0));
    if (rows == 0) return;
    if (4 * rows <= a_.n) return softsort_few(rows);
    for (std::size_t j = 0; j < rows; ++j) scale_by(T(1 / powers(T(largest_.value(j)), p(j))), p(j), p(j));
  }

  // Below the last anchor a row is that of the last anchor times e^-(a_j - a_k)/τ: one exponential per
  // score serves all rows.
  void softsort_few(std::size_t rows) {
    const auto power = [this](double distance) { return std::exp2(-distance * scale_); };
    const double last = largest_.value(rows - 1);
    T* const below = gradient_.get();
    double total = powers(T(last), below);
    for (std::size_t l = 0; l < rows; ++l) total -= double(below[order()[l]]);
    for (std::size_t j = 0; j < rows; ++j) {
      const double anchor = largest_.value(j), fall = power(anchor - last);
      double sum = std::max(total, 0.0) * fall;
      for (std::size_t l = 0; l < rows; ++l) sum += power(std::abs(anchor - largest_.value(l)));
      scale_by(T(fall / sum), below, p(j));
      for (std::size_t l = 0; l < rows; ++l) {
        p(j)[order()[l]] = T(power(std::abs(anchor - largest_.value(l))) / sum);
      }
    }
  }

  // e^-|x_i - anchor|/τ, and their sum.
  double powers(T anchor, T* out) const {
    const Pack<T> scale = Pack<T>{} + T(scale_);
    double total = 0;
    blocks([&](std::size_t begin, std::size_t end) {
      Pack<T> sum = {};
      for_packs(x_.get() + begin, end - begin, [&](Pack<T> x, std::size_t i, std::size_t lanes) {
        const Pack<T> e = exp2_minus<T>(absolute<T>(x - anchor), scale);
        put(out + begin + i, e, lanes);
        sum += e;
      });
      total += sum_lanes(sum);
    });
    return total;
  }
  void scale_by(T share, const T* from, T* to) const {
    for (std::size_t i = 0; i < a_.n; ++i) to[i] = share * from[i];
  }

  // With D = P ⊙ (g - <P,g>)/τ and s = sign(x - a): x gets -s D, and a the sum of s D.
  void softsort_vjp() {
    T* const gradient = gradient_.get();
    const T* const x = x_.get();
    for (std::size_t j = 0; j < std::min(a_.k, count()); ++j) {
      const T *share = p(j), *g = upstream(j), anchor = x[order()[j]];
      const T mean = T(inner(share, g)), inverse = T(inverse_);
      double by_anchor = 0;
      blocks([&](std::size_t begin, std::size_t end) {
        T total = 0;
#pragma omp simd reduction(+ : total)
        for (std::size_t i = begin; i < end; ++i) {
          const T d = share[i] * (g[i] - mean) * inverse;
          const T signed_d = x[i] > anchor ? d : x[i] < anchor ? -d : T(0);
          gradient[i] -= signed_d;
          total += signed_d;
        }
        by_anchor += double(total);
      });
      gradient[order()[j]] += T(by_anchor);
    }
  }

  // ---- NeuralSort

  void neuralsort(Team team) {
    const double limit = (is_single<T> ? 126.0 : 1022.0) / scale_;
    largest_.find(x_.get(), team, [&](double threshold) {
      if (largest_.count() < a_.k) return false;
      sum_above();
      const std::size_t last = largest_.count() - 1, k = a_.k - 1;
      // U at the threshold, from U at the smallest score above it
      const double u = u_.get()[last] + double(last + 1) * (largest_.value(last) - threshold);
      return 2 * (u - u_.get()[k]) - double(2 * k + 1) * (largest_.value(k) - threshold) > limit;
    });
    sum_above();
    keep_order();
    for (std::size_t j = 0; j < a_.k; ++j) {
      std::fill_n(p(j), a_.n, T(0));
      if (j < largest_.count()) neuralsort_row(j, p(j));
    }
  }

  // The scores in order, and U at them.
  void sum_above() {
    double above = 0;
    for (std::size_t i = 0; i < largest_.count(); ++i) {
      z_.get()[i] = largest_.value(i);
      if (i > 0) above += double(i) * (z_.get()[i - 1] - z_.get()[i]);
      u_.get()[i] = above;
    }
  }

  void neuralsort_row(std::size_t j, T* out) {
    const double *z = z_.get(), *u = u_.get(), anchor = z[j], least = u[j], slope = double(2 * j + 1);
    const std::size_t m = largest_.count();
    double* const e = e_.get();
    double total = 0;
    for (std::size_t i = 0; i < m; i += kLanes<double>) {
      const std::size_t lanes = std::min(kLanes<double>, m - i);
      const Pack<double> far = Pack<double>{} + std::numeric_limits<double>::infinity();
      const Pack<double> at = lanes == kLanes<double> ? load(z + i) : load_part(z + i, lanes, anchor);
      const Pack<double> above = lanes == kLanes<double> ? load(u + i) : load_part(u + i, lanes, far[0]);
      const Pack<double> drop = 2.0 * (above - least) - slope * (anchor - at);
      const Pack<double> weight = exp2_minus<double>(drop > 0.0 ? drop : Pack<double>{}, Pack<double>{} + scale_);
      put(e + i, weight, lanes);
      total += sum_lanes(weight);
    }
    for (std::size_t i = 0; i < m; ++i) out[order()[i]] = T(e[i] / total);
  }

  // With D as above, c_i = Σ_j D_ji and the scores in order:
  // x_i gets Σ_j (1 - 2j) D_ji + 2 (how many are above i) c_i - 2 Σ_{l below i} c_l.
  void neuralsort_vjp() {
    const std::size_t m = count();
    double *c = u_.get(), *gradient = z_.get();
    std::fill_n(c, m, 0.0), std::fill_n(gradient, m, 0.0);
    for (std::size_t j = 0; j < std::min(a_.k, m); ++j) {
      const T *share = p(j), *g = upstream(j);
      double mean = 0;
      for (std::size_t i = 0; i < m; ++i) mean += double(share[order()[i]]) * double(g[order()[i]]);
      for (std::size_t i = 0; i < m; ++i) {
        const double d = double(share[order()[i]]) * (double(g[order()[i]]) - mean) * inverse_;
        c[i] += d;
        gradient[i] -= double(2 * j + 1) * d;
      }
    }
    double below = 0;
    for (std::size_t i = m; i-- > 0;) {
      gradient_.get()[order()[i]] = T(gradient[i] + 2 * (double(i) * c[i] - below));
      below += c[i];
    }
  }

  // ---- loops

  // Short enough for sums in T.
  template <class Work> void blocks(Work work) const {
    for (std::size_t begin = 0; begin < a_.n; begin += kBlock) work(begin, std::min(a_.n, begin + kBlock));
  }
  double inner(const T* a, const T* b) const {
    double sum = 0;
    blocks([&](std::size_t begin, std::size_t end) {
      T total = 0;
#pragma omp simd reduction(+ : total)
      for (std::size_t i = begin; i < end; ++i) total += a[i] * b[i];
      sum += double(total);
    });
    return sum;
  }
  template <class S> static void put(S* to, Pack<S> pack, std::size_t lanes) {
    if (lanes == kLanes<S>) return store(to, pack);
    std::memcpy(to, &pack, lanes * sizeof(S));
  }

  const RowSoftmax& a_;
  std::size_t row_ = 0;
  double scale_ = 0, inverse_ = 0;
  Scratch<T> x_, gradient_;
  Largest<T> largest_;
  Scratch<double> e_, u_, z_;
};

template <class T> void run(const RowSoftmax& a) {
  if (a.n == 0) return;
  if (a.family < 0 || a.family > std::int32_t(RowSoftmaxFamily::neuralsort)) throw unknown_choice();
  const NoDenormals guard;
  for_rows(a.rows, a.n * std::max<std::size_t>(a.k, 1), a.threads, [&](std::size_t begin, std::size_t end, Team team) {
    Row<T> rows(a);
    for (std::size_t row = begin; row < end; ++row) rows.run(row, team);
  });
}

}  // namespace

void row_softmax(const RowSoftmax& a) { return a.wide ? run<double>(a) : run<float>(a); }

}  // namespace softorder
