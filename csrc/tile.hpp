// Short rows, a pack of them at a time: one row per lane. A row of 64 scores is too short to fill the
// vector units by itself; sixteen of them side by side need no horizontal sums, no branches, and are
// sorted by a network in less time than one of them takes to be summed.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "sweep.hpp"
#include "threshold.hpp"

namespace softorder::SOFTORDER_LEVEL {

template <class F, class T> class Tile {
 public:
  static constexpr std::size_t kMostScores = 64, kRows = kLanes<T>;

  // One row's k and τ, and what becomes of it. A row that is not solved is left to Solver: it holds
  // infinities, its k has no root, or its tails underflow.
  struct Row {
    double k, temperature;
    Threshold<T> b{};
    int sweeps = 0;
    bool solved = false;
  };

  explicit Tile(std::size_t n)
      : n_(n), padded_((n + kBlockRows - 1) / kBlockRows * kBlockRows), network_(sorting_network(n)) {
    for (auto& pack : scores_) pack = Pack<T>{} - std::numeric_limits<T>::infinity();
  }

  void solve(const T* x, Row* rows, std::size_t count) {
    load(x, count);
    sort_descending();
    guess(rows, count);
    const int sweeps = iterate();
    for (std::size_t i = 0; i < count; ++i) {
      const double low = double(rest_[i]) + double(at_[i]);
      rows[i].b = {centre_[i], static_cast<T>(low)};
      rows[i].sweeps = sweeps + 1;  // and one for loading and sorting
      rows[i].solved = done_[i] && usable_[i] && std::isfinite(low);
    }
  }

 private:
  // Short sums first: equal scores must not add up their rounding. The last block is filled with -inf.
  static constexpr std::size_t kBlockRows = 8;

  // Lanes without a row repeat the first one.
  void load(const T* x, std::size_t count) {
    for (std::size_t lane = 0; lane < kRows; ++lane) {
      const T* row = x + (lane < count ? lane : 0) * n_;
      for (std::size_t i = 0; i < n_; ++i) scores_[i][lane] = row[i];
    }
  }

  void sort_descending() {
    for (const auto [i, j] : network_) {
      const Pack<T> a = scores_[i], b = scores_[j];
      scores_[i] = larger<T>(a, b);
      scores_[j] = smaller<T>(a, b);
    }
  }

  struct Comparator {
    std::uint8_t i, j;
  };

  // Batcher's odd-even merge sort, for any n.
  static std::vector<Comparator> sorting_network(std::size_t n) {
    std::vector<Comparator> network;
    for (std::size_t p = 1; p < n; p *= 2) {
      for (std::size_t k = p; k >= 1; k /= 2) {
        for (std::size_t j = k % p; j + k < n; j += 2 * k) {
          for (std::size_t i = j; i < std::min(j + k, n - k); ++i) {
            if (i / (2 * p) != (i + k) / (2 * p)) continue;
            network.push_back({static_cast<std::uint8_t>(i), static_cast<std::uint8_t>(i + k)});
          }
        }
      }
    }
    return network;
  }

  // As in Solver: from the hard threshold where τ is small, from the row's moments where it is not.
  void guess(const Row* rows, std::size_t count) {
    Pack<T> sum{}, squares{};
    const Pack<T> origin = scores_[n_ / 2];
    for (std::size_t i = 0; i < n_; ++i) {
      const Pack<T> z = scores_[i] - origin;
      sum += z, squares += z * z;
    }
    const T share = T(1) / T(n_);
    const Pack<T> mean = sum * share, variance = squares * share - mean * mean;
    for (std::size_t lane = 0; lane < kRows; ++lane) {
      const Row& row = rows[lane < count ? lane : 0];
      guess_lane(lane, row, double(mean[lane]), double(variance[lane]), origin[lane]);
    }
  }

  void guess_lane(std::size_t lane, const Row& row, double mean, double variance, double origin) {
    const double tau = row.temperature;
    const bool valid = row.k > 0 && row.k < double(n_) && std::isfinite(variance);
    variance = std::max(0.0, variance);
    const Shares& at = shares(valid ? row.k : 0.5 * double(n_));
    const auto index = static_cast<std::size_t>(at.whole);
    const double below = scores_[index][lane];
    const double width = at.part > 0 ? 0 : double(scores_[index - 1][lane]) - below;
    double offset = at.part > 0 ? -tau * at.part_quantile : 0.5 * width - F::kMiddle * tau;
    const double low = -tau * at.low_quantile, high = width - tau * at.high_quantile;
    if (variance < 16 * tau * tau) {
      const double spread = std::sqrt(variance * at.bell * at.bell + tau * tau * at.own * at.own);
      const double wish = (origin - below) + mean + (at.bell < 0 ? -spread : spread) - F::kMiddle * tau;
      offset = std::clamp(wish, low, high);
    }
    const double b = below + offset;
    centre_[lane] = T(b);
    rest_[lane] = T((below - double(centre_[lane])) + offset);
    low_[lane] = T(low - offset), high_[lane] = T(high - offset);
    tau_[lane] = T(tau), scale_[lane] = scale_of<F, T>(tau);
    whole_[lane] = T(at.whole), part_[lane] = T(at.part);
    usable_[lane] = valid ? -1 : 0;
  }

  // What depends on k alone; rows mostly share it.
  struct Shares {
    double k = -1, whole, part, part_quantile, low_quantile, high_quantile, bell, own;
  };

  const Shares& shares(double k) {
    if (k == shares_.k) return shares_;
    const double n = double(n_), whole = std::floor(k), part = k - whole;
    const double last = part > 0 ? part : 1;
    shares_ = {k,
               whole,
               part,
               part > 0 ? F::quantile(part) : 0,
               F::quantile(1 - std::min(0.5, (1 - part) / (whole + 1))),
               F::quantile(std::min(0.5, last / (n - std::ceil(k) + 1))),
               -Normal<double>::quantile(k / n),
               F::kMiddle - F::quantile(k / n)};
    return shares_;
  }

  struct PackSums {
    Pack<T> lower{}, upper{}, pdf{}, curve{};
    Mask<T> not_above{};
  };

  PackSums sweep() const {
    const Pack<T> centre = centre_, shift = rest_ + at_, scale = scale_, none{};
    PackSums total;
    for (std::size_t begin = 0; begin < padded_; begin += kBlockRows) {
      PackSums part;
#pragma GCC unroll 8
      for (std::size_t i = 0; i < kBlockRows; ++i) {
        const Pack<T> z = (scores_[begin + i] - centre) - shift;
        const Mask<T> below = (F::kMiddle == 0 ? z : z * scale) < F::kMiddle;
        const Values<T> at = values_at<F, T>(z, scale);
        part.lower += below ? at.tail : none;
        part.upper += below ? none : at.tail;
        part.not_above += below;
        if constexpr (!F::kExponential) {
          part.pdf += at.pdf;
          part.curve += below ? at.drop : -at.drop;
        }
      }
      total.lower += part.lower, total.upper += part.upper, total.not_above += part.not_above;
      if constexpr (!F::kExponential) total.pdf += part.pdf, total.curve += part.curve;
    }
    if constexpr (F::kExponential) {
      total.pdf = total.lower + total.upper, total.curve = total.lower - total.upper;
    }
    return total;
  }

  int iterate() {
    constexpr int kMostSweeps = 11;
    constexpr T epsilon = std::numeric_limits<T>::epsilon(), limit = T(is_single<T> ? 2e-3 : 1e-5);
    at_ = Pack<T>{};
    done_ = Mask<T>{};
    for (int sweeps = 1; sweeps <= kMostSweeps; ++sweeps) {
      const PackSums s = sweep();
      const Pack<T> above = __builtin_convertvector(s.not_above, Pack<T>) + T(padded_);
      const Pack<T> residual = ((above - whole_) - part_) + (s.lower - s.upper);
      const Pack<T> newton = residual / s.pdf, bend = T(0.5) * newton * s.curve / s.pdf;
      const Pack<T> step = absolute<T>(bend) < T(0.5) ? newton / (T(1) - bend) : newton;
      low_ = residual > T(0) ? at_ : low_;
      high_ = residual < T(0) ? at_ : high_;
      const Pack<T> next = at_ + step * tau_;
      const Mask<T> inside = (next >= low_) & (next <= high_);
      // in units of τ, or shorter where the tails fall faster than that
      const Pack<T> size = absolute<T>(step) * larger<T>(s.pdf, s.lower + s.upper);
      Mask<T> settled = inside & (size <= limit * (s.lower + s.upper));
      if constexpr (F::kTail == Tail::none) {
        settled = absolute<T>(residual) <= T(8) * epsilon * (s.lower + s.pdf);
      }
      const Pack<T> moved = inside ? next : T(0.5) * (low_ + high_);
      at_ = done_ ? at_ : settled & ~inside ? at_ : moved;
      done_ |= settled;
      // exactly k above and a tail that is 0: Solver balances logarithms there
      if (F::kTail != Tail::none) usable_ &= ~((above == whole_ + part_) & ((s.lower == T(0)) | (s.upper == T(0))));
      const Mask<T> waiting = usable_ & ~done_;
      if (sum_lanes(waiting) == 0) return sweeps;
    }
    return kMostSweeps;
  }

  std::size_t n_, padded_;
  std::vector<Comparator> network_;
  Pack<T> scores_[kMostScores];
  Pack<T> centre_, rest_, at_, low_, high_, tau_, scale_, whole_, part_;
  Mask<T> done_, usable_;
  Shares shares_;
};

}  // namespace softorder::SOFTORDER_LEVEL
