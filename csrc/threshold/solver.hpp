// Solves Σ F((x_i - b)/τ) = k for b, without sorting. See README.md beside this file.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>

#include "scratch.hpp"
#include "threshold/bracket.hpp"
#include "threshold/far.hpp"
#include "threshold/gap.hpp"
#include "threshold/guess.hpp"
#include "threshold/row.hpp"
#include "threshold/select.hpp"
#include "threshold/step.hpp"
#include "team.hpp"

namespace softorder {

template <class F, class T> class Solver {
 public:
  Solver(T* scratch, Team team) : scratch_(scratch), team_(team) {}

  // `scratch` holds scratch_size(n) elements.
  static std::size_t scratch_size(std::size_t n) { return n + 16 * (Team::kMost + 1); }

  // Where `p` is given, a sweep may leave F((x - b')/τ) there for a b' near b: see `shift` and `left`. `seen`: the
  // sums of the row, where they are known.
  Threshold<T> solve(const T* x, std::size_t n, double k, double temperature, T* p = nullptr,
                     const RowSums<T>* seen = nullptr) {
    take(x, n, k, temperature, p);
    if (k <= 0 || k >= double(n)) return without_root();
    start(seen ? *seen : RowSums<T>(x, n));
    if (iterate()) return b_.template split<T>();
    return far_ ? solve_shrunk() : without_root();
  }

  // The threshold of a row of finite scores with exactly k of them above b, and tails that underflow.
  Threshold<T> balance(const T* x, std::size_t n, double k, double temperature, Threshold<T> b) {
    take(x, n, k, temperature, nullptr);
    b_ = {b.centre, b.rest};
    balance_gap();
    return b_.template split<T>();
  }

  T scale() const { return scale_; }

  // How far (in τ) b is above the b' whose p is stored; NaN if none is.
  double shift() const { return shift_; }

  // What that sweep has left, until the next row.
  Left<T> left() const { return {p_, scratch_}; }

  // Passes over the row, partial ones counted by the elements that they touched.
  int sweeps() const { return static_cast<int>(std::ceil(touched_ / std::max<double>(double(n_), 1))); }

 private:
  static constexpr int kMaxSweeps = 64;
  static constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
  static constexpr double kShrink = 0x1p-16;  // leaves room for sums of a few numbers, and of a bracket

  void take(const T* x, std::size_t n, double k, double temperature, T* p) {
    x_ = x, n_ = n, k_ = k, temperature_ = temperature, p_ = p, shift_ = kNone;
    scale_ = scale_of<F, T>(temperature);
    census_ = {double(n)}, touched_ = 0, classified_ = false;
    lost_ = shrunk_ = false, far_ = !(temperature < double(kFarFrom<T>));
  }

  void start(const RowSums<T>& sums) {
    touched_ += sums.count();
    if (!sums.finite()) classify();
    const Moments row = sums.moments();
    const double share = (k_ - census_.certain) / (census_.valid - census_.certain);
    const auto at = guess_.start(row, share, census_.valid, temperature_);
    b_ = {row.mean, 0};
    b_.add(at.distance);
    density_ = at.density, outer_ = at.outer, deviation_ = row.deviation, distance_ = std::abs(at.distance);
    surprise_ = 2 + 8 * std::sqrt(k_ * (1 - share));
    guard_ = 3 * at.noise + 0.1 * row.deviation * (temperature_ / (row.deviation + temperature_));
    lost_ = !(std::abs(b_.high) + guard_ < double(kFarFrom<T>));
    if (lost_ && !classified_) classify();
    spread_ = 2, least_radius_ = is_single<T> ? std::min(0.9 * outer_, 0.01 / density_) : 0;
    if (!lost_ && F::kOrder == 5 && is_single<T>) approach(row, at.noise);
  }

  // The threshold between scores, or with a τ, near the largest number: that of a copy of the row in which
  // nothing overflows. Beside such a threshold it does not matter what underflows there.
  Threshold<T> solve_shrunk() {
    if (!classified_) classify();
    if (!has_root()) return without_root();
    const Scratch<T> copy(n_);
    for (std::size_t i = 0; i < n_; ++i) copy.get()[i] = T(kShrink) * x_[i];
    const T scale = scale_;
    x_ = copy.get(), temperature_ *= kShrink, scale_ = scale_of<F, T>(temperature_), p_ = nullptr;
    far_ = false, lost_ = shrunk_ = true, deviation_ = outer_ = distance_ = least_radius_ = 0, spread_ = 2;
    const bool found = iterate();
    scale_ = scale, temperature_ /= kShrink;
    return found ? grown(b_.template split<T>()) : without_root();
  }

  // b of a shrunk row in its old size; beyond the largest number the rest has what is left.
  static Threshold<T> grown(Threshold<T> b) {
    constexpr double most = std::numeric_limits<T>::max();
    const double centre = std::clamp<double>(b.centre, -kShrink * most, kShrink * most);
    const double rest = (double(b.centre) - centre) + double(b.rest);
    return {T(centre / kShrink), T(std::clamp(rest, -kShrink * most, kShrink * most) / kShrink)};
  }

  // One cheap step before the first sweep, where the guess alone would not make that the last one: with a
  // uniform density of width w in place of f, of the same variance. Of Cauchy's, which has none, what the
  // two sums should be for a normal row tells how they differ, and w may be as wide as the guess is uncertain: a
  // list of near scores pays with a better guess only.
  void approach(const Moments& row, double noise) {
    constexpr bool heavy = F::kTail == Tail::hyperbola;
    const double width = heavy ? std::max(F::kWidth * temperature_, 4 * noise) : F::kWidth * temperature_;
    if (!(noise > 0.5 * F::kShort * temperature_ && noise < 0.5 * width && width < row.deviation)) return;
    if (!heavy && list_pays(list_radius())) return;
    const double low = b_.high - 0.5 * width;
    const RampSums sums = sum_ramp(low, width);
    const double lowest = (low - row.mean) / row.deviation, highest = lowest + width / row.deviation;
    const double rise = row.deviation / width * (normal_loss(lowest) - normal_loss(highest));
    const double expected = heavy ? double(n_) * rise : k_;
    const double move = (sums.total - expected) / sums.inside * width;
    if (!(sums.inside > 8 && std::abs(move) < 4 * noise)) return;
    b_.add(move);
    if (!heavy) return;
    const double left = width / std::sqrt(12 * sums.inside);  // of the noise: the steps of the row within the ramp
    guard_ += 3 * (left - noise), spread_ = 8;
  }

  struct RampSums {
    double total = 0, inside = 0;  // Σ min(1, max(0, (x - low)/width)), and how many are on the slope
    RampSums& operator+=(const RampSums& o) { return total += o.total, inside += o.inside, *this; }
  };

  RampSums sum_ramp(double low, double width) {
    touched_ += 0.5 * double(n_);  // compares only
    const T scale = T(1 / width), offset = T(-low / width);
    return team_.template sum<RampSums>(n_, [&](std::size_t begin, std::size_t end, int) {
      Pack<T> total{};
      Mask<T> outside{};
      const Pack<T> none{}, one = none + T(1);
      for_packs(x_ + begin, end - begin, [&](Pack<T> scores, std::size_t, std::size_t) {
        const Pack<T> place = scores * scale + offset, kept = smaller<T>(one, larger<T>(none, place));
        total += kept, outside += place != kept;
      });
      const std::size_t padded = (end - begin + kLanes<T> - 1) / kLanes<T> * kLanes<T>;
      return RampSums{sum_lanes(total), double(padded) + sum_lanes(outside)};
    });
  }

  void classify() {
    touched_ += double(n_);
    census_ = count_kinds(x_, n_), classified_ = true;
  }

  // Rows whose threshold is not a finite number. The convention, shared with the plain-torch
  // path: x - b is -rest where x and centre are +inf, else x - centre; -inf always gets p = 0.
  Threshold<T> without_root() {
    constexpr T infinity = std::numeric_limits<T>::infinity();
    if (!classified_) classify();
    if (census_.nan) return {std::numeric_limits<T>::quiet_NaN(), 0};
    if (k_ <= 0) return {infinity, infinity};
    if (k_ >= census_.valid) return {-infinity, 0};
    if (k_ == census_.certain) return {infinity, -infinity};
    return {infinity, static_cast<T>(-temperature_ * F::quantile(k_ / census_.certain))};
  }

  bool has_root() const { return !census_.nan && k_ < census_.valid && k_ > census_.certain; }

  // ---- the iteration
  bool iterate() {
    Bracket<T> around{-kInfinity, kInfinity};  // relative to b
    double previous = kInfinity;
    selected_ = false, crowded_ = kInfinity;
    if (lost_ && has_root()) around = restart();
    for (int turn = 0; turn < kMaxSweeps; ++turn) {
      far_ = !shrunk_ && (far_ || is_far(b_.template split<T>()));  // where a step may end, too
      if (far_ || (classified_ && !has_root())) return false;
      const double radius = list_radius();
      const bool narrow = list_pays(radius);
      std::size_t near = 0;
      Far far;
      if (narrow) far = sweep_far(radius, near);
      const bool aimed = F::kTail != Tail::hyperbola && near > 0 && guard_ > 4 * temperature_;
      const double at = aimed ? aim(far, near) : 0;  // relative to b
      Sums sums = narrow ? sums_at(far, near, at) : sweep_all();
      const double residual = sums.residual(k_);
      // an infinity that the sample has missed shows when nothing else fits
      if (!classified_ && (residual != residual || (turn == 3 && n_ > kSample))) classify();
      if (residual != residual) return false;
      around.update(at, residual);
      if (at == 0 && in_gap<F, T>(sums, k_)) return balance_gap();
      double move = at + step<F>(sums, k_) * temperature_;
      if (F::kTail == Tail::hyperbola && near == 0) move = heavy_move(sums, move);
      if (at == 0 && settled<F, T>(sums, k_, move / temperature_, n_)) {
        if (!narrow && p_) note_shift(move / temperature_);
        return b_.add(move), true;
      }
      const bool far_off = std::abs(residual) > surprise_ && !(std::abs(move) < std::max(guard_, 4 * temperature_));
      const bool worse = std::abs(residual) > previous || (near == 0 && nowhere(sums));
      if (!selected_ && (far_off || worse || (narrow && turn == 0 && unlike_a_bell(radius, near)))) {
        around = restart();
        previous = kInfinity;
        continue;
      }
      if (2 * near > n_) crowded_ = radius;
      // hyperbolas around an empty list are a better model than their Taylor polynomial
      else if (near > 0 || (narrow && F::kTail != Tail::hyperbola)) {
        const Outcome outcome = solve_near(far, sums, near, at, around, move);
        if (outcome == Outcome::solved) return classified_ ? has_root() : true;
        if (outcome == Outcome::close) {
          b_.add(move);
          around.low -= move, around.high -= move;
          guard_ = F::kTail == Tail::hyperbola ? 0.1 * std::abs(move) : 0.01 * temperature_;
          spread_ = 2, least_radius_ = 0;
          continue;
        }
      }
      const bool progress = turn < (F::kTail == Tail::none ? 3 : 4) && std::abs(residual) < 0.5 * previous;
      previous = std::abs(residual);
      if (!selected_ && !(progress && move > around.low && move < around.high)) {
        around = restart();
        previous = kInfinity;
        continue;
      }
      move = around.inside(move, F::kTail == Tail::none);
      guard_ = std::min(0.5 * std::abs(move), around.width());
      b_.add(move);
      if (F::kTail == Tail::none && unseen<T>(sums, k_, move / temperature_)) return true;
      around.low -= move, around.high -= move;
    }
    return true;
  }

  void note_shift(double shift) {
    if constexpr (F::kShift != Shift::none) {
      if (std::abs(shift) <= F::kLongestShift) shift_ = shift;
    }
  }

  Sums sweep_all() {
    touched_ += double(n_);
    const Threshold<T> b = b_.template split<T>();
    return team_.template sum<Sums>(n_, [&](std::size_t begin, std::size_t end, int) {
      return sweep<F>(x_ + begin, end - begin, b, scale_, Left<T>{p_, scratch_}.at(begin));
    });
  }

  // Sums the scores further than `radius` away and lists the nearer ones.
  Far sweep_far(double radius, std::size_t& near) {
    touched_ += double(n_);
    std::size_t counts[Team::kMost];
    const Far total = team_.template sum<Far>(n_, [&](std::size_t begin, std::size_t end, int member) {
      Near<T> mine{T(radius), T(temperature_), part(begin, member)};
      const Far far = sweep_far_part(begin, end, mine);
      counts[member] = mine.count;
      return far;
    });
    near = counts[0];
    for (int member = 1; member < team_.size; ++member) {
      std::copy_n(part(team_.bound(n_, member), member), counts[member], scratch_ + near);
      near += counts[member];
    }
    return total;
  }

  Far sweep_far_part(std::size_t begin, std::size_t end, Near<T>& near) const {
    const Threshold<T> b = b_.template split<T>();
    Far total;
    for (std::size_t i = begin; i < end; i += kBlock) {
      total += sweep_far_block<F, T>(x_ + i, std::min(kBlock, end - i), b, scale_, near);
    }
    return total;
  }

  // Each member writes to its own stretch of the scratch, one vector wider than its share.
  T* part(std::size_t begin, int member) { return scratch_ + begin + 16 * std::size_t(member); }

  // ---- the same equation on the near scores only; the far ones decay exactly like exponentials
  //
  // solved: b is at the root. close: the root is b + move, but so far from the list's centre that
  // it wants a new list. outside: the root is behind the end b + move of the interval searched.
  enum class Outcome { solved, close, outside };

  // `sums` are those at b + `at`.
  Outcome solve_near(Far far, Sums sums, std::size_t near, double at, Bracket<T> around, double& move) {
    bool low_known = around.low >= -guard_, high_known = around.high <= guard_;
    around.cut(-guard_, guard_);
    const double range = exact_range(sums);
    // without a true bracket a long search means a bad guess: better to start again
    const double most = selected_ ? kInfinity : touched_ + 1.2 * double(n_);
    double base = 0;  // the list's centre relative to b; `at` is relative to that
    double best = kInfinity, span = 2 * list_radius();
    for (int turn = 0; turn < kMaxSweeps && touched_ < most; ++turn) {
      const double residual = sums.residual(k_), change = step<F>(sums, k_) * temperature_;
      if (at != 0 && std::abs(at) >= guard_ * (1 - 1e-6) && (at > 0) == (residual > 0)) {
        return move = base + at + change, Outcome::outside;
      }
      around.update(at, residual);
      (residual > 0 ? low_known : high_known) = true;
      const bool gap = in_gap<F, T>(sums, k_);
      if (gap || settled<F, T>(sums, k_, change / temperature_, near)) {
        move = base + (gap ? at : at + change);
        // a gap of the other densities is balanced with the row's own scores anyway
        if (std::abs(move) > range && !(gap && F::kTail != Tail::none)) return Outcome::close;
        b_.add(move);
        if (gap) balance_gap();
        return Outcome::solved;
      }
      const bool progress = std::abs(residual) < 0.5 * best;
      best = std::min(best, std::abs(residual));
      double next = progress ? at + change : kNone;
      if (double(T(next)) == at) return finish_near(base + next, range, move);
      const bool up = residual > 0;
      if (up ? !high_known && !(next < around.high) : !low_known && !(next > around.low)) {
        next = up ? around.high : around.low;
        (up ? high_known : low_known) = true;
        if (double(T(next)) == at) return move = base + at + change, Outcome::outside;  // the guard is less than a digit
      } else {
        next = around.inside(next, F::kTail == Tail::none);
        if (low_known && high_known && shrink(far, near, around, span)) {
          const double centre = around.middle();
          base += centre, next -= centre, at -= centre;
          around.low -= centre, around.high -= centre;
        }
      }
      double rounded = double(T(next));
      if (around.knows(rounded)) rounded = around.middle();
      if (rounded == at || around.knows(rounded)) return finish_near(base + next, range, move);
      at = rounded;
      sums = sums_at(far, near, at);
    }
    return move = kNone, Outcome::outside;
  }

  // When the bracket is much narrower than the list, moves the list's centre into the middle of the
  // bracket and what is far from there now to the far scores.
  bool shrink(Far& far, std::size_t& near, const Bracket<T>& around, double& span) {
    const double needed = 1.01 * (around.width() + 2 * F::kReach * temperature_);
    if (F::kTail == Tail::hyperbola || near < 256 || needed > 0.3 * span) return false;
    const T centre = T(around.middle());
    far = far.moved<F>(double(centre) / temperature_);
    Near<T> kept{T(0.5 * needed), T(temperature_), scratch_};
    for (std::size_t i = 0; i < near; i += kBlock) {
      far += sweep_far_block<F, T>(scratch_ + i, std::min(kBlock, near - i), {centre, 0}, scale_, kept);
    }
    touched_ += double(near);
    near = kept.count, span = needed;
    return true;
  }

  Outcome finish_near(double at, double range, double& move) {
    move = at;
    if (std::abs(move) > range) return Outcome::close;
    return b_.add(move), Outcome::solved;
  }

  // How far from its centre a list, and the model of the far scores, are exact enough. For the
  // uniform density small p are differences themselves, so that rounding adds up over all of them.
  double exact_range(const Sums& sums) const {
    const double range = Number<T>::kExactRange * temperature_;
    if (F::kTail == Tail::hyperbola) return std::min(range, Number<T>::kTaylorRange * list_radius());
    if (F::kTail != Tail::none) return range;
    return std::min(range, 4 * std::max(1.0, k_) / std::max(1.0, sums.pdf()) * temperature_);
  }

  // Cauchy's far scores follow their Taylor polynomial only: they must be further away than b moves. Where scores
  // are rare a wide list is short.
  double list_radius() const {
    if (F::kTail != Tail::hyperbola) return guard_ + F::kReach * temperature_;
    return std::max(spread_ * guard_ + F::kReach * temperature_, least_radius_);
  }

  // A list pays when it is short: when, for a bell-shaped row, it holds less than a third of it, and
  // when a longer one of this row did not turn out to hold most of it.
  bool list_pays(double radius) const {
    if (F::kTail == Tail::hyperbola && guard_ < temperature_) return false;
    if (F::kOrder > 2 && guard_ < 0.5 * temperature_) return false;  // plain steps are faster
    if (radius > 0.1 * crowded_ || (F::kTail == Tail::none && radius > deviation_)) return false;
    return selected_ || (radius * density_ < 0.15 && radius < outer_);
  }

  // Far from the root of a row with heavy tails, Σ p falls like 1/b: Newton's step on 1/Σp.
  double heavy_move(const Sums& s, double move) const {
    const double residual = s.residual(k_), sum = k_ + residual;
    const double ratio = residual > 0 ? sum / k_ : (census_.valid - sum) / (census_.valid - k_);
    return ratio > 2 ? residual / s.pdf() * ratio * temperature_ : move;
  }

  // Whether b is on one side of all scores and far from them.
  bool nowhere(const Sums& s) const {
    return (s.above == 0 || s.above == census_.valid) && s.lower + s.upper < 0.5 * std::min(k_, census_.valid - k_);
  }

  // Whether the list is much shorter or longer than in a bell-shaped row.
  bool unlike_a_bell(double radius, std::size_t near) const {
    double expected = std::min(2 * radius * density_, 1.0) * census_.valid;
    if (radius == least_radius_) {  // within which the density may grow much
      const double from = (distance_ - radius) / deviation_, to = (distance_ + radius) / deviation_;
      expected = (normal_tail(from) - normal_tail(to)) * census_.valid;
    }
    return double(near) < 0.25 * expected - 8 || double(near) > 4 * expected + 32;
  }

  // Of far and listed scores, at a place relative to the list's centre.
  Sums sums_at(const Far& far, std::size_t near, double at) {
    Sums sums = (at == 0 ? far : far.moved<F>(at / temperature_)).template total<F>();
    if (near == 0) return sums;
    touched_ += double(near);
    return sums += sweep<F>(scratch_, near, Threshold<T>{T(at), 0}, scale_);
  }

  // Where b would be, relative to the list's centre, if the scores of the list were certain: a good place to begin
  // where τ is small beside the guard. By counting, which costs little.
  double aim(const Far& far, std::size_t near) {
    const Sums others = far.total<F>();
    const double wanted = k_ - others.above - (others.lower - others.upper);
    double low = -guard_, high = guard_, above_low = double(near), above_high = 0, at = 0;
    if (!(wanted > 0 && wanted < double(near))) return 0;
    for (int turn = 0; turn < 4; ++turn) {
      const double above = count_near(near, at + F::kMiddle * temperature_);
      if (std::abs(above - wanted) < 0.75) break;
      if (above > wanted) low = at, above_low = above;
      else high = at, above_high = above;
      const double share = (above_low - wanted) / (above_low - above_high);
      at = double(T(low + (high - low) * std::clamp(share, 0.05, 0.95)));
    }
    return at;
  }

  // How many scores of the list are above a place.
  double count_near(std::size_t near, double at) {
    touched_ += 0.1 * double(near);
    Mask<T> count{};
    for (std::size_t i = 0; i < near; i += kLanes<T>) {
      count += load_first<T>(scratch_ + i, std::min(kLanes<T>, near - i), -std::numeric_limits<T>::infinity()) > T(at);
    }
    return -sum_lanes(count);
  }

  // ---- when the model fails: start again from the hard threshold
  //
  // Puts b where the root would be if only the scores next to it counted, and returns a bracket
  // that holds whatever the others add: x_(⌊k⌋+1) - ζτ <= b <= x_(⌈k⌉) + ζ'τ.
  Bracket<T> restart() {
    const double whole = std::floor(k_), part = k_ - whole;
    const Selection<T> selection(x_, n_, static_cast<std::size_t>(whole), scratch_);
    touched_ += selection.touched();
    selected_ = true, spread_ = 2, least_radius_ = 0;
    const double last = part > 0 ? part : 1;  // what is left for the lowest score that counts
    const double high_share = last / (census_.valid - std::ceil(k_) + 1);
    const double low_share = (1 - part) / (whole + 1);
    const double width = part > 0 ? 0 : selection.next_larger() - selection.value();
    const double offset = part > 0 ? -temperature_ * F::quantile(part) : 0.5 * width - F::kMiddle * temperature_;
    far_ = !shrunk_ && (far_ || is_far(Threshold<T>{T(selection.value()), T(offset)}));
    b_ = {selection.value(), 0};
    b_.add(offset);
    const Bracket<T> around{-temperature_ * F::quantile(1 - std::min(0.5, low_share)) - offset,
                         width - temperature_ * F::quantile(std::min(0.5, high_share)) - offset};
    guard_ = std::max(-around.low, around.high);
    if (F::kTail == Tail::hyperbola) {  // its bracket is too wide for a list; the next scores will do
      const double gap = selection.next_larger() - selection.value();
      guard_ = std::min(guard_, 10 * temperature_ + 4 * std::min(gap, 1e3 * temperature_));
    }
    return around;
  }

  // ---- exactly k scores above b, and tails that underflow
  bool balance_gap() {
    const Gap<F, T> gap(x_, n_, b_.template split<T>(), temperature_, scratch_);
    touched_ += 2 * double(n_);
    if (!classified_ && !std::isfinite(gap.width())) classify();
    if (classified_ && !has_root()) return false;
    b_ = {gap.low(), 0};
    b_.add(gap.balance());
    return true;
  }

  const T* x_ = nullptr;
  T* p_ = nullptr;
  std::size_t n_ = 0;
  double k_ = 0, temperature_ = 1, shift_ = kNone;
  T scale_ = 1;
  T* scratch_;
  Team team_;
  TwoDoubles b_;
  double density_ = 0, outer_ = 0, surprise_ = 0, guard_ = 0, crowded_ = 0, deviation_ = 0, distance_ = 0;
  double spread_ = 2, least_radius_ = 0;  // of lists, for Cauchy
  Guess<F, T> guess_;
  Census census_{0};  // all scores are taken for ordinary ones until they are `classified_`
  double touched_ = 0;
  bool classified_ = false, selected_ = false;
  // The guess is not a number to begin with; scores next to b may overflow; the row is a copy in which they do not.
  bool lost_ = false, far_ = false, shrunk_ = false;
};

}  // namespace softorder
