// Rows of SoftSort's permutations, P_ji = softmax_i(-|a_j - x_i|/τ), and their vector-Jacobian products.
//
// Below the last of k anchors, row j is a multiple of row k,
//
//   P_ji = r_j P_ki,   r_j = e^-(a_j - a_k)/τ Σ_l e^-|a_k - x_l|/τ / Σ_l e^-|a_j - x_l|/τ <= k,
//
// and r_j is P_j/P_k at the score a_k. So few rows of many scores take one exponential per score, and the
// way back reads one row of P.
#pragma once

#include <cmath>

#include "row_softmax/row.hpp"
#include "threshold/far.hpp"

namespace softorder {

template <class T> class SoftSort {
 public:
  explicit SoftSort(const RowSoftmax& a)
      : n_(a.n), k_(a.k), largest_(a.upstream ? 0 : n_), below_(n_), rows_(a.upstream ? k_ : 0) {}

  void forward(const SoftmaxRow<T>& row, Team team) {
    const T threshold = largest_.sample(k_, row.x) ? largest_.maximum(k_) : -kInfinity<T>;
    largest_.collect(row.x, threshold, team);
    row.keep_order(largest_);
    const std::size_t rows = std::min(k_, largest_.count());
    for (std::size_t j = rows; j < k_; ++j) std::fill_n(row.p(j), n_, T(0));
    if (rows > 0 && few(rows)) return few_rows(row, rows);
    for (std::size_t j = 0; j < rows; ++j) {
      scale_by(T(1 / powers(row, T(largest_.value(j)), row.p(j))), row.p(j), row.p(j));
    }
  }

  // With D = P ⊙ (g - <P,g>)/τ and s = sign(x - a): x gets -s D, and a the sum of s D, in equal shares if it ties.
  void backward(const SoftmaxRow<T>& row, T* gradient) {
    std::size_t rows = std::min(k_, row.count());
    // The anchor has a share of its row, unless infinite scores have pushed that row out of the first k.
    while (rows > 0 && row.p(rows - 1)[row.order()[rows - 1]] == 0) --rows;
    if (rows > 0 && few(rows)) return few_rows_back(row, rows, gradient);
    std::fill_n(gradient, n_, T(0));
    for (std::size_t j = 0; j < rows; ++j) row_back(row, j, gradient);
  }

 private:
  bool few(std::size_t rows) const { return 4 * rows <= n_; }

  void few_rows(const SoftmaxRow<T>& row, std::size_t rows) {
    const double scale = quartered_scale(row.scale);
    const auto power = [=](double a, double b) { return std::exp2(-std::abs(0.25 * a - 0.25 * b) * scale); };
    const std::int32_t* const order = row.order();
    const double last = largest_.value(rows - 1);
    T* const below = below_.get();
    double total = powers(row, T(last), below);
    for (std::size_t l = 0; l < rows; ++l) total -= double(below[order[l]]);
    for (std::size_t j = 0; j < rows; ++j) {
      const double anchor = largest_.value(j), fall = power(anchor, last);
      double sum = std::max(total, 0.0) * fall;
      for (std::size_t l = 0; l < rows; ++l) sum += power(anchor, largest_.value(l));
      T* const p = row.p(j);
      scale_by(T(fall / sum), below, p);
      for (std::size_t l = 0; l < rows; ++l) p[order[l]] = T(power(anchor, largest_.value(l)) / sum);
    }
  }

  // e^-|x_i - anchor|/τ, and their sum.
  double powers(const SoftmaxRow<T>& row, T anchor, T* out) const {
    constexpr T quarter = T(0.25), least = std::numeric_limits<T>::min();
    if (row.scale >= double(least) && !is_far(Threshold<T>{anchor, 0})) {
      return powers(row, out, T(row.scale), [=](Pack<T> x) { return x - anchor; });
    }
    const double most = std::numeric_limits<T>::max(), scale = std::min(row.scale, most / 4) * 4;
    return powers(row, out, std::max(T(scale), least), [=](Pack<T> x) { return quarter * x - quarter * anchor; });
  }
  template <class From> double powers(const SoftmaxRow<T>& row, T* out, T scale_of_all, From from_anchor) const {
    const Pack<T> scale = Pack<T>{} + scale_of_all;
    double total = 0;
    for_blocks(n_, [&](std::size_t begin, std::size_t end) {
      Pack<T> sum = {};
      for_packs(row.x + begin, end - begin, [&](Pack<T> x, std::size_t i, std::size_t lanes) {
        const Pack<T> e = exp2_minus<T>(absolute<T>(from_anchor(x)), scale);
        store_part<T>(out + begin + i, e, lanes);
        sum += e;
      });
      total += sum_lanes(sum);
    });
    return total;
  }
  void scale_by(T share, const T* from, T* to) const {
    for (std::size_t i = 0; i < n_; ++i) to[i] = share * from[i];
  }

  void row_back(const SoftmaxRow<T>& row, std::size_t j, T* gradient) const {
    const T *share = row.p(j), *g = row.upstream(j), *x = row.x, anchor = x[row.order()[j]];
    const T mean = T(inner(share, g)), inverse = T(row.inverse);
    double by_anchor = 0;
    for_blocks(n_, [&](std::size_t begin, std::size_t end) {
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
    to_anchor(row, j, by_anchor, gradient);
  }

  // The scores down to the last anchor, and what ties with it, one by one; all others by r_j P_k.
  void few_rows_back(const SoftmaxRow<T>& row, std::size_t rows, T* gradient) {
    const std::int32_t* const order = row.order();
    const std::int32_t last = order[rows - 1];
    std::size_t top = rows;
    while (top < row.count() && row.x[order[top]] == row.x[last]) ++top;
    T* const below = below_.get();
    std::copy_n(row.p(rows - 1), n_, below);
    for (std::size_t l = 0; l < top; ++l) below[order[l]] = T(0);
    double mass = 0;
    for_blocks(n_, [&](std::size_t begin, std::size_t end) {
      T total = 0;
#pragma omp simd reduction(+ : total)
      for (std::size_t i = begin; i < end; ++i) total += below[i];
      mass += double(total);
    });
    for (std::size_t j = 0; j < rows; ++j) {
      const T *share = row.p(j), *g = row.upstream(j);
      const double ratio = double(share[last]) / double(row.p(rows - 1)[last]), weighted = inner(below, g);
      double mean = ratio * weighted;
      for (std::size_t l = 0; l < top; ++l) mean += double(share[order[l]]) * double(g[order[l]]);
      rows_.get()[j] = {ratio, mean, ratio * (weighted - mean * mass)};
    }
    back_below(row, rows, gradient);
    for (std::size_t j = 0; j < rows; ++j) back_top(row, j, top, gradient);
  }

  // x_i below the anchors gets P_ki Σ_j r_j (g_ji - <P_j,g_j>)/τ.
  void back_below(const SoftmaxRow<T>& row, std::size_t rows, T* gradient) const {
    const T* const below = below_.get();
    for_blocks(n_, [&](std::size_t begin, std::size_t end) {
      std::fill(gradient + begin, gradient + end, T(0));
      for (std::size_t j = 0; j < rows; ++j) {
        const T *g = row.upstream(j), ratio = T(rows_.get()[j].ratio), mean = T(rows_.get()[j].mean);
        for (std::size_t i = begin; i < end; ++i) gradient[i] += ratio * (g[i] - mean);
      }
      for (std::size_t i = begin; i < end; ++i) gradient[i] *= below[i] * T(row.inverse);
    });
  }

  void back_top(const SoftmaxRow<T>& row, std::size_t j, std::size_t top, T* gradient) const {
    const T *share = row.p(j), *g = row.upstream(j), anchor = row.x[row.order()[j]];
    double by_anchor = -rows_.get()[j].below * row.inverse;
    for (std::size_t l = 0; l < top; ++l) {
      const std::int32_t i = row.order()[l];
      const double d = double(share[i]) * (double(g[i]) - rows_.get()[j].mean) * row.inverse;
      const double signed_d = row.x[i] > anchor ? d : row.x[i] < anchor ? -d : 0.0;
      gradient[i] -= T(signed_d);
      by_anchor += signed_d;
    }
    to_anchor(row, j, by_anchor, gradient);
  }

  void to_anchor(const SoftmaxRow<T>& row, std::size_t j, double sum, T* gradient) const {
    const auto [first, last] = row.equals(j);
    for (std::size_t l = first; l < last; ++l) gradient[row.order()[l]] += T(sum / double(last - first));
  }

  double inner(const T* a, const T* b) const {
    double sum = 0;
    for_blocks(n_, [&](std::size_t begin, std::size_t end) {
      T total = 0;
#pragma omp simd reduction(+ : total)
      for (std::size_t i = begin; i < end; ++i) total += a[i] * b[i];
      sum += double(total);
    });
    return sum;
  }

  // r_j; <P_j,g_j>; and Σ P_ji (g_ji - <P_j,g_j>) over the scores below the anchors.
  struct Back {
    double ratio, mean, below;
  };

  std::size_t n_, k_;
  Largest<T> largest_;
  Scratch<T> below_;
  Scratch<Back> rows_;
};

}  // namespace softorder
