// Sorting and selection networks whose comparators swap in part, and their vector-Jacobian products.
//
// Rows go through the network side by side, one per lane, so that every comparator is a few vector
// operations. A comparator on wires i < j changes values, columns and gradients alike, by
//
//   a' = a + part (b - a)      b' = b - part (b - a)      part = F(-(b - a)/τ)
//
// and is a symmetric matrix A. The rows of the permutation P = E A_t ... A_1 are found from the last
// comparator to the first: Q = E, then Q A_t, and so on (E takes the outputs). Backward, with G the
// gradient of P, R = G goes through the comparators from the first to the last, and
//
//   dL/dpart = -Σ_k (Q_i - Q_j)(R_i - R_j),  Q behind the comparator and R before it;
//
// then one more pass back gives the gradients of the values. What is kept is a few numbers per
// comparator, and Q_i - Q_j for some rows of P at a time. A weighted sum of rows is one row: Q = w E.
//
// A steep comparator enlarges the rounding errors of its values by 1/τ, and the next one again; Q is only ever
// averaged. So for rows of P values are double, and the parts that follow from them are rounded once.
#include "kernels.hpp"

#include <algorithm>

#include "network/comparators.hpp"
#include "failure.hpp"
#include "scratch.hpp"
#include "threshold/sweep.hpp"
#include "team.hpp"

