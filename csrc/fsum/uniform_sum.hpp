// F-sums of the uniform density and their inverse, in linear time, by a window of sources that moves
// along the row: those with |u| < 1/2. The sources before it are done, with F = 1.
//
// Differences of prefix sums would cancel when the window is narrow. Instead the window is cut at a
// pivot: the sums from every place up to the pivot are known, those behind the pivot are added up.
// When the window has left the pivot behind, a new one is chosen at its end: every source is summed
// at most twice.
#pragma once

#include <cmath>

#include "fsum/laplace_invert.hpp"
#include "fsum/places.hpp"

namespace softorder {

template <class T> class UniformWindow {
 public:
  // `sums` has room for 2m numbers.
  UniformWindow(Places<T> sources, const T* weights, std::size_t m, double temperature, double* sums)
      : x_(sources), weights_(weights), tau_(temperature), zeroth_(sums), first_(sums + m) {}

  std::size_t begin() const { return begin_; }
  std::size_t end() const { return end_; }
  std::size_t size() const { return end_ - begin_; }

  // A source inside the window, if there is any.
  std::size_t reference() const { return pivot_ - 1; }
  // Σ w and Σ w (x_i - x_reference)/τ over the window.
  double zeroth() const { return zeroth_[begin_] + behind_[0]; }
  double first() const { return first_[begin_] + behind_[1]; }

  void grow() {
    const double w = weight(end_), v = offset(end_);
    behind_[0] += w, behind_[1] += w * v;
    ++end_;
  }
  void shrink() { ++begin_; }

  // To be called after moves and before sums are asked for.
  void settle() {
    if (begin_ < pivot_ || begin_ == end_) return;
    pivot_ = end_;
    behind_[0] = behind_[1] = 0;
    double zeroth = 0, first = 0;
    for (std::size_t i = end_; i-- > begin_;) {
      zeroth_[i] = zeroth += weight(i);
      first_[i] = first += weight(i) * offset(i);
    }
  }

 private:
  double weight(std::size_t i) const { return weights_ ? double(weights_[i]) : 1.0; }
  double offset(std::size_t i) const { return pivot_ == 0 ? 0 : x_.minus(i, x_, pivot_ - 1) / tau_; }

  Places<T> x_;
  const T* weights_;
  double tau_;
  double *zeroth_, *first_;
  std::size_t begin_ = 0, pivot_ = 0, end_ = 0;
  double behind_[2] = {};
};

// `sums` has room for 2m numbers.
template <class T> void uniform_fsum(const FsumRow<T>& row, double* sums) {
  if (row.derivative > 1) return std::fill(row.out, row.out + row.n, T(0));
  UniformWindow<T> window(row.sources, row.weights, row.m, row.temperature, sums);
  const double half = 0.5 * row.temperature;
  double done = 0;  // the weight before the window
  for (std::size_t j = 0; j < row.n; ++j) {
    while (window.begin() < row.m && row.targets.minus(j, row.sources, window.begin()) - half >= 0) {
      done += row.weight(window.begin());
      if (window.begin() == window.end()) window.grow();
      window.shrink();
    }
    while (window.end() < row.m && row.targets.minus(j, row.sources, window.end()) + half > 0) window.grow();
    window.settle();
    double inside = 0;
    if (window.size() > 0) {
      const double s = row.targets.minus(j, row.sources, window.reference()) / row.temperature;
      const double shares = s * window.zeroth() - window.first();  // Σ w u
      inside = row.derivative == 0 ? shares + 0.5 * window.zeroth() : row.moment == 1 ? shares : window.zeroth();
    }
    row.out[j] = T(row.derivative == 0 ? done + inside : inside);
  }
}

template <class T> class UniformInverse {
 public:
  UniformInverse(const InvertRow<T>& row, double* sums)
      : row_(row), x_{row.sources, nullptr}, window_(x_, nullptr, row.m, row.temperature, sums) {}

  void run() {
    constexpr double infinity = std::numeric_limits<double>::infinity();
    for (std::size_t j = 0; j < row_.n; ++j) {
      const double level = row_.levels[j];
      if (level <= 0) {
        row_.no_root(j, -infinity);
      } else if (level < double(row_.m)) {
        advance(level);
        solve(j, level);
      } else {
        row_.no_root(j, infinity);
      }
    }
  }

 private:
  // Moves the window past all the places x_i ± τ/2 where the sum is below the level.
  void advance(double level) {
    const std::size_t m = row_.m;
    for (;;) {
      const std::size_t a = window_.begin(), b = window_.end();
      const bool begins = b < m && (a == b || x_.minus(b, x_, a) < row_.temperature);
      if (begins) {
        if (a < b ? !(at(b, -0.5) < level) : !(double(a) < level)) return;
        window_.grow();
      } else {
        if (a == b || !(at(a, 0.5) <= level)) return;
        window_.shrink();
      }
      window_.settle();
    }
  }

  // The sum at x_i + shift·τ.
  double at(std::size_t i, double shift) const {
    const double s = x_.minus(i, x_, window_.reference()) / row_.temperature + shift;
    return double(window_.begin()) + (s + 0.5) * window_.zeroth() - window_.first();
  }

  void solve(std::size_t j, double level) const {
    const std::size_t a = window_.begin();
    const double inside = double(window_.size());
    if (inside > 0) {
      const double along = ((level - double(a)) - 0.5 * inside + window_.first()) / inside;
      return row_.root(j, double(row_.sources[window_.reference()]), along * row_.temperature);
    }
    if (a == 0) return row_.root(j, double(row_.sources[0]), -0.5 * row_.temperature);
    const double below = double(row_.sources[a - 1]);
    const double offset = a == row_.m ? 0.5 * row_.temperature : 0.5 * (double(row_.sources[a]) - below);
    row_.root(j, below, offset);  // the middle of the plateau
  }

  const InvertRow<T>& row_;
  Places<T> x_;
  UniformWindow<T> window_;
};

}  // namespace softorder
