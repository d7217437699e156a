// Short rows, a pack of them at a time: one row per lane. A row of 64 scores is too short to fill the
// vector units by itself; sixteen of them side by side need no horizontal sums, no branches, and are
// sorted by a network in less time than one of them takes to be summed.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "simd/columns.hpp"
#include "threshold/guess.hpp"
#include "threshold/sweep.hpp"

namespace softorder {

template <class F, class T> class Tile {
 public:
  static constexpr std::size_t kMostScores = 64, kRows = kLanes<T>;

  // What becomes of a row. solved: b is its threshold. gap: b is somewhere between the two scores
  // that hold it, where tails underflow. open: it holds +inf, its k has no root, or there is none in sight.
  enum class End { solved, gap, open };

  struct Row {
    double k, temperature;
    Threshold<T> b{};
    int sweeps = 0;
    End end = End::open;
  };

  // Without `any_gap`, a b must fit log p too where exactly k scores are above a wide gap.
  Tile(std::size_t n, bool any_gap)
      : n_(n), padded_((n + kBlockRows - 1) / kBlockRows * kBlockRows), any_gap_(any_gap) {
    for (auto& pack : scores_) pack = Pack<T>{} - kInfinite;
  }

  T scale(std::size_t lane) const { return scale_[lane]; }

  void solve(const T* x, Row* rows, std::size_t count) {
    load_rows(x, count);
    find_moments();
    prepare(rows, count);
    usable_ = valid_ & (absolute<T>(mean_) < kInfinite);  // false for NaN
    const Mask<T> rough = ~(variance_ < T(9) * tau_ * tau_);
    sorted_ = any(rough);
    if (sorted_) start_sorted(rough);
    else start_smooth();
    iterate();
    for (std::size_t i = 0; i < count; ++i) {
      rows[i].b = {centre_[i], at_[i]};
      rows[i].sweeps = int(taken_[i]) + 1 + sorted_;  // loading, sorting
      rows[i].end = end_of(i);
    }
  }

 private:
  static constexpr T kInfinite = std::numeric_limits<T>::infinity();
  // Short sums first: equal scores must not add up their rounding. The last block is filled with -inf.
  static constexpr std::size_t kBlockRows = 8;

  End end_of(std::size_t lane) const {
    if (!usable_[lane] || !done_[lane] || !std::isfinite(at_[lane])) return End::open;
    return gap_[lane] ? End::gap : End::solved;
  }

  // Lanes without a row repeat the first one.
  void load_rows(const T* x, std::size_t count) {
    Pack<T> block[kRows];
    for (std::size_t begin = 0; begin < n_; begin += kRows) {
      const std::size_t length = std::min(kRows, n_ - begin);
      for (std::size_t lane = 0; lane < kRows; ++lane) {
        const T* row = x + (lane < count ? lane : 0) * n_ + begin;
        block[lane] = length == kRows ? load(row) : load_part(row, length, -kInfinite);
      }
      transpose<T>(block);
      for (std::size_t i = 0; i < length; ++i) scores_[begin + i] = block[i];
    }
  }

  // ---- what depends on k, τ and how many scores take part: rows mostly share them
  void prepare(const Row* rows, std::size_t count) {
    bool changed = false;
    for (std::size_t lane = 0; lane < kRows; ++lane) {
      const Row& row = rows[lane < count ? lane : 0];
      if (row.temperature != temperature_[lane]) {
        temperature_[lane] = row.temperature, changed = true;
        tau_[lane] = T(row.temperature), scale_[lane] = scale_of<F, T>(row.temperature);
      }
      if (row.k == k_[lane] && participants_[lane] == n_of_[lane]) continue;
      k_[lane] = row.k, n_of_[lane] = participants_[lane], changed = true;
      set_lane(lane, row.k, double(participants_[lane]));
    }
    if (!changed) return;
    same_place_ = alike_ = true;
    for (std::size_t i = 1; i < kRows; ++i) {
      same_place_ = same_place_ && whole_[i] == whole_[0];
      alike_ = alike_ && k_[i] == k_[0] && temperature_[i] == temperature_[0] && n_of_[i] == n_of_[0];
    }
  }

  void set_lane(std::size_t lane, double k, double n) {
    valid_[lane] = k > 0 && k < n ? -1 : 0;
    if (!valid_[lane]) n = std::max(n, 1.0), k = 0.5 * n;
    whole_[lane] = T(std::floor(k)), part_[lane] = T(k - std::floor(k));
    most_[lane] = k < 1 ? T(k) : kInfinite, most_left_[lane] = n - k < 1 ? T(n - k) : kInfinite;
    const Quantiles& at = quantiles(k, n);
    part_quantile_[lane] = at.part, low_quantile_[lane] = at.low, high_quantile_[lane] = at.high;
    own_[lane] = at.own, bell_[lane] = at.bell;
  }

  // Of F, where a bracket or a guess wants them, and of the normal density.
  struct Quantiles {
    double k = -1, n = -1;
    T part, low, high, own, bell;
  };

  const Quantiles& quantiles(double k, double n) {
    Quantiles& known = quantiles_[(std::size_t(k) + 5 * std::size_t(n)) % kKnown];
    if (known.k == k && known.n == n) return known;
    const double whole = std::floor(k), part = k - whole, last = part > 0 ? part : 1;
    known = {k, n, T(part > 0 ? F::quantile(part) : 0), T(F::quantile(1 - std::min(0.5, (1 - part) / (whole + 1)))),
             T(F::quantile(std::min(0.5, last / (n - std::ceil(k) + 1)))), T(F::quantile(k / n)),
             T(-Normal<double>::quantile(k / n))};
    return known;
  }

  // ---- the starting guess
  void find_moments() {
    Pack<T> sum{}, squares{};
    const Pack<T> origin = scores_[0];
    lowest_ = highest_ = origin;
    for (std::size_t i = 0; i < n_; ++i) {
      const Pack<T> z = scores_[i] - origin;
      sum += z, squares += z * z;
      lowest_ = smaller<T>(lowest_, scores_[i]), highest_ = larger<T>(highest_, scores_[i]);
    }
    if (any(lowest_ == -kInfinite)) return find_moments_of_some();
    if (some_) participants_ = Mask<T>{} + int(n_), some_ = false;
    set_moments(sum, squares, origin, Pack<T>{} + T(1) / T(n_));
  }

  // The same where scores of -inf take no part.
  void find_moments_of_some() {
    Pack<T> sum{}, squares{};
    const Pack<T> origin = highest_;
    lowest_ = origin, participants_ = Mask<T>{}, some_ = true;
    for (std::size_t i = 0; i < n_; ++i) {
      const Mask<T> takes_part = scores_[i] != -kInfinite;
      const Pack<T> z = takes_part ? scores_[i] - origin : Pack<T>{};
      sum += z, squares += z * z, participants_ -= takes_part;
      lowest_ = takes_part ? smaller<T>(lowest_, scores_[i]) : lowest_;
    }
    set_moments(sum, squares, origin, T(1) / __builtin_convertvector(participants_, Pack<T>));
  }

  void set_moments(Pack<T> sum, Pack<T> squares, Pack<T> origin, Pack<T> share) {
    const Pack<T> mean = sum * share, variance = squares * share - mean * mean;
    mean_ = mean + origin, variance_ = variance < T(0) ? Pack<T>{} : variance;  // NaN: too large
  }

  // A root may be at the very end of its bracket, and rounding puts it outside.
  static Pack<T> widened(Pack<T> quantile, int side) {
    return quantile + T(side) * T(1e-3) * (T(1) + absolute<T>(quantile));
  }

  // From the row's moments, where τ is large. With q = F^-1(k/n), b is between min - qτ and max - qτ.
  void start_smooth() {
    centre_ = mean_ + smooth_distance();
    low_ = (lowest_ - centre_) - tau_ * widened(own_, 1), high_ = (highest_ - centre_) - tau_ * widened(own_, -1);
    at_ = Pack<T>{};
    if constexpr (F::kTail == Tail::none) {  // one score alone has no more than k, and no less than k - (n - 1)
      const Pack<T> slack = T(1e-3) * tau_;
      low_ = larger<T>(low_, (highest_ - centre_) - tau_ * most_ - slack);
      high_ = smaller<T>(high_, (lowest_ - centre_) - tau_ * (T(1) - most_left_) + slack);
      at_ = larger<T>(low_, smaller<T>(high_, at_));
    }
  }

  Pack<T> smooth_distance() {
    const Pack<T> size = root(variance_ * bell_ * bell_ + (own_ - F::kMiddle) * (own_ - F::kMiddle) * tau_ * tau_);
    const Pack<T> rough = (bell_ < T(0) ? -size : size) - F::kMiddle * tau_;
    if constexpr (F::kOrder == 5) {
      const Pack<T> ratio = root(variance_) / tau_;
      const double typical = sum_lanes(ratio) / double(kRows);
      if (alike_ && typical > 0.05 && valid_[0]) {
        const auto known = guess_.smooth(k_[0] / double(n_of_[0]), typical, double(rough[0]) / temperature_[0]);
        return tau_ * (T(known.root) + T(known.slope) * (ratio - T(known.ratio)));
      }
    }
    return rough;
  }

  // The score `next` places behind the one at which k is reached.
  Pack<T> ranked(int next) const {
    if (same_place_) {
      const int place = static_cast<int>(whole_[0]) + next;
      return place < 0 ? Pack<T>{} + kInfinite : place < int(n_) ? scores_[place] : Pack<T>{} - kInfinite;
    }
    T found[kRows];
    for (std::size_t lane = 0; lane < kRows; ++lane) {
      const int place = static_cast<int>(whole_[lane]) + next;
      found[lane] = place < 0 ? kInfinite : place < int(n_) ? scores_[place][lane] : -kInfinite;
    }
    return load(found);
  }

  // From the hard threshold, where τ is small: b is where the root would be if only the scores next to
  // it counted, and the bracket holds whatever the others add.
  void start_sorted(Mask<T> rough) {
    const std::size_t sorted = std::max(kHeld, std::bit_ceil(n_));  // behind n_ they are -inf
    sort_lanes<T>(scores_, sorted);
    if (any(~usable_)) {  // a NaN has no place: another score of its row may stand behind n_ now
      for (std::size_t i = n_; i < sorted; ++i) scores_[i] = Pack<T>{} - kInfinite;
    }
    centre_ = ranked(0);
    const Pack<T> above = ranked(-1), below = ranked(1);
    width_ = part_ > T(0) ? Pack<T>{} : above - centre_;
    low_ = -tau_ * widened(low_quantile_, 1), high_ = width_ - tau_ * widened(high_quantile_, -1);
    Pack<T> hard = part_ > T(0) ? -tau_ * part_quantile_ : T(0.5) * width_ - F::kMiddle * tau_;
    if constexpr (F::kTail == Tail::hyperbola) {  // of which the next scores take their share
      hard = larger<T>(below - centre_, smaller<T>(above - centre_, hard));
    }
    at_ = hard;
    if (!any(~rough)) return;
    const Pack<T> smooth = (mean_ - centre_) + smooth_distance();
    at_ = rough ? hard : larger<T>(low_, smaller<T>(high_, smooth));
  }

  // ---- the iteration
  static constexpr bool kSplit = F::kTail == Tail::hyperbola || F::kTail == Tail::none;

  struct PackSums {
    Pack<T> lower{}, upper{}, pdf{}, lower_pdf{}, curve{}, third{}, fourth{};
    Mask<T> not_above{};

    PackSums& operator+=(const PackSums& o) {
      lower += o.lower, upper += o.upper, not_above += o.not_above;
      if constexpr (!F::kExponential) pdf += o.pdf, curve += o.curve;
      if constexpr (kSplit) lower_pdf += o.lower_pdf;
      if constexpr (F::kOrder == 5) third += o.third, fourth += o.fourth;
      return *this;
    }
  };

  PackSums sweep() const {
    const Pack<T> centre = centre_, at = at_, scale = scale_, none{};
    PackSums total;
    for (std::size_t begin = 0; begin < padded_; begin += kBlockRows) {
      PackSums part;
#pragma GCC unroll 8
      for (std::size_t i = 0; i < kBlockRows; ++i) {
        const Pack<T> z = (scores_[begin + i] - centre) - at;
        const Mask<T> below = (F::kMiddle == 0 ? z : z * scale) < F::kMiddle;
        const Values<T> values = values_at<F, T>(z, scale);
        part.lower = below ? part.lower + values.tail : part.lower;
        part.upper = below ? part.upper : part.upper + values.tail;
        part.not_above += below;
        if constexpr (!F::kExponential) {
          const Pack<T> slope = below ? values.drop : -values.drop;
          part.pdf += values.pdf, part.curve += slope;
          if constexpr (kSplit) part.lower_pdf += below ? values.pdf : none;
          if constexpr (F::kOrder == 5) part.third += values.pdf * values.third, part.fourth += slope * values.fourth;
        }
      }
      total += part;
    }
    if constexpr (F::kExponential) {
      total.pdf = total.lower + total.upper, total.curve = total.lower - total.upper;
    }
    if constexpr (F::kOrder == 5) {
      total.third = F::kThird[0] * total.pdf + F::kThird[1] * total.third;
      total.fourth = F::kFourth[0] * total.curve + F::kFourth[1] * total.fourth;
    }
    return total;
  }

  // As in step.hpp: the tails as hyperbolas.
  static Pack<T> far_step(const PackSums& s, Pack<T> residual) {
    const Pack<T> lower_rate = s.lower_pdf / s.lower, upper_rate = (s.pdf - s.lower_pdf) / s.upper;
    const Pack<T> extra = residual - (s.lower - s.upper), product = lower_rate * upper_rate;
    const Pack<T> slope = s.lower * upper_rate + s.upper * lower_rate + extra * (upper_rate - lower_rate);
    const Pack<T> newton = residual / slope, square = T(1) + T(4) * extra * (product / slope) * newton;
    return T(2) * newton / (T(1) + root(square > T(0) ? square : Pack<T>{}));
  }

  // In units of τ: Halley's step, or the root of the Taylor polynomial of degree 4 near it.
  static Pack<T> step_of(const PackSums& s, Pack<T> residual) {
    const Pack<T> newton = residual / s.pdf, bend = T(0.5) * newton * s.curve / s.pdf;
    const Pack<T> halley = absolute<T>(bend) < T(0.5) ? newton / (T(1) - bend) : newton;
    if constexpr (F::kOrder < 5) return halley;
    const Pack<T> second = T(0.5) * s.curve, third = s.third * T(1.0 / 6), fourth = s.fourth * T(1.0 / 24);
    Pack<T> d = halley;
    for (int i = 0; i < 2; ++i) {
      const Pack<T> value = residual + d * (d * (second + d * (d * fourth - third)) - s.pdf);
      const Pack<T> slope = d * (T(2) * second + d * (T(4) * d * fourth - T(3) * third)) - s.pdf;
      d -= value / slope;
    }
    const Mask<T> short_one = (absolute<T>(halley) < T(0.5)) & (absolute<T>(d - halley) < T(0.2));
    if constexpr (F::kTail == Tail::hyperbola) {
      const Pack<T> far = far_step(s, residual);
      return short_one ? d : far == far ? far : halley;
    }
    if constexpr (F::kTail == Tail::gaussian) {
      const Mask<T> balanced = ~short_one & (residual == s.lower - s.upper) & (s.lower > T(0)) & (s.upper > T(0));
      if (any(balanced)) return short_one ? d : balanced ? balance_step(s) : halley;
    }
    return short_one ? d : halley;
  }

  // Exactly k scores above b: log Σ of both tails have to be equal. A normal tail of size q falls at
  // the rate of sqrt(-2 log q), or nearly so.
  static Pack<T> balance_step(const PackSums& s) {
    Pack<T> step;
    for (std::size_t i = 0; i < kRows; ++i) {
      const T lower = std::log(s.lower[i]), upper = std::log(s.upper[i]);
      const T rates = std::sqrt(std::max(T(1), T(-2) * lower)) + std::sqrt(std::max(T(1), T(-2) * upper));
      step[i] = (lower - upper) / rates;
    }
    return step;
  }

  // Laplace's, exact as far as b passes no score. Its logarithms cost more than Halley's step, which
  // mostly does as well; where that is slow, scores are far apart.
  static Pack<T> exact_step(const PackSums& s, Pack<T> extra) {
    Pack<T> step;
    for (std::size_t i = 0; i < kRows; ++i) {
      const double more = extra[i], lower = s.lower[i], upper = s.upper[i];
      const double root = std::sqrt(more * more + 4 * lower * upper);
      step[i] = T(more == 0  ? 0.5 * (std::log(lower) - std::log(upper))
                  : more > 0 ? std::log((more + root) / (2 * upper))
                             : std::log(2 * lower / (root - more)));
    }
    return step;
  }

  void iterate() {
    constexpr int kMostSweeps = 10;
    constexpr T epsilon = std::numeric_limits<T>::epsilon();
    constexpr T limit = F::kOrder == 5 ? T(F::kShort) : T(is_single<T> ? 1e-3 : 1e-6);
    done_ = gap_ = taken_ = Mask<T>{};
    Mask<T> stepped{}, not_above{};  // of the sweep before
    Pack<T> pdf{};
    for (int sweeps = 1; sweeps <= kMostSweeps; ++sweeps) {
      const PackSums s = sweep();
      const Pack<T> above = __builtin_convertvector(s.not_above, Pack<T>) + T(padded_);
      const Pack<T> extra = (above - whole_) - part_, residual = extra + (s.lower - s.upper);
      const Pack<T> step = F::kExponential && sweeps > 3 ? exact_step(s, extra) : step_of(s, residual);
      low_ = residual > T(0) ? at_ : low_;
      high_ = residual < T(0) ? at_ : high_;
      const Pack<T> next = at_ + step * tau_;
      // the sum of uniform densities bends at the ends of a bracket: there and back is no progress
      const Mask<T> inside = F::kTail == Tail::none ? (next > low_) & (next < high_) : (next >= low_) & (next <= high_);
      // in units of τ, or shorter where the tails fall faster than that
      const Pack<T> size = absolute<T>(step) * larger<T>(s.pdf, s.lower + s.upper);
      const Mask<T> as_near_as_possible = absolute<T>(next - at_) <= T(4) * epsilon * absolute<T>(at_);
      Mask<T> settled = inside & ((size <= limit * (s.lower + s.upper)) | as_near_as_possible);
      if constexpr (F::kTail == Tail::none) {  // Newton's step ends at the root if nothing bends on the way
        const Mask<T> straight = stepped & (s.pdf == pdf) & (s.not_above == not_above);
        settled = absolute<T>(residual) <= T(8) * epsilon * (s.lower + (s.pdf - s.lower_pdf));
        settled |= straight & (absolute<T>(residual) <= T(16) * epsilon * s.pdf);
        stepped = inside, pdf = s.pdf, not_above = s.not_above;
      }
      Pack<T> moved = inside ? next : T(0.5) * (low_ + high_);
      moved = settled & ~inside ? at_ : moved;
      if (F::kTail != Tail::none) {  // exactly k above and a tail that is 0: any b in the gap fits p
        const Mask<T> gap = (above == whole_ + part_) & ((s.lower == T(0)) | (s.upper == T(0)) | (s.pdf == T(0)));
        const bool any_fits = any_gap_ && sorted_;
        moved = gap ? (any_fits ? T(0.5) * width_ : at_) : moved;
        if (!any_fits) gap_ |= gap & ~done_;
        settled |= gap;
      }
      at_ = done_ ? at_ : moved;
      taken_ -= usable_ & ~done_;
      done_ |= settled;
      if (!any(usable_ & ~done_)) return;
    }
  }

  static bool any(Mask<T> mask) { return sum_lanes(mask) != 0; }

  static Pack<T> root(Pack<T> x) {
    Pack<T> y;
    for (std::size_t i = 0; i < kRows; ++i) y[i] = std::sqrt(x[i]);
    return y;
  }

  std::size_t n_, padded_;
  bool any_gap_, sorted_ = false, some_ = true;
  bool alike_ = false, same_place_ = false;  // k, τ and participants of all rows; the place of the k-th score
  Guess<F, T> guess_;
  Pack<T> scores_[kMostScores];
  double k_[kRows] = {}, temperature_[kRows] = {};
  Mask<T> participants_{}, n_of_{};  // how many there are; of how many the numbers below are
  static constexpr std::size_t kKnown = 64;
  Quantiles quantiles_[kKnown];
  Pack<T> tau_{}, scale_{}, whole_{}, part_{}, most_{}, most_left_{};
  Pack<T> part_quantile_{}, low_quantile_{}, high_quantile_{}, own_{}, bell_{};
  Pack<T> mean_{}, variance_{}, lowest_{}, highest_{}, width_{}, centre_{}, at_{}, low_{}, high_{};
  Mask<T> valid_{}, usable_{}, done_{}, gap_{}, taken_{};
};

}  // namespace softorder
