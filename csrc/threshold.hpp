// Solves Σ F((x_i - b)/τ) = k for b, without sorting. See README.md beside this file.
#pragma once

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

#include "select.hpp"
#include "sweep.hpp"
#include "team.hpp"

namespace softorder::SOFTORDER_LEVEL {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// The threshold as an unevaluated sum of two doubles: a row near 10^6 with τ = 10^-6 needs it.
struct TwoDoubles {
  double high = 0, low = 0;

  void add(double d) {
    const double sum = high + d;
    const double part = sum - high;
    const double error = (high - (sum - part)) + (d - part);
    const double tail = low + error;
    high = sum + tail;
    low = tail - (high - sum);
  }
  template <class T> Threshold<T> split() const {
    const T centre = static_cast<T>(high);
    return {centre, static_cast<T>((high - centre) + low)};
  }
};

// How far to move b, in units of τ, to bring the residual to 0.
//
// Far from the root the tail sums below and above b are modelled, each on its own: as exponentials
// in b, which is exact for Laplace until b passes a score (it is the closed form of the LapSum
// paper) and right in logarithmic scale inside any gap; as hyperbolas for Cauchy, whose far tails
// they are. Near the root Halley's step is used instead.
template <class F> double far_step(const Sums& s, double k) {
  const double extra = s.above - k, residual = s.residual(k);
  const double lower_rate = s.lower > 0 ? s.lower_pdf / s.lower : 0;
  const double upper_rate = s.upper > 0 ? s.upper_pdf / s.upper : 0;
  if constexpr (F::kTail == Tail::hyperbola) {
    const double square = extra * lower_rate * upper_rate;
    const double slope = s.lower * upper_rate + s.upper * lower_rate + extra * (upper_rate - lower_rate);
    return 2 * residual / (slope + std::sqrt(std::max(0.0, slope * slope + 4 * square * residual)));
  }
  if (extra == 0) return (std::log(s.lower) - std::log(s.upper)) / (lower_rate + upper_rate);
  const double rate = s.pdf() / (s.lower + s.upper);
  const double root = std::hypot(extra, 2 * std::sqrt(s.lower) * std::sqrt(s.upper));
  return std::log(extra > 0 ? (extra + root) / (2 * s.upper) : 2 * s.lower / (root - extra)) / rate;
}

// The root of the Taylor polynomial of degree 4, for the logistic density, where with f = F(1 - F)
// the next derivatives of f' = f(1 - 2F) are f(1 - 6f) and f'(1 - 12f).
inline double taylor_step(const Sums& s, double residual, double start) {
  const double first = s.pdf(), second = s.curve / 2, third = (s.pdf() - 6 * s.squares) / 6;
  const double fourth = (s.curve - 12 * s.twists) / 24;
  double d = start;
  for (int i = 0; i < 2; ++i) {
    const double value = residual + d * (-first + d * (second + d * (-third + d * fourth)));
    const double slope = -first + d * (2 * second + d * (-3 * third + d * 4 * fourth));
    d -= value / slope;
  }
  return d;
}

template <class F> double step(const Sums& s, double k) {
  const double residual = s.residual(k), pdf = s.pdf();
  if constexpr (F::kTail == Tail::none) return residual / pdf;  // piecewise linear
  if constexpr (F::kExponential) return far_step<F>(s, k);
  const double newton = residual / pdf, bend = newton * s.curve / pdf;
  const double halley = newton / (1 - 0.5 * bend);
  if (!(std::abs(halley) < 0.5 && std::abs(bend) < 1)) return far_step<F>(s, k);
  return F::kOrder == 5 ? taylor_step(s, residual, halley) : halley;
}

// The sums of far scores when b moves by d (in units of τ).
template <class F> Sums shifted(const Sums& far, double d) {
  if (F::kTail == Tail::exponential) {
    const double lower = far.lower > 0 ? far.lower * std::exp(-d) : 0;
    const double upper = far.upper > 0 ? far.upper * std::exp(d) : 0;
    return {far.above, lower, upper, lower, upper, lower - upper, 0, 0};
  }
  Sums moved = far;  // linear for uniform, nothing for normal, a Taylor polynomial for Cauchy
  moved.lower += d * (-far.lower_pdf + 0.5 * d * far.curve);
  moved.upper += d * far.upper_pdf;
  moved.lower_pdf -= d * far.curve;
  return moved;
}

// Whether the sums already agree with k to the last digits, or `move` (in units of τ) is so short
// that what remains after it does not matter. The second would not do for a piecewise linear sum.
template <class F, class T> bool settled(const Sums& s, double k, double move, std::size_t n) {
  if constexpr (F::kTail == Tail::none) {
    const double rounding = (16 + 0.5 * std::sqrt(double(n))) * std::numeric_limits<T>::epsilon();
    return std::abs(s.residual(k)) <= std::min(1e-6, rounding) * (s.lower + s.upper_pdf);
  }
  const double limit = Number<T>::settled(F::kOrder);
  const double rate = s.pdf() / (s.lower + s.upper);  // far from 1 in the tails of Cauchy and normal
  if constexpr (F::kTail == Tail::hyperbola) {
    // a long step is short only if every score is so far away that the hyperbolas agree with it
    if (std::abs(move) > limit && std::abs(move - far_step<F>(s, k)) > 0.02 * limit) return false;
  }
  return std::abs(move) * rate <= limit;
}

// Exactly k scores above b, none of them near, and tails too small to be told from 0: any b in the
// gap fits the sum.
template <class F> bool in_gap(const Sums& s, double k) {
  // for a uniform density: nobody is in the linear part, or only by a rounding error
  if (F::kTail == Tail::none) return s.above == k && s.lower + s.upper < 1e-15;
  return s.above == k && (s.lower_pdf == 0 || s.upper_pdf == 0) && s.lower + s.upper < 0.25;
}

// An interval around the root, with the residuals at its ends.
template <class T> struct Bracket {
  double low, high;
  double low_residual = kInfinity, high_residual = -kInfinity;

  void update(double at, double residual) {
    if (residual >= 0 && at >= low) low = at, low_residual = residual;
    if (residual <= 0 && at <= high) high = at, high_residual = residual;
  }
  double width() const { return high - low; }
  double middle() const { return double(T(0.5 * (low + high))); }
  // `wanted` where it lies inside; else the false position and the middle by turns.
  double inside(double wanted, int turn) const {
    if (wanted > low && wanted < high) return wanted;
    const double share = low_residual / (low_residual - high_residual);
    return low + width() * (turn % 2 && share > 0.02 && share < 0.98 ? share : 0.5);
  }
};

template <class F, class T> class Solver {
 public:
  Solver(T* scratch, Team team) : scratch_(scratch), team_(team) {}

  // `scratch` holds scratch_size(n) elements.
  static std::size_t scratch_size(std::size_t n) { return n + 16 * (Team::kMost + 1); }

  Threshold<T> solve(const T* x, std::size_t n, double k, double temperature) {
    x_ = x, n_ = n, k_ = k, temperature_ = temperature;
    scale_ = scale_of<F, T>(temperature);
    valid_ = double(n), certain_ = touched_ = 0, nan_ = classified_ = false;
    if (k <= 0 || k >= double(n)) return without_root();
    start();
    return iterate() ? b_.template split<T>() : without_root();
  }

  T scale() const { return scale_; }

  // Passes over the row, partial ones counted by the elements that they touched.
  int sweeps() const { return static_cast<int>(std::ceil(touched_ / std::max<double>(double(n_), 1))); }

 private:
  static constexpr int kMaxSweeps = 64;

  struct Quantiles {
    double share = -1;                // k/n
    double bell, own;                 // upper quantiles of the normal density and of F
    double height;                    // the normal density at its quantile
    double moment_noise, rank_noise;  // variances of the guess: of one score, of one rank
  };

  // ---- the starting guess: quantiles of a bell-shaped row and of F, added like independent errors
  void start() {
    const auto [mean, deviation, count] = sample_moments();
    const Quantiles& at = quantiles((k_ - certain_) / (valid_ - certain_));
    b_ = {mean, 0};
    const bool wide = F::kTail == Tail::none && temperature_ > 3 * deviation;
    b_.add(wide ? wide_distance(deviation, at.share) : distance(deviation, at) - F::kMiddle * temperature_);
    density_ = at.height / deviation;
    surprise_ = 2 + 8 * std::sqrt(k_ * (1 - at.share));
    outer_ = (0.4 + 0.6 * std::abs(at.bell)) * deviation;
    const double noise = deviation * std::sqrt(at.moment_noise / count + at.rank_noise / valid_);
    guard_ = 3 * noise + 0.1 * deviation * (temperature_ / (deviation + temperature_));
  }


  // How far b is from the mean. The smoothed row has the quantile of a sum of two variables: they
  // add like independent errors, but far out in an exponential tail of F the row only adds its
  // cumulant deviation²/2τ.
  double distance(double deviation, const Quantiles& at) const {
    const double own = std::abs(at.own) * temperature_;
    const double cumulant = deviation * (deviation / temperature_);
    double size = std::hypot(deviation * at.bell, own);
    if (F::kTail == Tail::exponential && own > 0.5 * cumulant + deviation) size = own + 0.5 * cumulant;
    return at.bell < 0 ? -size : size;
  }

  // The same for the uniform density with τ much larger than the row's deviation: only one end of its
  // support is among the scores, and E(x - b)+ = τ k/n (or its mirror image) for a normal x.
  double wide_distance(double deviation, double share) const {
    const double smaller = std::min(share, 1 - share), mass = temperature_ * smaller / deviation;
    if (!(mass < 4)) return -temperature_ * share;  // no end of the support is among the scores
    const double t = inverse_normal_loss(mass);
    return share < 0.5 ? deviation * t : -deviation * t - temperature_;
  }

  // The t with E(z - t)+ = mass for a standard normal z, by Newton's method on the logarithm.
  static double inverse_normal_loss(double mass) {
    double t = -mass;
    for (int i = 0; i < 6; ++i) {
      const double tail = 0.5 * std::erfc(t * std::numbers::sqrt2 / 2);
      const double loss = 0.3989422804014327 * std::exp(-0.5 * t * t) - t * tail;
      t += std::log(loss / mass) * loss / tail;
    }
    return t;
  }

  // Rows mostly ask for the same share: remember the last one.
  const Quantiles& quantiles(double share) {
    if (share != quantiles_.share) {
      const double bell = -Normal<double>::quantile(share);
      const double height = std::exp(-0.5 * bell * bell) * 0.3989;
      quantiles_ = {share, bell, F::kMiddle - F::quantile(share), height, 1 + 0.5 * bell * bell,
                    share * (1 - share) / (height * height)};
    }
    return quantiles_;
  }

  struct Moments {
    double mean, deviation, count;
  };

  Moments sample_moments() {
    constexpr std::size_t chunk = 64, most = 16384;
    const std::size_t chunks = std::max<std::size_t>(1, std::min(n_, most) / chunk);
    const std::size_t stride = n_ <= most ? chunk : n_ / chunks;
    const T origin = x_[0];
    double sum = 0, squares = 0, count = 0;
    for (std::size_t begin = 0; begin < n_; begin += stride) {
      const std::size_t length = std::min(chunk, n_ - begin);
      const T* x = x_ + begin;
      T part = 0, square = 0;
#pragma omp simd reduction(+ : part, square)
      for (std::size_t i = 0; i < length; ++i) {
        const T z = x[i] - origin;
        part += z, square += z * z;
      }
      sum += part, squares += square, count += double(length);
    }
    touched_ += count;
    const double mean = sum / count;
    const double variance = std::max(0.0, squares / count - mean * mean);
    if (!std::isfinite(squares)) return finite_moments();
    return {double(origin) + mean, std::sqrt(variance), count};
  }

  // The slower way, for rows with infinities or with squares that overflow.
  Moments finite_moments() {
    double sum = 0, count = 0, spread = 0;
    classify();
    const std::size_t stride = std::max<std::size_t>(1, n_ / 4096);
    for (std::size_t i = 0; i < n_; i += stride) {
      if (std::isfinite(x_[i])) sum += x_[i], count += 1;
    }
    count = std::max(count, 1.0);
    const double mean = sum / count;
    for (std::size_t i = 0; i < n_; i += stride) {
      if (std::isfinite(x_[i])) spread += std::abs(x_[i] - mean) / count;
    }
    return {mean, 1.25 * spread, count};
  }

  void classify() {
    double out = 0, certain = 0;
    bool nan = false;
    for (std::size_t i = 0; i < n_; ++i) {
      out += x_[i] == -kInfinity ? 1 : 0;
      certain += x_[i] == kInfinity ? 1 : 0;
      nan |= x_[i] != x_[i];
    }
    touched_ += double(n_);
    valid_ = double(n_) - out, certain_ = certain, nan_ = nan, classified_ = true;
  }

  // Rows whose threshold is not a finite number. The convention, shared with the plain-torch
  // path: x - centre is taken as 0 where both are +inf, and a score of -inf always gets p = 0.
  Threshold<T> without_root() {
    constexpr T infinity = std::numeric_limits<T>::infinity();
    if (!classified_) classify();
    if (nan_) return {std::numeric_limits<T>::quiet_NaN(), 0};
    if (k_ <= 0) return {infinity, infinity};
    if (k_ >= valid_) return {-infinity, 0};
    if (k_ == certain_) return {infinity, -infinity};
    return {infinity, static_cast<T>(-temperature_ * F::quantile(k_ / certain_))};
  }

  bool has_root() const { return !nan_ && k_ < valid_ && k_ > certain_; }

  // ---- the iteration
  bool iterate() {
    Bracket<T> around{-kInfinity, kInfinity};  // relative to b
    double previous = kInfinity;
    selected_ = false;
    for (int turn = 0; turn < kMaxSweeps; ++turn) {
      if (classified_ && !has_root()) return false;
      const double radius = list_radius();
      const bool narrow = list_pays(radius);
      std::size_t near = 0;
      const Sums far = sweep_row(narrow ? radius : -1, near);
      Sums sums = far;
      if (near > 0) sums += sweep_near(near, 0);
      const double residual = sums.residual(k_);
      if ((residual != residual || turn == 3) && !classified_) classify();
      if (residual != residual) return false;
      around.update(0, residual);
      if (in_gap<F>(sums, k_)) return balance_gap();
      double move = step<F>(sums, k_) * temperature_;
      if (settled<F, T>(sums, k_, move / temperature_, n_)) return b_.add(move), true;
      if (!selected_ && std::abs(residual) > surprise_ &&
          !(std::abs(move) < std::max(guard_, 4 * temperature_))) {
        around = restart();
        continue;
      }
      if (near > 0) {
        const Outcome outcome = solve_near(far, sums, near, around, move);
        if (outcome == Outcome::solved) return classified_ ? has_root() : true;
        if (outcome == Outcome::close) {
          b_.add(move);
          around.low -= move, around.high -= move;
          guard_ = F::kTail == Tail::hyperbola ? 0.1 * std::abs(move) : temperature_;
          continue;
        }
      }
      const bool progress = std::abs(residual) < 0.5 * previous;
      previous = std::abs(residual);
      if (!selected_ && !(progress && move > around.low && move < around.high)) {
        around = restart();
        previous = kInfinity;
        continue;
      }
      move = around.inside(move, turn);
      guard_ = std::min(0.5 * std::abs(move), around.width());
      b_.add(move);
      around.low -= move, around.high -= move;
    }
    return true;
  }

  // Sums the scores further than `radius` away and lists the nearer ones; sums all of them for -1.
  Sums sweep_row(double radius, std::size_t& near) {
    touched_ += double(n_);
    if (team_.size == 1) {
      Near<T> mine{T(radius), T(temperature_), scratch_};
      const Sums total = sweep_part(0, n_, mine);
      return near = mine.count, total;
    }
    Sums totals[Team::kMost];
    std::size_t counts[Team::kMost] = {};
    team_.split(n_, [&](std::size_t begin, std::size_t end, int member) {
      Near<T> mine{T(radius), T(temperature_), part(begin, member)};
      totals[member] = sweep_part(begin, end, mine);
      counts[member] = mine.count;
    });
    near = counts[0];
    for (int member = 1; member < team_.size; ++member) {
      totals[0] += totals[member];
      std::copy_n(part(team_.bound(n_, member), member), counts[member], scratch_ + near);
      near += counts[member];
    }
    return totals[0];
  }

  Sums sweep_part(std::size_t begin, std::size_t end, Near<T>& near) const {
    const Threshold<T> b = b_.template split<T>();
    Sums total;
    for (std::size_t i = begin; i < end; i += kBlock) {
      total += sweep_block<F, T>(x_ + i, std::min(kBlock, end - i), b, scale_, near);
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

  Outcome solve_near(Sums far, Sums sums, std::size_t near, Bracket<T> around, double& move) {
    bool low_known = around.low >= -guard_, high_known = around.high <= guard_;
    around.low = std::max(around.low, -guard_), around.high = std::min(around.high, guard_);
    const double nowhere = std::numeric_limits<double>::quiet_NaN(), range = exact_range(sums);
    // without a true bracket a long search means a bad guess: better to start again
    const double most = selected_ ? kInfinity : 7 * double(n_);
    double base = 0, at = 0;  // the list's centre relative to b, and where we are relative to that
    double previous = kInfinity, span = 2 * list_radius();
    for (int turn = 0; turn < kMaxSweeps && touched_ < most; ++turn) {
      const double residual = sums.residual(k_);
      if (at != 0 && std::abs(at) >= guard_ * (1 - 1e-6) && (at > 0) == (residual > 0)) {
        return move = at, Outcome::outside;
      }
      around.update(at, residual);
      const double change = step<F>(sums, k_) * temperature_;
      const bool gap = in_gap<F>(sums, k_);
      if (gap || settled<F, T>(sums, k_, change / temperature_, near)) {
        move = base + (gap ? at : at + change);
        // a gap of the other densities is balanced with the row's own scores anyway
        if (std::abs(move) > range && !(gap && F::kTail != Tail::none)) return Outcome::close;
        b_.add(move);
        if (gap) balance_gap();
        return Outcome::solved;
      }
      const bool progress = std::abs(residual) < 0.5 * previous;
      previous = progress ? std::abs(residual) : kInfinity;
      double next = progress ? at + change : nowhere;
      if (double(T(next)) == at) return finish_near(base + next, range, move);
      const bool up = residual > 0;
      if (up ? !high_known && !(next < around.high) : !low_known && !(next > around.low)) {
        next = up ? around.high : around.low;
        (up ? high_known : low_known) = true;
      } else {
        next = around.inside(next, turn);
        if (low_known && high_known && shrink(far, near, around, span)) {
          const double centre = around.middle();
          base += centre, next -= centre, at -= centre;
          around.low -= centre, around.high -= centre;
        }
      }
      const double rounded = double(T(next));
      if (rounded == at) return finish_near(base + next, range, move);
      at = rounded;
      sums = sweep_near(near, at);
      sums += shifted<F>(far, at / temperature_);
    }
    return move = nowhere, Outcome::outside;
  }

  // When the bracket is much narrower than the list, moves the list's centre into the middle of the
  // bracket and what is far from there now to the far scores.
  bool shrink(Sums& far, std::size_t& near, const Bracket<T>& around, double& span) {
    const double needed = 1.01 * (around.width() + 2 * F::kReach * temperature_);
    if (F::kTail == Tail::hyperbola || near < 256 || needed > 0.3 * span) return false;
    const T centre = T(around.middle());
    far = shifted<F>(far, double(centre) / temperature_);
    Near<T> kept{T(0.5 * needed), T(temperature_), scratch_};
    for (std::size_t i = 0; i < near; i += kBlock) {
      far += sweep_block<F, T>(scratch_ + i, std::min(kBlock, near - i), {centre, 0}, scale_, kept);
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

  // Cauchy's far scores follow their Taylor polynomial only: they must be further away than b moves.
  double list_radius() const {
    return (F::kTail == Tail::hyperbola ? 2 * guard_ : guard_) + F::kReach * temperature_;
  }

  // A list pays when it is short: when, for a bell-shaped row, it holds less than a third of it.
  bool list_pays(double radius) const {
    if (F::kTail == Tail::hyperbola && guard_ < temperature_) return false;
    if (F::kOrder > 2 && guard_ < 0.5 * temperature_) return false;  // plain steps are faster
    return selected_ || (radius * density_ < 0.15 && radius < outer_);
  }

  Sums sweep_near(std::size_t near, double at) {
    touched_ += double(near);
    return sweep<F>(scratch_, near, Threshold<T>{T(at), 0}, scale_);
  }

  // ---- when the model fails: start again from the hard threshold
  //
  // Puts b where the root would be if only the scores next to it counted, and returns a bracket
  // that holds whatever the others add: x_(⌊k⌋+1) - ζτ <= b <= x_(⌈k⌉) + ζ'τ.
  Bracket<T> restart() {
    const double whole = std::floor(k_), part = k_ - whole;
    const Selection<T> selection(x_, n_, static_cast<std::size_t>(whole), scratch_);
    touched_ += selection.touched();
    selected_ = true;
    const double last = part > 0 ? part : 1;  // what is left for the lowest score that counts
    const double high_share = last / (valid_ - std::ceil(k_) + 1);
    const double low_share = (1 - part) / (whole + 1);
    const double width = part > 0 ? 0 : selection.next_larger() - selection.value();
    const double offset = part > 0 ? -temperature_ * F::quantile(part) : 0.5 * width - F::kMiddle * temperature_;
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

  // ---- exactly k scores above b, and tails that underflow: balance them by their logarithms
  bool balance_gap() {
    if (!classified_) classify();
    if (!has_root()) return false;
    double low = -kInfinity, high = kInfinity;
    const Threshold<T> b = b_.template split<T>();
    for (std::size_t i = 0; i < n_; ++i) {
      const T z = (x_[i] - b.centre) - b.rest;
      if (z < F::kMiddle * T(temperature_)) low = std::max<double>(low, x_[i]);
      else high = std::min<double>(high, x_[i]);
    }
    touched_ += double(n_);
    const double gap = high - low;
    double at = 0.5 * (gap - 2 * F::kMiddle * temperature_);  // distance above `low`
    if (F::kTail == Tail::none) return b_ = {low, 0}, b_.add(at), true;  // any b in the gap is a root
    for (int turn = 0; turn < 8; ++turn) {
      const auto [log_lower, lower_rate] = log_sum(low, at, -1);
      const auto [log_upper, upper_rate] = log_sum(high, gap - at, 1);
      touched_ += double(n_);
      double next = at + (log_lower - log_upper) / (lower_rate + upper_rate) * temperature_;
      if (F::kTail == Tail::hyperbola) {  // tails like A/at and B/(gap - at) balance at once
        const double ratio = std::exp(log_lower - log_upper) * at / (gap - at);
        next = gap * (ratio / (1 + ratio));
      }
      const double move = std::clamp(next, 0.0, gap) - at;
      at += move;
      if (std::abs(move) <= 1e-12 * gap) break;
    }
    b_ = {};
    b_.add(low);
    b_.add(at);
    return true;
  }

  struct LogSum {
    double value, rate;
  };

  // log Σ F(-|x_i - b|/τ) over the scores on one side of the gap, and minus its slope in |x - b|/τ;
  // `edge` is the nearest of them, `distance` away from b.
  LogSum log_sum(double edge, double distance, int side) const {
    const double nearest = distance / temperature_, top = F::log_tail(nearest);
    double sum = 0, slope = 0;
    for (std::size_t i = 0; i < n_; ++i) {
      const double beyond = side * (double(x_[i]) - edge) / temperature_;
      if (!(beyond >= 0 && (beyond < 50 || F::kTail == Tail::hyperbola))) continue;
      const double weight = std::exp(F::log_tail(nearest + beyond) - top);
      sum += weight;
      slope += weight * F::log_slope(nearest + beyond);
    }
    return {top + std::log(sum), slope / sum};
  }

  const T* x_ = nullptr;
  std::size_t n_ = 0;
  double k_ = 0, temperature_ = 1;
  T scale_ = 1;
  T* scratch_;
  Team team_;
  TwoDoubles b_;
  double density_ = 0, outer_ = 0, surprise_ = 0, guard_ = 0;
  Quantiles quantiles_;
  double valid_ = 0, certain_ = 0, touched_ = 0;
  bool nan_ = false, classified_ = false, selected_ = false;
};

}  // namespace softorder::SOFTORDER_LEVEL
