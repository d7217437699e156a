// Solves Σ_i F((t - x_i)/τ) = level for ascending levels, with a smooth F, by a handful of F-sums.
//
//   1. FSum, its slope S/τ and its bend S'/τ² at every source: between which two sources every root is.
//   2. A guess: the quintic through both ends, t as a function of FSum. With e^u for F, which is as bent as any tail,
//      its error is τ (gap/τ)^6/384, and it is τ (gap/τ)^4/64 from the cubic that knows no bends. So that distance, to
//      the power 1.5, tells the error where the guess was made: where it does not matter, the guess is the root.
//   3. Halley's steps for all other roots at once, as many F-sums as it takes, inside brackets that
//      only shrink. The last one is so short that its cube is nothing. In a wide gap and outside of the row, FSum minus the number i of sources below is a
//      difference of tails and nearly exponential: there steps are taken in log(FSum - i). Cauchy's is mostly
//      F of the nearest source: there the step is that of a multiple of F with the same value and slope.
//   4. A level on a plateau, within 1/4 of the number of sources below a wide gap: R - L = δ is solved as
//      log R = log(L + δ), with L and R the tails of both sides in logarithms, so that no gap is too
//      wide; t then balances what is missing on both sides even where both underflow. Cauchy's tails never do,
//      and FSum - i is summed as accurately as they are: no level needs this.
#pragma once

#include "fsum/invert_row.hpp"
#include "fsum/smooth_sum.hpp"

