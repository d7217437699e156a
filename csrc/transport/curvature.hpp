// J of the semi-dual, J_jl = Σ Q_min(j,l) U_max(j,l), and Newton's systems with it.
#pragma once

#include "transport/plan.hpp"

namespace softorder::transport {

// Only the upper triangle of the matrix is kept, up to where its rows end: with sorted scores and a narrow plan that is near
// the diagonal, and so it is for the factor R of J = Rᵀ R.
class Curvature {
 public:
  explicit Curvature(std::size_t most)
      : size_(most), stride_(in_packs(most) + kWide), matrix_(stride_ * most), unit_(most), end_(most) {}

  // From Q and U, (open, width). What is less than `precision` of the geometric mean of two entries of the diagonal may be left
  // out. False where J is not positive definite as far as can be told.
  bool factorise(const double* below, const double* above, std::size_t open, std::size_t width, bool sorted,
                 double precision) {
    size_ = open;
    std::fill_n(matrix_.get(), stride_ * size_, 0.0);
    double least = kInfinity;
    coldest_ = kInfinity, inexact_ = false;
    for (std::size_t j = 0; j < size_; ++j) {
      D sum{};
      for (std::size_t i = 0; i < width; i += kScores) sum += load(below + j * width + i) * load(above + j * width + i);
      const double diagonal = sum_lanes(sum);
      coldest_ = std::min(coldest_, diagonal);
      inexact_ |= diagonal > 0 && diagonal < kCold;
      const bool still = !(diagonal >= std::numeric_limits<double>::min());
      unit_.get()[j] = still ? 0 : 1 / std::sqrt(diagonal);
      if (!still) least = std::min(least, diagonal);
    }
    multiply(below, above, width, sorted ? precision * least : -1);
    return cholesky();
  }

  // Whether entries of the diagonal underflow, or terms of entries that do not.
  bool cold() const { return coldest_ < kCold; }
  bool inexact() const { return inexact_; }

  // J⁻¹ right in its place; 0 where J_jj underflows.
  void solve(double* right) const {
    const double* const unit = unit_.get();
    for (std::size_t j = 0; j < size_; ++j) right[j] *= unit[j];
    for (std::size_t k = 0; k < size_; ++k) {
      const double* const row = row_at(k);
      const double y = right[k] *= row[k];  // the inverse of R_kk
      for (std::size_t l = k + 1; l < end_.get()[k]; ++l) right[l] -= y * row[l];
    }
    for (std::size_t k = size_; k-- > 0;) {
      const double* const row = row_at(k);
      double sum = right[k];
      for (std::size_t l = k + 1; l < end_.get()[k]; ++l) sum -= row[l] * right[l];
      right[k] = sum * row[k];
    }
    for (std::size_t j = 0; j < size_; ++j) right[j] *= unit[j];
  }

 private:
  static constexpr double kCold = 1e-290;             // J_jj from which on its terms underflow
  static constexpr std::size_t kTall = 4;             // rows of Q and U that are multiplied at once
  static constexpr std::size_t kWide = 4 * kScores;   // columns of R that are found at once

  double* row_at(std::size_t j) const { return matrix_.get() + j * stride_; }

  // Q falls and U rises along sorted scores, so that the products of two rows matter between two places, which move on with
  // the rows. Those below `least` do not.
  void multiply(const double* below, const double* above, std::size_t width, double least) {
    std::size_t reach = 0;
    for (std::size_t j = 0; j < size_; j += kTall) {
      const std::size_t tall = std::min(kTall, size_ - j);
      const double* const last = below + (j + tall - 1) * width;
      while (reach < width && !(last[reach] < least)) reach += kScores;
      std::size_t begin = 0, l = j;
      for (; l < size_; l += kTall) {
        while (begin < reach && above[l * width + begin + kScores - 1] < least) begin += kScores;
        if (begin >= reach && l > j) break;
        const std::size_t wide = std::min(kTall, size_ - l);
        if (tall == kTall && wide == kTall) block<kTall>(below, above, width, j, l, begin, reach, tall, wide);
        else block<1>(below, above, width, j, l, begin, reach, tall, wide);
      }
      for (std::size_t k = j; k < j + tall; ++k) {
        end_.get()[k] = std::min(l, size_);
        row_at(k)[k] = 1 + 1e-14;
      }
    }
  }

  template <std::size_t N>
  void block(const double* below, const double* above, std::size_t width, std::size_t j, std::size_t l, std::size_t begin,
             std::size_t end, std::size_t tall, std::size_t wide) {
    for (std::size_t r = j; r < j + tall; r += N) {
      for (std::size_t c = l; c < l + wide; c += N) {
        D sums[N][N] = {};
        for (std::size_t i = begin; i < end; i += kScores) {
          D q[N], u[N];
#pragma GCC unroll 4
          for (std::size_t s = 0; s < N; ++s) q[s] = load(below + (r + s) * width + i), u[s] = load(above + (c + s) * width + i);
#pragma GCC unroll 4
          for (std::size_t s = 0; s < N; ++s) {
#pragma GCC unroll 4
            for (std::size_t t = 0; t < N; ++t) sums[s][t] += q[s] * u[t];
          }
        }
        for (std::size_t s = 0; s < N; ++s) {
          for (std::size_t t = 0; t < N; ++t) row_at(r + s)[c + t] = sum_lanes(sums[s][t]) * unit_.get()[r + s] * unit_.get()[c + t];
        }
      }
    }
  }

  // R in the place of J, with 1/R_kk on its diagonal. The rows of R that reach a column begin ever later.
  bool cholesky() {
    for (std::size_t j = 0; j < size_; ++j) {
      double* const row = row_at(j);
      std::size_t begin = 0;
      for (std::size_t l = j / kScores * kScores; l < end_.get()[j]; l += kWide) {
        while (begin < j && end_.get()[begin] <= std::max(l, j)) ++begin;
        D sums[4];
        for (std::size_t t = 0; t < 4; ++t) sums[t] = load(row + l + t * kScores);
        for (std::size_t k = begin; k < j; ++k) {
          const double* const other = row_at(k);
          const D factor = D{} + other[j];
#pragma GCC unroll 4
          for (std::size_t t = 0; t < 4; ++t) sums[t] -= factor * load(other + l + t * kScores);
        }
        for (std::size_t t = 0; t < 4; ++t) store<double>(row + l + t * kScores, sums[t]);
      }
      if (!(row[j] > 0)) return false;
      const double inverse = 1 / std::sqrt(row[j]);
      for (std::size_t l = j + 1; l < end_.get()[j]; ++l) row[l] *= inverse;
      row[j] = inverse;
    }
    return true;
  }

  std::size_t size_, stride_;
  double coldest_ = 0;
  bool inexact_ = false;
  Scratch<double> matrix_, unit_;
  Scratch<std::size_t> end_;
};

}  // namespace softorder::transport
