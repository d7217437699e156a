// Short rows, a pack of them at a time: one row per lane. A row of 64 scores is too short to fill the
// vector units by itself; sixteen of them side by side need no horizontal sums, no branches, and are
// sorted by a network in less time than one of them takes to be summed.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "simd/columns.hpp"
#include "threshold/far.hpp"
#include "threshold/guess.hpp"
#include "threshold/tile_laplace.hpp"
#include "threshold/tile_place.hpp"
#include "threshold/tile_step.hpp"

namespace softorder {

template <class F, class T> class Tile {
 public:
  static constexpr std::size_t kMostScores = 64, kRows = kLanes<T>;

  // What becomes of a row. solved: b is its threshold. gap: b is somewhere between the two scores
  // that hold it, where tails underflow. open: it holds +inf, its k has no root, or there is none in sight, or b is
  // far from 0 (far.hpp).
  enum class End { solved, gap, open };

  struct Row {
    double k, temperature;
    Threshold<T> b{};
    int sweeps = 0;
    End end = End::open;
  };

  // Without `any_gap`, a b must fit log p too where exactly k scores are above a wide gap. `masked`: there are
  // probably scores of -inf.
  Tile(std::size_t n, bool any_gap, bool masked)
      : n_(n), padded_((n + kBlockRows - 1) / kBlockRows * kBlockRows), any_gap_(any_gap), masked_(masked) {
    for (auto& pack : scores_) pack = Pack<T>{} - kInfinite;
  }

  // For rows of n scores from now on.
  void resize(std::size_t n) {
    if (n == n_) return;
    n_ = n, padded_ = (n + kBlockRows - 1) / kBlockRows * kBlockRows, some_ = true;
    for (std::size_t i = n; i < kMostScores; ++i) scores_[i] = Pack<T>{} - kInfinite;
  }

  T scale(std::size_t lane) const { return scale_[lane]; }

  void solve(const T* x, Row* rows, std::size_t count) {
    load_rows(x, count);
    find_moments();
    prepare(rows, count);
    usable_ = valid_ & (absolute<T>(mean_) < kInfinite);  // false for NaN
    const Mask<T> rough = ~(variance_ < T(9) * tau_ * tau_);
    sorted_ = any<T>(rough);
    if (!sorted_) {
      start_smooth();
      iterate();
    } else if (F::kExponential) {
      sort_rows();
      solve_laplace();
    } else {
      sort_rows();
      start_sorted(rough);
      approach();
      iterate();
    }
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
  static constexpr std::size_t kWindow = 16;  // around the place where k is reached

  End end_of(std::size_t lane) const {
    if (!usable_[lane] || !done_[lane] || is_far(Threshold<T>{centre_[lane], at_[lane]})) return End::open;
    return gap_[lane] ? End::gap : End::solved;
  }

  // Lanes without a row repeat the first one.
  void load_rows(const T* x, std::size_t count) {
    Pack<T> block[kRows];
    const auto row = [&](std::size_t lane, std::size_t begin) { return x + (lane < count ? lane : 0) * n_ + begin; };
    std::size_t begin = 0;
    for (; begin + kRows <= n_; begin += kRows) {
      load_turned<T>([&](std::size_t lane) { return row(lane, begin); }, block);
      for (std::size_t i = 0; i < kRows; ++i) scores_[begin + i] = block[i];
    }
    if (begin == n_) return;
    turn_each<T>([&](std::size_t lane) { return load_part(row(lane, begin), n_ - begin, -kInfinite); }, block);
    for (std::size_t i = 0; begin + i < n_; ++i) scores_[begin + i] = block[i];
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
    const PlaceNumbers<T>& at = numbers_.of(k, n);
    valid_[lane] = at.valid, whole_[lane] = at.whole, part_[lane] = at.part;
    most_[lane] = at.most, most_left_[lane] = at.most_left;
    part_quantile_[lane] = at.part_quantile, low_quantile_[lane] = at.low, high_quantile_[lane] = at.high;
    own_[lane] = at.own, bell_[lane] = at.bell;
  }

  // ---- the starting guess
  //
  // Several sums at once: one alone would wait for itself at every score.
  static constexpr std::size_t kWays = 4;
  struct Ways {
    Pack<T> at[kWays] = {};
    Pack<T> sum() const { return (at[0] + at[1]) + (at[2] + at[3]); }
  };

  // Calls work(i, way) for every score i of the rows.
  template <class Work> [[gnu::always_inline]] void in_ways(Work work) const {
    std::size_t i = 0;
    for (; i + kWays <= n_; i += kWays) {
#pragma GCC unroll 4
      for (std::size_t way = 0; way < kWays; ++way) work(i + way, way);
    }
    for (; i < n_; ++i) work(i, 0);
  }

  void find_moments() {
    if (masked_) return find_moments_of_some();
    Ways sums, squares;
    const Pack<T> origin = scores_[0];
    in_ways([&](std::size_t i, std::size_t way) {
      const Pack<T> z = scores_[i] - origin;
      sums.at[way] += z, squares.at[way] += z * z;
    });
    const Pack<T> sum = sums.sum();
    if (any<T>(~(absolute<T>(sum) < kInfinite))) return find_moments_of_some();
    if (some_) participants_ = Mask<T>{} + int(n_), some_ = false;
    set_moments(sum, squares.sum(), origin, Pack<T>{} + T(1) / T(n_));
  }

  // The same where scores of -inf take no part.
  void find_moments_of_some() {
    Ways sums, squares;
    const Pack<T> origin = largest_scores();
    Mask<T> count{};
    in_ways([&](std::size_t i, std::size_t way) {
      const Mask<T> takes_part = scores_[i] != -kInfinite;
      const Pack<T> z = takes_part ? scores_[i] - origin : Pack<T>{};
      sums.at[way] += z, squares.at[way] += z * z, count -= takes_part;
    });
    participants_ = count, some_ = any<T>(participants_ != int(n_));
    set_moments(sums.sum(), squares.sum(), origin, T(1) / __builtin_convertvector(participants_, Pack<T>));
  }

  Pack<T> largest_scores() const {
    Ways most;
    for (auto& pack : most.at) pack = scores_[0];
    in_ways([&](std::size_t i, std::size_t way) { most.at[way] = larger<T>(most.at[way], scores_[i]); });
    return larger<T>(larger<T>(most.at[0], most.at[1]), larger<T>(most.at[2], most.at[3]));
  }

  // Without `some`, there is no score of -inf.
  Pack<T> smallest_scores(bool some, Pack<T> highest) const {
    Ways least;
    for (auto& pack : least.at) pack = highest;
    if (some) {
      in_ways([&](std::size_t i, std::size_t way) {
        least.at[way] = scores_[i] == -kInfinite ? least.at[way] : smaller<T>(least.at[way], scores_[i]);
      });
    } else {
      in_ways([&](std::size_t i, std::size_t way) { least.at[way] = smaller<T>(least.at[way], scores_[i]); });
    }
    return smaller<T>(smaller<T>(least.at[0], least.at[1]), smaller<T>(least.at[2], least.at[3]));
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
    const Pack<T> highest = largest_scores(), lowest = smallest_scores(some_, highest);
    centre_ = mean_ + smooth_distance();
    low_ = (lowest - centre_) - tau_ * widened(own_, 1), high_ = (highest - centre_) - tau_ * widened(own_, -1);
    at_ = Pack<T>{};
    if constexpr (F::kTail == Tail::none) {  // one score alone has no more than k, and no less than k - (n - 1)
      const Pack<T> slack = T(1e-3) * tau_;
      low_ = larger<T>(low_, (highest - centre_) - tau_ * most_ - slack);
      high_ = smaller<T>(high_, (lowest - centre_) - tau_ * (T(1) - most_left_) + slack);
      at_ = larger<T>(low_, smaller<T>(high_, at_));
    }
  }

  Pack<T> smooth_distance() {
    const Pack<T> size = lane_roots<T>(variance_ * bell_ * bell_ + (own_ - F::kMiddle) * (own_ - F::kMiddle) * tau_ * tau_);
    const Pack<T> rough = (bell_ < T(0) ? -size : size) - F::kMiddle * tau_;
    if constexpr (F::kOrder == 5) {
      const Pack<T> ratio = lane_roots<T>(variance_) / tau_;
      const double typical = sum_lanes(ratio) / double(kRows);
      if (alike_ && typical > 0.05 && valid_[0]) {
        const double share = k_[0] / double(n_of_[0]);
        const auto& known = guess_.smooth(share, typical, double(rough[0]) / temperature_[0]);
        return tau_ * (T(known.at(typical, share)) + T(known.slope) * (ratio - T(typical)));
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

  void sort_rows() {
    const std::size_t sorted = std::max(kHeld, std::bit_ceil(n_));  // behind n_ they are -inf
    sort_lanes<T>(scores_, sorted);
    if (any<T>(~usable_)) {  // a NaN has no place: another score of its row may stand behind n_ now
      for (std::size_t i = n_; i < sorted; ++i) scores_[i] = Pack<T>{} - kInfinite;
    }
  }

  // From the hard threshold, where τ is small: b is where the root would be if only the scores next to
  // it counted, and the bracket holds whatever the others add.
  void start_sorted(Mask<T> rough) {
    first_reached_ = n_ - 1, last_reached_ = 0;
    for (std::size_t lane = 0; lane < (same_place_ ? 1 : kRows); ++lane) {
      const auto reached = static_cast<std::size_t>(whole_[lane]);
      first_reached_ = std::min(first_reached_, reached), last_reached_ = std::max(last_reached_, reached);
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
    if (!any<T>(~rough)) return;
    const Pack<T> smooth = (mean_ - centre_) + smooth_distance();
    at_ = rough ? hard : larger<T>(low_, smaller<T>(high_, smooth));
  }

  // ---- without any iteration
  void solve_laplace() {
    const SortedLaplace<T> rows{scores_, n_, scale_, tau_, whole_, part_};
    const auto root = rows.solve(some_);
    centre_ = root.centre, at_ = root.rest;
    gap_ = any_gap_ ? Mask<T>{} : root.gap;
    done_ = ~Mask<T>{}, taken_ = -usable_;
  }

  // ---- the iteration
  using Totals = PackSums<F, T>;

  // Which scores are below b.
  enum class Side { below, above, either };

  // Adds a score of every row, with the derivatives that steps of the given order want; to a few digits where these are
  // only to come near b. `kFar`: all of them are far out.
  template <Side kSide, int kOrder, bool kFar = false>
  [[gnu::always_inline]] void add(Totals& sums, Pack<T> scores) const {
    const Pack<T> z = (scores - centre_) - at_;
    Values<T> values;
    if constexpr (kFar) values = F::far_values(absolute<T>(z), scale_);
    else if constexpr (kOrder == 3 && F::kTail == Tail::hyperbola) values = F::rough_values(absolute<T>(z), scale_);
    else values = values_at<F, T>(z, scale_);
    Pack<T> slope = kSide == Side::above ? -values.drop : values.drop;
    if constexpr (kSide == Side::either) {
      const Mask<T> below = (F::kMiddle == 0 ? z : z * scale_) < F::kMiddle;
      sums.lower = below ? sums.lower + values.tail : sums.lower;
      sums.upper = below ? sums.upper : sums.upper + values.tail;
      sums.not_above += below;
      slope = below ? slope : -slope;
      if constexpr (Totals::kSplit) sums.lower_pdf += below ? values.pdf : Pack<T>{};
    } else if constexpr (kSide == Side::below) {
      sums.lower += values.tail, sums.not_above += Mask<T>{} - 1;
      if constexpr (Totals::kSplit) sums.lower_pdf += values.pdf;
    } else {
      sums.upper += values.tail;
    }
    if constexpr (F::kExponential) return;
    sums.pdf += values.pdf, sums.curve += slope;
    if constexpr (kOrder == 5) sums.third += values.pdf * values.third, sums.fourth += slope * values.fourth;
  }

  // The sums over a whole number of blocks.
  template <Side kSide = Side::either, int kOrder = F::kOrder, bool kFar = false>
  Totals sum_blocks(std::size_t first, std::size_t last) const {
    Totals total;
    for (std::size_t begin = first; begin < last; begin += kBlockRows) {
      Totals part;
#pragma GCC unroll 8
      for (std::size_t i = 0; i < kBlockRows; ++i) add<kSide, kOrder, kFar>(part, scores_[begin + i]);
      total += part;
    }
    return total;
  }

  // Sorted scores are summed from where k is reached outwards, until a block of them on its own side of b
  // adds nothing to any row: those behind it are certain.
  Totals sweep() const {
    constexpr bool light = F::kTail == Tail::exponential || F::kTail == Tail::gaussian;
    if constexpr (F::kTail == Tail::hyperbola) return finished<F, T>(sorted_ ? sum_sorted() : sum_blocks(0, padded_));
    if (!sorted_ || !light) return finished<F, T>(sum_blocks(0, padded_));
    std::size_t first = first_reached_ / kBlockRows * kBlockRows;
    std::size_t last = last_reached_ / kBlockRows * kBlockRows + kBlockRows;
    Totals total = sum_blocks(first, last);
    for (bool more = true; more && first > 0;) {
      first -= kBlockRows;
      const bool clear = !any<T>(scores_[first + kBlockRows - 1] - centre_ < at_);
      const Totals part = clear ? sum_clear<Side::above>(first, scores_[first + kBlockRows - 1])
                                : sum_blocks<Side::either>(first, first + kBlockRows);
      total += part, more = !clear || matters(part, total);
    }
    for (bool more = true; more && last < padded_; last += kBlockRows) {
      const bool clear = !any<T>(scores_[last] - centre_ >= at_);
      const Totals part = clear ? sum_clear<Side::below>(last, scores_[last])
                                : sum_blocks<Side::either>(last, last + kBlockRows);
      total += part, more = !clear || matters(part, total);
    }
    total.not_above -= static_cast<typename Number<T>::Integer>(padded_ - last);
    return finished<F, T>(total);
  }

  // A block on one side of b, of which `nearest` are next to it: for less where all are far out in exponential tails.
  template <Side kSide> Totals sum_clear(std::size_t first, Pack<T> nearest) const {
    if constexpr (F::kTail == Tail::exponential && !F::kExponential) {
      const Pack<T> away = absolute<T>((nearest - centre_) - at_);
      if (!any<T>(~(away * scale_ > T(F::kReach) * F::kUnit))) return sum_exponentials<kSide>(first);
    }
    return sum_blocks<kSide>(first, first + kBlockRows);
  }

  // There F is e^-a - e^-2a, and the sums of both powers are those of its derivatives, too.
  template <Side kSide> Totals sum_exponentials(std::size_t first) const {
    Pack<T> sum{}, squares{};
#pragma GCC unroll 8
    for (std::size_t i = 0; i < kBlockRows; ++i) {
      const Pack<T> e = exp2_minus<T>(absolute<T>((scores_[first + i] - centre_) - at_), scale_);
      sum += e, squares += e * e;
    }
    Totals total;
    constexpr T side = kSide == Side::below ? 1 : -1;
    (kSide == Side::below ? total.lower : total.upper) = sum - squares;
    total.pdf = sum - T(2) * squares, total.curve = side * (sum - T(4) * squares);
    total.third = squares, total.fourth = side * squares;
    if (kSide == Side::below) total.not_above -= static_cast<typename Number<T>::Integer>(kBlockRows);
    return total;
  }

  // All sorted scores of heavy tails, those for less that are far out.
  Totals sum_sorted() const {
    Totals total;
    for (std::size_t begin = 0, end = kBlockRows; begin < padded_; begin += kBlockRows, end += kBlockRows) {
      constexpr T far = F::kReach;
      const Pack<T> first = (scores_[begin] - centre_) - at_, last = (scores_[end - 1] - centre_) - at_;
      if (!any<T>(~(last * scale_ > far))) total += sum_blocks<Side::above, F::kOrder, true>(begin, end);
      else if (!any<T>(~(first * scale_ < -far))) total += sum_blocks<Side::below, F::kOrder, true>(begin, end);
      else total += sum_blocks(begin, end);
    }
    return total;
  }

  static bool matters(const Totals& part, const Totals& total) {
    constexpr T little = std::numeric_limits<T>::epsilon() / 16;
    return any<T>(~(part.lower + part.upper <= little * (total.lower + total.upper)));
  }

  // A cheap step before the first sweep, where scores are sorted and k is reached at one place in all rows: on the
  // scores next to that place. Those further away count as certain.
  void approach() {
    if (!same_place_ || F::kTail == Tail::none || padded_ < kWindow + kBlockRows) return;
    const std::size_t reached = first_reached_ / 4 * 4, half = kWindow / 2;
    const std::size_t first = std::min(reached > half ? reached - half : 0, padded_ - kWindow);
    if constexpr (F::kTail == Tail::hyperbola) return approach_heavy(first);
    step_towards(sum_blocks<Side::either, 3>(first, first + kWindow), first + kWindow);
  }

  // Cauchy's tails are so heavy that all scores count, one for every four of those further away, and that one step is
  // not enough. The nearest scores are summed anew for each, and the others follow their Taylor polynomials unless b has
  // come near one of them.
  void approach_heavy(std::size_t first) {
    const std::size_t last = first + kWindow, half = kBlockRows / 2;
    const std::size_t nearest = std::clamp(first_reached_ > half ? first_reached_ - half : 0, first, last - kBlockRows);
    const std::size_t behind = nearest + kBlockRows, some = std::min((nearest + 3) / 4 * 4, last - kBlockRows);
    Totals sums = sum_blocks<Side::either, 3>(some, some + kBlockRows), others;
    add_sample(sums, some, some + kBlockRows);
    step_towards(sums, some + kBlockRows);
    Pack<T> start{}, room = start - T(1);
    for (int turn = 0; turn < 2; ++turn) {
      if (any<T>(~(absolute<T>(at_ - start) < T(0.5) * room))) {
        others = Totals{}, start = at_, room = Pack<T>{} + kInfinite;
        for (std::size_t i = first; i < nearest; ++i) add<Side::either, 3>(others, scores_[i]);
        for (std::size_t i = behind; i < last; ++i) add<Side::either, 3>(others, scores_[i]);
        add_sample(others, first, last);
        if (nearest > 0) room = (scores_[nearest - 1] - centre_) - at_;
        if (behind < padded_) room = smaller<T>(room, at_ - (scores_[behind] - centre_));
      }
      sums = sum_blocks<Side::either, 3>(nearest, behind);
      sums += moved<F, T>(others, (at_ - start) / tau_);
      step_towards(sums, last);
    }
  }

  // From the sums of the window that ends with `last`: all before it are above b.
  void step_towards(const Totals& sums, std::size_t last) {
    const Pack<T> above = __builtin_convertvector(sums.not_above, Pack<T>) + T(last);
    const Pack<T> residual = ((above - whole_) - part_) + (sums.lower - sums.upper);
    const Pack<T> next = at_ + step_of<F, T, 3>(finished<F, T>(sums), residual) * tau_;
    at_ = next == next ? larger<T>(low_, smaller<T>(high_, next)) : at_;
  }

  // Adds what the scores before `first` and from `last` on add up to, nearly.
  void add_sample(Totals& sums, std::size_t first, std::size_t last) const {
    Totals sample;
    for (std::size_t i = 0; i < padded_; i += 4) {
      if (i < first || i >= last) add<Side::either, 3>(sample, T(0.5) * (scores_[i + 1] + scores_[i + 2]));
    }
    sums.lower += T(4) * sample.lower, sums.upper += T(4) * sample.upper;
    sums.pdf += T(4) * sample.pdf, sums.lower_pdf += T(4) * sample.lower_pdf;
    sums.curve += T(4) * sample.curve;
  }

  void iterate() {
    constexpr int kMostSweeps = 10;
    constexpr T epsilon = std::numeric_limits<T>::epsilon();
    constexpr T limit = F::kOrder == 5 ? T(F::kShort) : T(is_single<T> ? 1e-3 : 1e-6);
    done_ = gap_ = taken_ = Mask<T>{};
    Mask<T> stepped{}, not_above{};  // of the sweep before
    Pack<T> pdf{};
    for (int sweeps = 1; sweeps <= kMostSweeps; ++sweeps) {
      const Totals s = sweep();
      const Pack<T> above = __builtin_convertvector(s.not_above, Pack<T>) + T(padded_);
      const Pack<T> extra = (above - whole_) - part_, residual = extra + (s.lower - s.upper);
      const Pack<T> step = step_of<F, T>(s, residual);
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
      if (!any<T>(usable_ & ~done_)) return;
    }
  }

  std::size_t n_, padded_;
  std::size_t first_reached_ = 0, last_reached_ = 0;  // between these places of sorted rows k is reached
  bool any_gap_, masked_, sorted_ = false, some_ = true;
  bool alike_ = false, same_place_ = false;  // k, τ and participants of all rows; the place of the k-th score
  Guess<F, T> guess_;
  Pack<T> scores_[kMostScores];
  double k_[kRows] = {}, temperature_[kRows] = {};
  Mask<T> participants_{}, n_of_{};  // how many there are; of how many the numbers below are
  KnownPlaces<F, T> numbers_;
  Pack<T> tau_{}, scale_{}, whole_{}, part_{}, most_{}, most_left_{};
  Pack<T> part_quantile_{}, low_quantile_{}, high_quantile_{}, own_{}, bell_{};
  Pack<T> mean_{}, variance_{}, width_{}, centre_{}, at_{}, low_{}, high_{};
  Mask<T> valid_{}, usable_{}, done_{}, gap_{}, taken_{};
};

}  // namespace softorder