namespace softorder {

// Row: InvertRow, or what else has sources and levels and settles roots.
// Sources: SmoothSources, or those of another density with the same sums_and_slopes.
template <class Law, class Row, class Sources> class SmoothInverse {
 public:
  using T = typename Row::Scalar;
  using Tables = typename Sources::RootTables;

  SmoothInverse(const Row& row, Tables& tables, Team team)
      : row_(row), x_{row.sources, nullptr}, tau_(row.temperature), tables_(tables),
        sources_(x_, nullptr, row.m, row.temperature, team) {}

  void run() {
    const auto [low, high] = row_.rooted();
    if (low == high) return;
    at_sources_ = find(x_, row_.m, [](std::size_t) { return 0.0; });
    for (std::size_t i = 1; i < row_.m; ++i) at_sources_[i].sum = std::max(at_sources_[i].sum, at_sources_[i - 1].sum);
    Vector<Search> open = start(low, high);
    for (int pass = 0; pass < kMostPasses && !open.empty(); ++pass) step(open);
    for (const Search& s : open) finish(s, s.slope);
  }

 private:
  static constexpr int kMostPasses = 60;
  static constexpr double kNarrow = is_single<T> ? 0.2 : 0.01;   // gaps, in τ, whose guess may do: see 2.
  static constexpr double kExact = is_single<T> ? 1e-6 : 2e-10;  // from the cubic, to the power 1.5 nothing is left
  static constexpr double kShort = is_single<T> ? 1e-3 : 3e-6;   // a step of Halley's after which, cubed, nothing is left
  static constexpr double kNothing = is_single<T> ? 1e-6 : 1e-10;  // gaps in which any place is the root
  static constexpr double kSame = is_single<T> ? 1e-8 : 1e-16;   // a bracket that is a root
  static constexpr double kSteep = 1e-2;                         // steps from here on, in τ, are not yet short
  static constexpr double kBalanced = is_single<T> ? 1e-4 : 1e-10;  // a step between tails after which nothing is left
  static constexpr bool kHyperbola = Law::kTail == Tail::hyperbola;
  static constexpr double kOpen = kHyperbola ? 4 : 1;  // gaps in which tails tell where to step: see 3.
  static constexpr double kWide = 8;                   // gaps with plateaus
  static constexpr double kVast = 1e6;                 // gaps so wide that a place near one end has lost digits at the other

  // FSum at a place, or less the number of sources below, and its derivatives by t/τ.
  struct Found {
    double sum, slope, bend;
  };
  // A root that is looked for at x[anchor] + at, within [low, high].
  struct Search {
    std::size_t level, below;  // how many sources are below the root
    std::size_t anchor;        // the source that it is drawn to
    double at, low, high;
    double slope;  // of the sum there, as far as it is known
  };
  // A place in a gap, from its lower end, and the slope of the sum.
  struct Guess {
    double at, slope;
    bool exact;
  };

  // FSum less `minus`, which is a number of sources, and its derivatives.
  template <class U, class Minus> Vector<Found> find(const Places<U>& t, std::size_t n, Minus minus) {
    Vector<Found> found(n);
    sources_.sums_and_slopes(t, n, tables_, [&](std::size_t j, double step, double value, double slope, double bend) {
      found[j] = {(step - minus(j)) + value, slope, bend};
    });
    return found;
  }

  double x(std::size_t i) const { return double(row_.sources[i]); }
  bool outside(const Search& s) const { return s.below == 0 || s.below == row_.m; }
  double gap(const Search& s) const { return x(s.below) - x(s.below - 1); }

  void finish(const Search& s, double slope) const {
    const bool other = !outside(s) && s.anchor < s.below && s.at > 0.5 * gap(s);
    other ? row_.settle(s.level, s.below, s.at - gap(s), slope) : row_.settle(s.level, s.anchor, s.at, slope);
  }

  // Guesses, those that are roots already finished.
  Vector<Search> start(std::size_t low, std::size_t high) {
    Vector<Search> open;
    std::size_t below = 0;
    for (std::size_t j = low; j < high; ++j) {
      while (below < row_.m && at_sources_[below].sum <= row_.level(j)) ++below;
      Search s{j, below, below == 0 ? 0 : below - 1, 0, 0, 0, 0};
      const double width = outside(s) ? 0 : gap(s);
      if (!outside(s) && width <= kNarrow * tau_) {
        const Guess first = guess(s, width);
        s.at = first.at;
        if (first.exact) {
          finish(s, first.slope);
          continue;
        }
      }
      if (!kHyperbola && width > kWide * tau_ && std::fabs(row_.level(j) - double(below)) < 0.25 &&
          !(width > kVast * tau_ && reach(s) < 0.5 * width)) {
        s.high = width;
        finish(s, balance(s, width));
      } else {
        bracket(s, width);
        if (!open.empty() && open.back().below == below) keep_behind(open.back(), s);
        open.push_back(s);
      }
    }
    return open;
  }

  // The quintic t(FSum) with the values and derivatives of both ends, if it stays between them: the cubic of values and
  // slopes, and what the bends add to it.
  Guess guess(const Search& s, double width) const {
    const Found &low = at_sources_[s.below - 1], &high = at_sources_[s.below];
    const double rise = high.sum - low.sum, v = (row_.level(s.level) - low.sum) / rise, w = 1 - v;
    const bool nothing = width <= kNothing * tau_;
    // A rise in a tiny gap has few digits, but slopes and bends have all of theirs.
    const auto at = [&](double place, bool exact) {
      const double y = place / width, z = 1 - y, steep = width / tau_ * y * z;
      if (!(width > 0)) return Guess{0, low.slope, exact};
      return Guess{place, low.slope * (1 + 2 * y) * z * z + high.slope * (3 - 2 * y) * y * y + steep * (low.bend * z - high.bend * y), exact};
    };
    if (!(rise > 0)) return at(0.5 * width, nothing);
    const auto bend = [&](const Found& end) { return -tau_ * rise * rise * end.bend / (end.slope * end.slope * end.slope); };
    const double first = rise * tau_ / low.slope, last = rise * tau_ / high.slope;
    const double cubic = v * (width * v * (3 - 2 * v) + w * (first * w - last * v));
    // the second derivatives of the cubic at both ends, and how much those of t are above
    const double over = bend(low) - (6 * width - 4 * first - 2 * last), over_last = bend(high) - (4 * last + 2 * first - 6 * width);
    const double added = 0.5 * v * v * w * w * (over * w + over_last * v), quintic = cubic + added;
    if (!(quintic >= 0 && quintic <= width)) return at(std::clamp(v, 0.0, 1.0) * width, nothing);
    return at(quintic, nothing || std::fabs(added) <= kExact * tau_);
  }

  // Where a root is, and a guess. FSum - i = R - L, the tails of the sources above and below. What a
  // level needs of it, δ, comes from one side, whose tail falls at least as F does when n sources are
  // at its end: the root is not further away than F^-1(|δ|/n). In a wide gap, a step in logarithms
  // from that end is the guess.
  void bracket(Search& s, double width) const {
    const double wanted = row_.level(s.level) - double(s.below);
    const bool inside = !outside(s), from_above = s.below == 0 || (inside && wanted > 0);
    const bool wide = !inside || width > kOpen * tau_;
    const double limit = wide ? reach(s) : width;  // in a narrow gap the gap itself will do
    const double most = inside ? std::min(width, limit) : limit * (1 + 1e-6);  // a root inside, not at the end
    s.anchor = from_above ? s.below : s.below - 1;
    s.low = from_above ? -most : 0, s.high = from_above ? 0 : most;
    if (inside) s.at = guess(s, width).at - (from_above ? width : 0);
    const double has = at_sources_[s.anchor].sum - double(s.below), slope = at_sources_[s.anchor].slope;
    if (wide && slope > 0 && (kHyperbola || wanted * has > 0)) {
      s.at = kHyperbola ? shaped(s, 0, has, slope) : has * tau_ / slope * std::log(wanted / has);
      if (inside) s.at = std::clamp(s.at, -0.5 * width, 0.5 * width);
    }
    s.at = std::clamp(s.at, s.low, s.high);
  }

  // How far a root may be from the end that it is drawn to.
  double reach(const Search& s) const {
    const double wanted = std::fabs(row_.level(s.level) - double(s.below));
    return wanted == 0 ? std::numeric_limits<double>::infinity() : -tau_ * Law::quantile(std::min(0.5, wanted / double(row_.m)));
  }

  // One F-sum at every open root, and a step.
  void step(Vector<Search>& open) {
    const std::size_t n = open.size();
    Vector<double> value(n), rest(n);
    for (std::size_t j = 0; j < n; ++j) value[j] = x(open[j].anchor), rest[j] = open[j].at;
    const Vector<Found> found = find(Places<double>{value.data(), rest.data()}, n, [&](std::size_t j) { return double(open[j].below); });
    std::size_t left = 0;
    for (std::size_t j = 0; j < n; ++j) {
      Search s = open[j];
      if (move(s, found[j])) {
        finish(s, s.slope);
        continue;
      }
      if (left > 0 && open[left - 1].below == s.below) keep_behind(open[left - 1], s);
      open[left++] = s;
    }
    open.resize(left);
  }

  // Places of levels in one gap must ascend, too, to be the targets of a sum.
  void keep_behind(const Search& first, Search& s) const {
    const double moved = first.anchor < s.anchor ? gap(s) : 0;
    s.at = std::max(s.at, first.at - moved);
  }

  // Moves a root by a step, or to the middle of its bracket; whether it is there. The sum is FSum less the number of
  // sources below.
  bool move(Search& s, const Found& found) const {
    const auto [has, slope, bend] = found;
    const double wanted = row_.level(s.level) - double(s.below), before = s.at;
    s.slope = slope;
    if (has == wanted) return true;
    (has < wanted ? s.low : s.high) = s.at;
    // Halley's step, in τ: Newton's, with the slope in its middle
    const double newton = (wanted - has) / slope, steeper = 0.5 * newton * bend / slope;
    const bool is_near = std::fabs(newton) <= kSteep && std::fabs(steeper) <= kSteep;
    double by = tau_ * (std::fabs(steeper) <= 0.5 ? newton / (1 + steeper) : newton);
    if (!is_near && (outside(s) || gap(s) > kOpen * tau_)) {
      if (kHyperbola) {
        by = shaped(s, from_nearest(s), has, slope);
      } else if (wanted * has > 0 && is_tail(s, has, slope)) {
        by = has * tau_ / slope * std::log(wanted / has);
      }
    }
    s.at += by;
    if (is_near && std::fabs(by) * std::max(1.0, std::fabs(bend / slope)) <= kShort * tau_) {
      s.slope += bend * by / tau_;
      return true;
    }
    if (!(s.at > s.low && s.at < s.high)) s.at = 0.5 * (s.low + s.high);
    return s.at == before || s.high - s.low <= kSame * tau_;
  }

  // Whether FSum - i falls as tails do, at a rate of d/τ + 1 at the most, d from a source, and not as R - L where these
  // cancel: its logarithm would then say that next to nothing is left to go.
  bool is_tail(const Search& s, double has, double slope) const {
    return outside(s) || slope <= 2 * (1 + gap(s) / tau_) * std::fabs(has);
  }

  // How far a root is above the nearer end of its gap.
  double from_nearest(const Search& s) const {
    const double other = outside(s) ? s.at : s.at + (s.anchor < s.below ? -gap(s) : gap(s));
    return std::fabs(other) < std::fabs(s.at) ? other : s.at;
  }

  // The step to wanted = FSum - below that a multiple of F with the value and the slope of FSum would take, for
  // F = 1/2 + arctan(u)/π: from F of the nearer end of a gap, at a distance of `from`; outside of the row, from n F.
  // With F(v) - F(u) = newton/(π K) and r = tan(newton/K): v = (u + r)/(1 - u r), v - u = K r/(1 - u r) where
  // K = 1 + u², or what gives the slope of FSum. NaN where F would leave (0, 1).
  double shaped(const Search& s, double from, double has, double slope) const {
    const double newton = (row_.level(s.level) - double(s.below) - has) / slope, n = double(row_.m);
    const double u = outside(s) ? -1 / std::tan(std::numbers::pi * has / n) : from / tau_;
    const double scale = outside(s) ? n / (std::numbers::pi * slope) : 1 + u * u;
    const double r = std::tan(std::clamp(newton / scale, -1.57, 1.57)), shrink = 1 - u * r;
    return shrink > 0 ? tau_ * scale * r / shrink : std::numeric_limits<double>::quiet_NaN();
  }

  // ---- plateaus ----

  struct LogTail {
    double log, slope;  // log Σ F(-d_i/τ) and the slope of that in t/τ, both for one side
  };

  // The sources on one side, from the nearest on; `at` is the distance to that one.
  LogTail side(std::size_t nearest, bool upper, double at) const {
    const double first = Law::log_tail(at / tau_), least = first - 45;
    double total = 0, fall = 0;
    for (std::size_t i = nearest;; upper ? ++i : --i) {
      const double d = (at + std::fabs(x(i) - x(nearest))) / tau_, log = Law::log_tail(d);
      if (!(log >= least)) break;
      const double share = std::exp(log - first);
      total += share, fall += share * Law::log_slope(d);
      if (i == (upper ? row_.m - 1 : 0)) break;
    }
    return {first + std::log(total), fall / total};
  }

  // Returns the slope of the sum there.
  double balance(Search& s, double width) const {
    const double wanted = row_.level(s.level) - double(s.below);
    s.at = 0.5 * width;
    double slope = 0;
    for (int i = 0; i < 100; ++i) {
      const LogTail left = side(s.below - 1, false, s.at), right = side(s.below, true, width - s.at);
      // log(tail + |δ|) and its slope, for the side that is too short of δ
      const auto raised = [&](const LogTail& tail) {
        const double all = std::exp(tail.log) + std::fabs(wanted);
        return wanted == 0 ? tail : LogTail{std::log(all), tail.slope * (1 - std::fabs(wanted) / all)};
      };
      const LogTail l = wanted > 0 ? raised(left) : left, r = wanted < 0 ? raised(right) : right;
      const double excess = r.log - l.log;
      slope = std::exp(left.log) * left.slope + std::exp(right.log) * right.slope;
      if (excess != excess) return 0;  // both are beyond the range of logarithms: how many they are does not count
      (excess < 0 ? s.low : s.high) = s.at;
      const double by = -excess * tau_ / (l.slope + r.slope), before = s.at;
      s.at += by;
      if (std::fabs(by) <= kBalanced * tau_) return slope;
      if (!(s.at > s.low && s.at < s.high)) s.at = 0.5 * (s.low + s.high);
      if (s.at == before || s.high - s.low <= 1e-15 * width) return slope;
    }
    return slope;
  }

  const Row& row_;
  Places<T> x_;
  double tau_;
  Tables& tables_;
  Sources sources_;
  Vector<Found> at_sources_;
};

}  // namespace softorder
