// Rows of NeuralSort's permutations, and their vector-Jacobian products. With j = 1, 2, ...,
//
//   P_ji = softmax_i(L_j(x_i)/τ),  L_j(x) = (1 - 2j) x - 2 U(x),  U(x) = Σ_{x_l > x} (x_l - x).
//
// L_j differs from the usual (n + 1 - 2j) x - Σ_l |x - x_l| by a constant. It is concave, and largest at
// a_j, so no pass for a maximum is needed, and what falls short of L_k(a_k) by more than e^- can
// represent does so for every row: with k of many scores, only the scores near the top count. U is 0
// at the largest score, so that nothing cancels there. Where it is so large that a difference of two U would be
// rounding, the drop from a_j on is added up gap by gap, without any difference.
#pragma once

#include <cmath>

#include "in_range.hpp"
#include "row_softmax/row.hpp"

namespace softorder {

template <class T> class NeuralSort {
 public:
  explicit NeuralSort(const RowSoftmax& a)
      : n_(a.n), k_(a.k), largest_(a.upstream ? 0 : n_), e_(a.upstream ? 0 : n_), u_(n_), z_(n_) {}

  void forward(const SoftmaxRow<T>& row, Team team) {
    collect(row, team);
    row.keep_order(largest_);
    const double scale = std::min(row.scale / factor_, std::numeric_limits<double>::max());
    const std::size_t m = largest_.count();
    blurred_ = m > 0 && u_.get()[m - 1] * scale > kBlurred;
    for (std::size_t j = 0; j < k_; ++j) {
      std::fill_n(row.p(j), n_, T(0));
      if (j < m) one_row(row, scale, j);
    }
  }

  // With D = P ⊙ (g - <P,g>), c_i = Σ_j D_ji and the scores in order:
  // x_i gets 1/τ times Σ_j (1 - 2j) D_ji + 2 (how many are above i) c_i - 2 Σ_{l below i} c_l, where what ties with it
  // counts half. <P,g> is over the sum of the shares as they were rounded, so that D has the sum 0: what is left of
  // it would count as often as there are rows, and more.
  void backward(const SoftmaxRow<T>& row, T* out) {
    const std::size_t m = row.count();
    const std::int32_t* const order = row.order();
    double *c = u_.get(), *gradient = z_.get();
    std::fill_n(out, n_, T(0)), std::fill_n(c, m, 0.0), std::fill_n(gradient, m, 0.0);
    for (std::size_t j = 0; j < std::min(k_, m); ++j) {
      const T *share = row.p(j), *g = row.upstream(j);
      double mean = 0, mass = 0;
      for (std::size_t i = 0; i < m; ++i) {
        mass += double(share[order[i]]);
        mean += double(share[order[i]]) * double(g[order[i]]);
      }
      if (mass > 0) mean /= mass;
      for (std::size_t i = 0; i < m; ++i) {
        const double d = double(share[order[i]]) * (double(g[order[i]]) - mean);
        c[i] += d;
        gradient[i] -= double(2 * j + 1) * d;
      }
    }
    double below = 0;
    for (std::size_t begin, end = m; end > 0; end = begin) {
      begin = row.equals(end - 1).first;
      double upto = below;
      for (std::size_t i = begin; i < end; ++i) upto += c[i];
      for (std::size_t i = begin; i < end; ++i) {
        out[order[i]] = T((gradient[i] + double(begin + end) * c[i] - below - upto) * row.inverse);
      }
      below = upto;
    }
  }

 private:
  // How far L_k is below its largest value, L_k(a_k), at t <= a_k: 2 U(t) - offset(t).
  struct Drop {
    double anchor, slope, least;  // a_k, 2k - 1, 2 U(a_k)
    double offset(double t) const { return slope * (anchor - t) + least; }
  };

  // The scores that count: down to a t from which on the drop is beyond the reach of e^-.
  void collect(const SoftmaxRow<T>& row, Team team) {
    if (!largest_.sample(k_, row.x)) return collect_above(row.x, -kInfinity<T>, team);
    const T reached = largest_.maximum(k_), start = std::min(reached, largest_.mean_maximum());
    collect_above(row.x, std::isfinite(start) ? reached : -kInfinity<T>, team);
    if (!std::isfinite(start)) return;
    if (factor_ != 1) return collect_above(row.x, -kInfinity<T>, team);
    const Drop drop{z_.get()[k_ - 1], double(2 * k_ - 1), 2 * u_.get()[k_ - 1]};
    const double limit = (is_single<T> ? 126.0 : 1022.0) / row.scale;
    const T threshold = find_end(row.x, start, drop, limit);
    collect_above(row.x, threshold, team);
    const std::size_t last = largest_.count() - 1;
    // U at the threshold, from U at the smallest score above it
    const double u = u_.get()[last] + double(last + 1) * (z_.get()[last] - double(threshold));
    const bool enough = 2 * u - drop.offset(double(threshold)) > limit;
    if (!enough) collect_above(row.x, -kInfinity<T>, team);
  }

  // The drop is convex, so that a Newton step for drop = limit ends where it is at least that, and those
  // after it come back from there. Sums in T are taken for less than they are.
  T find_end(const T* x, T t, const Drop& drop, double limit) const {
    constexpr double less = 1 - 64 * double(std::numeric_limits<T>::epsilon());
    for (int step = 0; step < 8; ++step) {
      const auto [above, count] = sum_over(x, t);
      const double excess = 2 * less * above - drop.offset(double(t)) - limit;
      const double next = double(t) + excess / (2 * less * count - drop.slope);
      if (!(next < drop.anchor)) return -kInfinity<T>;  // also where something overflows
      t = std::nextafter(T(next), -kInfinity<T>);
      if (excess >= 0 && excess < limit) break;
    }
    return t;
  }

  struct Over {
    double sum, count;  // U(t), and of how many scores
  };
  Over sum_over(const T* x, T t) const {
    Over over{};
    for_blocks(n_, [&](std::size_t begin, std::size_t end) {
      Pack<T> sum{};
      Mask<T> counts{};  // a mask is 0 or -1
      for_packs(x + begin, end - begin, [&](Pack<T> scores, std::size_t, std::size_t) {
        sum += scores > t ? scores - t : Pack<T>{}, counts += scores > t;
      });
      over.sum += sum_lanes(sum), over.count -= sum_lanes(counts);
    });
    return over;
  }

  // The scores from the threshold up, in order, and U at them.
  void collect_above(const T* x, T threshold, Team team) {
    largest_.collect(x, threshold, team);
    const std::size_t m = largest_.count();
    factor_ = m == 0 ? 1 : factor_for(T(largest_.value(m - 1)), T(largest_.value(0)));
    double above = 0;
    for (std::size_t i = 0; i < m; ++i) {
      z_.get()[i] = factor_ * largest_.value(i);
      if (i > 0) above += double(i) * (z_.get()[i - 1] - z_.get()[i]);
      u_.get()[i] = above;
    }
  }

  void one_row(const SoftmaxRow<T>& row, double scale, std::size_t j) {
    const double total = blurred_ ? weights_by_gaps(scale, j) : weights(scale, j), inverse = 1 / total;
    const std::int32_t* const order = row.order();
    T* const p = row.p(j);
    for (std::size_t i = 0; i < largest_.count(); ++i) p[order[i]] = T(e_.get()[i] * inverse);
  }

  // e^-drop/τ of row j, and their sum.
  double weights(double scale, std::size_t j) {
    const double *z = z_.get(), *u = u_.get(), anchor = z[j], least = u[j], slope = double(2 * j + 1);
    const std::size_t m = largest_.count();
    double* const e = e_.get();
    Pack<double> total{};
    for (std::size_t i = 0; i < m; i += kLanes<double>) {
      const std::size_t lanes = std::min(kLanes<double>, m - i);
      const Pack<double> far = Pack<double>{} + std::numeric_limits<double>::infinity();
      const Pack<double> at = lanes == kLanes<double> ? load(z + i) : load_part(z + i, lanes, anchor);
      const Pack<double> above = lanes == kLanes<double> ? load(u + i) : load_part(u + i, lanes, far[0]);
      const Pack<double> drop = 2.0 * (above - least) - slope * (anchor - at);
      const Pack<double> weight = exp2_minus<double>(drop > 0.0 ? drop : Pack<double>{}, Pack<double>{} + scale);
      store_part<double>(e + i, weight, lanes);
      total += weight;
    }
    return sum_lanes(total);
  }

  // The same with a drop of Σ (2 |l - j| ∓ 1) gap_l over the gaps between j and i, as far as it is within the
  // reach of e^-.
  double weights_by_gaps(double scale, std::size_t j) {
    const double* const z = z_.get();
    double* const e = e_.get();
    std::fill_n(e, largest_.count(), 0.0);
    const auto power = [=](double drop) { return drop * scale < 1100 ? std::exp2(-drop * scale) : 0.0; };
    double total = e[j] = 1, drop = 0;
    for (std::size_t i = j + 1; i < largest_.count(); ++i) {
      drop += double(2 * (i - j) - 1) * (z[i - 1] - z[i]);
      if ((e[i] = power(drop)) == 0) break;
      total += e[i];
    }
    drop = 0;
    for (std::size_t i = j; i-- > 0;) {
      drop += double(2 * (j - i) - 1) * (z[i] - z[i + 1]);
      if ((e[i] = power(drop)) == 0) break;
      total += e[i];
    }
    return total;
  }

  static constexpr double kBlurred = 1e5;  // of 2 U/τ: its rounding is 1e-11
  std::size_t n_, k_;
  double factor_ = 1;     // of the scores in z
  bool blurred_ = false;  // U is too large for differences
  Largest<T> largest_;
  Scratch<double> e_, u_, z_;
};

}  // namespace softorder
