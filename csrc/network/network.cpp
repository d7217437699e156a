// Sorting and selection networks whose comparators swap in part, and their vector-Jacobian products.
//
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
// comparator, and Q_i - Q_j for some rows of P at a time.
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

// Some rows of the matrices, one per lane; empty lanes repeat the last row.
template <class F, class T> class Tile {
 public:
  static constexpr std::size_t kWide = kLanes<T>;

  explicit Tile(const Network& a)
      : a_(a),
        columns_(a.matrix ? std::min(a.k, kColumns) : 0),
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
    for (std::size_t column = 0; column < a_.k; column += columns_) {
      const std::size_t width = std::min(columns_, a_.k - column);
      run_columns<false>(column, width);
      write_columns(column, width);
    }
  }

  void backward() {
    run_values();
    std::fill_n(pull_.get(), a_.size * kWide, T(0));
    for (std::size_t column = 0; a_.matrix && column < a_.k; column += columns_) {
      const std::size_t width = std::min(columns_, a_.k - column);
      run_columns<true>(column, width);
      run_upstream(column, width);
    }
    run_values_back();
    write_gradients();
  }

  const T* row_of(const void* matrix, std::size_t lane, std::size_t length) const {
    return static_cast<const T*>(matrix) + (first_ + std::min(lane, count_ - 1)) * length;
  }
  T* out_of(std::size_t lane, std::size_t length) const {
    return static_cast<T*>(a_.out) + (first_ + lane) * length;
  }
  T sign() const { return a_.descending ? T(-1) : T(1); }
  // Only differences count: what all scores of a row have in common shall not cost digits.
  T start(std::size_t lane) const { return row_of(a_.scores, lane, a_.n)[0]; }

  // Copies kWide rows of `length` scalars, `stride` apart in the tile, into its lanes.
  template <class From> static void gather(std::size_t length, std::size_t stride, T* to, From from) {
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
    T* const v = values_.get();
    gather(a_.n, kWide, v, [this](std::size_t lane, std::size_t i) {
      return sign() * (row_of(a_.scores, lane, a_.n)[i] - start(lane));
    });
    Pack<T> scale, live = Pack<T>{} + T(a_.n);
    for (std::size_t lane = 0; lane < kWide; ++lane) {
      const std::size_t row = first_ + std::min(lane, count_ - 1);
      scale[lane] = scale_of<F, T>(a_.temperature[row * a_.temperature_stride]);
      if (a_.count) live[lane] = T(a_.count[row]);
    }
    unit_ = scale / F::kUnit;
    for (std::size_t c = 0; c < a_.size; ++c) {
      T *low = wire(v, a_.low[c]), *high = wire(v, a_.high[c]);
      const Pack<T> a = load(low), b = load(high), gap = b - a;
      Swap<T> swap = swap_at<F, T>(gap, scale);
      if (a_.count) {
        const Mask<T> idle = Pack<T>{} + T(a_.high[c]) >= live;
        swap.part = idle ? Pack<T>{} : swap.part, swap.slope = idle ? Pack<T>{} : swap.slope;
      }
      store(low, a + swap.part * gap), store(high, b - swap.part * gap);
      store(part_.get() + c * kWide, swap.part);
      if (a_.upstream) store(gap_.get() + c * kWide, gap), store(slope_.get() + c * kWide, swap.slope);
    }
  }

  // From E to the rows [column, column + width) of P; keeps Q_i - Q_j if a gradient is wanted.
  template <bool kKeep> void run_columns(std::size_t column, std::size_t width) {
    T* const q = q_.get();
    const std::size_t stride = width * kWide;
    std::fill_n(q, a_.n * stride, T(0));
    for (std::size_t j = 0; j < width; ++j) {
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
        return row_of(a_.upstream, lane, a_.k * a_.n)[(column + j) * a_.n + i];
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
  // With d = dL/da' - dL/db': dL/dgap = part d - f/τ (dL/dpart + gap d).
  void run_values_back() {
    T* const g = values_.get();
    std::fill_n(g, a_.n * kWide, T(0));
    for (std::size_t j = 0; !a_.matrix && j < a_.k; ++j) {
      for (std::size_t lane = 0; lane < kWide; ++lane) {
        g[std::size_t(a_.outputs[j]) * kWide + lane] = sign() * row_of(a_.upstream, lane, a_.k)[j];
      }
    }
    for (std::size_t c = a_.size; c-- > 0;) {
      T *low = wire(g, a_.low[c]), *high = wire(g, a_.high[c]);
      const Pack<T> a = load(low), b = load(high), d = a - b;
      const Pack<T> pull = load(pull_.get() + c * kWide) + load(gap_.get() + c * kWide) * d;
      const Pack<T> steep = load(slope_.get() + c * kWide) * unit_;
      const Pack<T> by_gap = load(part_.get() + c * kWide) * d - steep * pull;
      store(low, a - by_gap), store(high, b + by_gap);
    }
  }

  void write_values() const {
    for (std::size_t lane = 0; lane < count_; ++lane) {
      for (std::size_t j = 0; j < a_.k; ++j) {
        out_of(lane, a_.k)[j] = start(lane) + sign() * values_.get()[std::size_t(a_.outputs[j]) * kWide + lane];
      }
    }
  }
  void write_columns(std::size_t column, std::size_t width) const {
    for (std::size_t j = 0; j < width; ++j) {
      scatter(a_.n, [=, this](std::size_t lane, std::size_t i) {
        out_of(lane, a_.k * a_.n)[(column + j) * a_.n + i] = q_.get()[(i * width + j) * kWide + lane];
      });
    }
  }
  void write_gradients() const {
    scatter(a_.n, [this](std::size_t lane, std::size_t i) {
      out_of(lane, a_.n)[i] = sign() * values_.get()[i * kWide + lane];
    });
  }

  static T* wire(T* tile, std::int32_t i) { return tile + std::size_t(i) * kWide; }

  const Network& a_;
  std::size_t first_ = 0, count_ = 0, columns_;
  Pack<T> unit_{};  // 1/τ
  Scratch<T> values_, part_, gap_, slope_, pull_, q_, difference_;
};

template <class F, class T> void run(const Network& a) {
  constexpr std::size_t wide = Tile<F, T>::kWide, grain = 16384;
  const std::size_t tiles = (a.rows + wide - 1) / wide;
  const std::size_t work = a.rows * a.size * (a.matrix ? a.k : 1) / grain;
  const std::size_t most = std::min<std::size_t>({std::size_t(std::max(a.threads, 1)), tiles, Team::kMost});
  const Team team{static_cast<int>(std::clamp<std::size_t>(work, 1, most))};
  team.split_evenly(tiles, [&](std::size_t begin, std::size_t end) {
    Tile<F, T> rows(a);
    for (std::size_t tile = begin; tile < end; ++tile) rows.run(tile * wide);
  });
}

template <class T> void run(const Network& a) {
  if (a.rows == 0 || a.n == 0 || a.k == 0) return;
  const NoDenormals guard;
  switch (static_cast<Comparator>(a.comparator)) {
    case Comparator::logistic: return run<Logistic<T>, T>(a);
    case Comparator::cauchy: return run<Cauchy<T>, T>(a);
    case Comparator::reciprocal: return run<Reciprocal<T>, T>(a);
    case Comparator::optimal: return run<Optimal<T>, T>(a);
    case Comparator::gaussian: return run<Normal<T>, T>(a);
    case Comparator::logistic_phi_quarter: return run<LogisticPhi<T, 4>, T>(a);
    case Comparator::logistic_phi_half: return run<LogisticPhi<T, 2>, T>(a);
  }
  throw unknown_choice();
}

}  // namespace

void network(const Network& a) { return a.wide ? run<double>(a) : run<float>(a); }

}  // namespace softorder