namespace softorder {
namespace {

constexpr std::size_t kColumns = 8;  // rows of P at a time

// Some rows of the matrices, one per lane; empty lanes repeat the last row. Values are of type V.
template <template <class> class F, class T, class V> class Tile {
 public:
  static constexpr std::size_t kWide = kLanes<T>;

  explicit Tile(const Network& a)
      : a_(a),
        rows_(a.weights ? 1 : a.k),
        columns_(a.matrix ? std::min(rows_, kColumns) : 0),
        values_(a.n * kWide),
        part_(a.size * kWide),
        gap_(a.upstream ? a.size * kWide : 0),
        slope_(a.upstream ? a.size * kWide : 0),
        pull_(a.upstream ? a.size * kWide : 0),
        q_(a.n * columns_ * kWide),
        difference_(a.upstream ? a.size * columns_ * kWide : 0) {}

  // The rows from `first` on.
  void run(std::size_t first) {
    first_ = first, count_ = std::min(kWide, a_.rows - first);
    a_.upstream ? backward() : forward();
  }

 private:
  void forward() {
    run_values();
    if (!a_.matrix) return write_values();
    for (std::size_t column = 0; column < rows_; column += columns_) {
      const std::size_t width = std::min(columns_, rows_ - column);
      run_columns<false>(column, width);
      write_columns(column, width);
    }
  }

  void backward() {
    run_values();
    std::fill_n(pull_.get(), a_.size * kWide, T(0));
    for (std::size_t column = 0; a_.matrix && column < rows_; column += columns_) {
      const std::size_t width = std::min(columns_, rows_ - column);
      run_columns<true>(column, width);
      run_upstream(column, width);
    }
    if (a_.weights) write_by_weights();
    run_values_back();
    write_gradients();
  }

  const T* row_of(const void* matrix, std::size_t lane, std::size_t length) const {
    return static_cast<const T*>(matrix) + (first_ + std::min(lane, count_ - 1)) * length;
  }
  T* out_of(std::size_t lane, std::size_t length) const {
    return static_cast<T*>(a_.out) + (first_ + lane) * length;
  }
  V sign() const { return a_.descending ? V(-1) : V(1); }
  // Scores and τ are taken by quarters, so that the difference of no two values overflows.
  static constexpr V kQuarter = V(0.25);
  // Only differences count: what all scores of a row have in common shall not cost digits.
  V start(std::size_t lane) const { return kQuarter * V(row_of(a_.scores, lane, a_.n)[0]); }

  // Copies kWide rows of `length` scalars, `stride` apart in the tile, into its lanes.
  template <class S, class From> static void gather(std::size_t length, std::size_t stride, S* to, From from) {
    constexpr std::size_t kStrip = 64;  // of the tile in the nearest cache
    for (std::size_t begin = 0; begin < length; begin += kStrip) {
      const std::size_t end = std::min(length, begin + kStrip);
      for (std::size_t lane = 0; lane < kWide; ++lane) {
        for (std::size_t i = begin; i < end; ++i) to[i * stride + lane] = from(lane, i);
      }
    }
  }
  template <class To> void scatter(std::size_t length, To to) const {
    constexpr std::size_t kStrip = 64;
    for (std::size_t begin = 0; begin < length; begin += kStrip) {
      const std::size_t end = std::min(length, begin + kStrip);
      for (std::size_t lane = 0; lane < count_; ++lane) {
        for (std::size_t i = begin; i < end; ++i) to(lane, i);
      }
    }
  }

  // From the scores to the last values; keeps what every comparator swaps.
  void run_values() {
    V* const v = values_.get();
    gather(a_.n, kWide, v, [this](std::size_t lane, std::size_t i) {
      return sign() * (kQuarter * V(row_of(a_.scores, lane, a_.n)[i]) - start(lane));
    });
    for (std::size_t lane = 0; lane < kWide; ++lane) {
      const std::size_t row = first_ + std::min(lane, count_ - 1);
      scale_[lane] = scale_of<F<V>, V>(double(kQuarter) * a_.temperature[row * a_.temperature_stride]);
      live_[lane] = V(a_.count ? std::size_t(a_.count[row]) : a_.n);
    }
    for (std::size_t c = 0; c < a_.size; ++c) {
      for (std::size_t lane = 0; lane < kWide; lane += kLanes<V>) compare(c, lane);
    }
  }

  // Comparator c, in a pack of lanes.
  void compare(std::size_t c, std::size_t lane) {
    V *low = wire(values_.get(), a_.low[c]) + lane, *high = wire(values_.get(), a_.high[c]) + lane;
    const Pack<V> a = load(low), b = load(high), gap = b - a;
    Swap<V> swap = swap_at<F<V>, V>(gap, load(scale_ + lane));
    if (a_.count) {
      const Mask<V> idle = Pack<V>{} + V(a_.high[c]) >= load(live_ + lane);
      swap.part = idle ? Pack<V>{} : swap.part, swap.slope = idle ? Pack<V>{} : swap.slope;
    }
    store(low, a + swap.part * gap), store(high, b - swap.part * gap);
    const std::size_t at = c * kWide + lane;
    for (std::size_t i = 0; i < kLanes<V>; ++i) part_.get()[at + i] = T(swap.part[i]);
    if (a_.upstream) store(gap_.get() + at, gap), store(slope_.get() + at, swap.slope);
  }

  // From E to the rows [column, column + width) of P; keeps Q_i - Q_j if a gradient is wanted.
  template <bool kKeep> void run_columns(std::size_t column, std::size_t width) {
    T* const q = q_.get();
    const std::size_t stride = width * kWide;
    std::fill_n(q, a_.n * stride, T(0));
    for (std::size_t j = 0; a_.weights && j < a_.k; ++j) {
      T* const at = wire(q, a_.outputs[j]);
      for (std::size_t lane = 0; lane < kWide; ++lane) at[lane] = row_of(a_.weights, lane, a_.k)[j];
    }
    for (std::size_t j = 0; !a_.weights && j < width; ++j) {
      std::fill_n(q + std::size_t(a_.outputs[column + j]) * stride + j * kWide, kWide, T(1));
    }
    for (std::size_t c = a_.size; c-- > 0;) {
      T *low = q + std::size_t(a_.low[c]) * stride, *high = q + std::size_t(a_.high[c]) * stride;
      const Pack<T> part = load(part_.get() + c * kWide);
      for (std::size_t j = 0; j < stride; j += kWide) {
        const Pack<T> difference = load(high + j) - load(low + j);
        if (kKeep) store(difference_.get() + c * stride + j, difference);
        store(low + j, load(low + j) + part * difference), store(high + j, load(high + j) - part * difference);
      }
    }
  }

  // G through the network, from the first comparator to the last: adds up dL/dpart.
  void run_upstream(std::size_t column, std::size_t width) {
    T* const r = q_.get();
    const std::size_t stride = width * kWide;
    for (std::size_t j = 0; j < width; ++j) {
      gather(a_.n, stride, r + j * kWide, [=, this](std::size_t lane, std::size_t i) {
        return row_of(a_.upstream, lane, rows_ * a_.n)[(column + j) * a_.n + i];
      });
    }
    for (std::size_t c = 0; c < a_.size; ++c) {
      T *low = r + std::size_t(a_.low[c]) * stride, *high = r + std::size_t(a_.high[c]) * stride;
      const Pack<T> part = load(part_.get() + c * kWide);
      Pack<T> pull = load(pull_.get() + c * kWide);
      for (std::size_t j = 0; j < stride; j += kWide) {
        const Pack<T> difference = load(high + j) - load(low + j);
        pull -= difference * load(difference_.get() + c * stride + j);
        store(low + j, load(low + j) + part * difference), store(high + j, load(high + j) - part * difference);
      }
      store(pull_.get() + c * kWide, pull);
    }
  }

  // From the gradients of the last values to those of the scores.
  // With d = dL/da' - dL/db': dL/dgap = part d - f/τ dL/dpart - f gap/τ d, in which no product overflows.
  void run_values_back() {
    V* const g = values_.get();
    std::fill_n(g, a_.n * kWide, V(0));
    for (std::size_t j = 0; !a_.matrix && j < a_.k; ++j) {
      for (std::size_t lane = 0; lane < kWide; ++lane) {
        wire(g, a_.outputs[j])[lane] = sign() * V(row_of(a_.upstream, lane, a_.k)[j]);
      }
    }
    for (std::size_t c = a_.size; c-- > 0;) {
      for (std::size_t lane = 0; lane < kWide; lane += kLanes<V>) compare_back(c, lane);
    }
  }
  void compare_back(std::size_t c, std::size_t lane) {
    V *low = wire(values_.get(), a_.low[c]) + lane, *high = wire(values_.get(), a_.high[c]) + lane;
    const std::size_t at = c * kWide + lane;
    Pack<V> part, pull;
    for (std::size_t i = 0; i < kLanes<V>; ++i) part[i] = V(part_.get()[at + i]), pull[i] = V(pull_.get()[at + i]);
    const Pack<V> a = load(low), b = load(high), d = a - b;
    const Pack<V> slope = load(slope_.get() + at), scale = load(scale_ + lane) / F<V>::kUnit;
    const Pack<V> by_gap = part * d - (slope * pull) * (kQuarter * scale) - (slope * load(gap_.get() + at)) * scale * d;
    store(low, a - by_gap), store(high, b + by_gap);
  }

  void write_values() const {
    for (std::size_t lane = 0; lane < count_; ++lane) {
      for (std::size_t j = 0; j < a_.k; ++j) {
        out_of(lane, a_.k)[j] = T((start(lane) + sign() * wire(values_.get(), a_.outputs[j])[lane]) / kQuarter);
      }
    }
  }
  void write_columns(std::size_t column, std::size_t width) const {
    for (std::size_t j = 0; j < width; ++j) {
      scatter(a_.n, [=, this](std::size_t lane, std::size_t i) {
        out_of(lane, rows_ * a_.n)[(column + j) * a_.n + i] = q_.get()[(i * width + j) * kWide + lane];
      });
    }
  }
  void write_gradients() const {
    scatter(a_.n, [this](std::size_t lane, std::size_t i) {
      out_of(lane, a_.n)[i] = T(sign() * values_.get()[i * kWide + lane]);
    });
  }
  // What comes out of the network when the upstream goes in.
  void write_by_weights() const {
    for (std::size_t lane = 0; lane < count_; ++lane) {
      T* const out = static_cast<T*>(a_.by_weights) + (first_ + lane) * a_.k;
      for (std::size_t j = 0; j < a_.k; ++j) out[j] = wire(q_.get(), a_.outputs[j])[lane];
    }
  }

  template <class S> static S* wire(S* tile, std::int32_t i) { return tile + std::size_t(i) * kWide; }

  const Network& a_;
  std::size_t first_ = 0, count_ = 0, rows_, columns_;
  V scale_[kWide], live_[kWide];  // of every lane: 1/τ in the unit of F, and how many wires are not idle
  Scratch<V> values_;
  Scratch<T> part_;
  Scratch<V> gap_, slope_;
  Scratch<T> pull_, q_, difference_;
};

template <template <class> class F, class T, class V> void run_tiles(const Network& a) {
  constexpr std::size_t wide = kLanes<T>, grain = 16384;
  const std::size_t tiles = (a.rows + wide - 1) / wide;
  const std::size_t work = a.rows * a.size * (a.matrix && !a.weights ? a.k : 1) / grain;
  const std::size_t most = std::min<std::size_t>({std::size_t(std::max(a.threads, 1)), tiles, Team::kMost});
  const Team team{static_cast<int>(std::clamp<std::size_t>(work, 1, most))};
  team.split_evenly(tiles, [&](std::size_t begin, std::size_t end) {
    Tile<F, T, V> rows(a);
    for (std::size_t tile = begin; tile < end; ++tile) rows.run(tile * wide);
  });
}

template <template <class> class F, class T> void run(const Network& a) {
  return a.matrix ? run_tiles<F, T, double>(a) : run_tiles<F, T, T>(a);
}

template <class T> using LogisticPhiQuarter = LogisticPhi<T, 4>;
template <class T> using LogisticPhiHalf = LogisticPhi<T, 2>;

template <class T> void run(const Network& a) {
  if (a.rows == 0 || a.n == 0 || a.k == 0) return;
  const NoDenormals guard;
  switch (static_cast<Comparator>(a.comparator)) {
    case Comparator::logistic: return run<Logistic, T>(a);
    case Comparator::cauchy: return run<Cauchy, T>(a);
    case Comparator::reciprocal: return run<Reciprocal, T>(a);
    case Comparator::optimal: return run<Optimal, T>(a);
    case Comparator::gaussian: return run<Normal, T>(a);
    case Comparator::logistic_phi_quarter: return run<LogisticPhiQuarter, T>(a);
    case Comparator::logistic_phi_half: return run<LogisticPhiHalf, T>(a);
  }
  throw unknown_choice();
}

}  // namespace

void network(const Network& a) { return a.wide ? run<double>(a) : run<float>(a); }

}  // namespace softorder
