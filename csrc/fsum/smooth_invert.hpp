// Solves Σ_i F((t - x_i)/τ) = level for ascending levels, with a smooth F, by a handful of F-sums.
//
//   1. FSum and its slope S/τ at every source: between which two sources every root is.
//   2. A guess: the cubic through both ends, t as a function of FSum. Its error is below
//      c τ (gap/τ)^4/384, where c bounds the ratios of derivatives of f, and that of the sum below
//      c (gap/τ)^3/384, as about one level is in a gap: where this does not matter, the guess is the root.
//   3. Newton's steps for all other roots at once, as many F-sums as it takes, inside brackets that
//      only shrink. In a wide gap and outside of the row, FSum minus the number i of sources below is a
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

// Sources: SmoothSources, or those of another density with the same sums_and_slopes.
template <class Law, class T, class Sources> class SmoothInverse {
 public:
  using Tables = typename Sources::RootTables;

  SmoothInverse(const InvertRow<T>& row, Tables& tables, Team team)
      : row_(row), x_{row.sources, nullptr}, tau_(row.temperature), tables_(tables),
        sources_(x_, nullptr, row.m, row.temperature, team) {}

  void run() {
    const auto [low, high] = row_.rooted();
    if (low == high) return;
    at_sources_ = find(x_, row_.m, [](std::size_t) { return 0.0; });
    for (std::size_t i = 1; i < row_.m; ++i) at_sources_.sum[i] = std::max(at_sources_.sum[i], at_sources_.sum[i - 1]);
    Vector<Search> open = start(low, high);
    for (int pass = 0; pass < kMostPasses && !open.empty(); ++pass) step(open);
    for (const Search& s : open) finish(s);
  }

 private:
  static constexpr int kMostPasses = 60;
  static constexpr double kNarrow = is_single<T> ? 2e-2 : 5e-4;  // gaps, in τ: see 2.
  static constexpr double kShort = is_single<T> ? 1e-4 : 1e-8;   // a step after which, squared, nothing is left
  static constexpr bool kHyperbola = Law::kTail == Tail::hyperbola;
  static constexpr double kOpen = kHyperbola ? 4 : 1;  // gaps in which tails tell where to step: see 3.
  static constexpr double kWide = 8;                   // gaps with plateaus
  static constexpr double kVast = 1e6;                 // gaps so wide that a place near one end has lost digits at the other

  struct Found {
    Vector<double> sum, slope;
  };
  // A root that is looked for at x[anchor] + at, within [low, high].
  struct Search {
    std::size_t level, below;  // how many sources are below the root
    std::size_t anchor;        // the source that it is drawn to
    double at, low, high;
  };

  // FSum less `minus`, which is a number of sources, and its slope.
  template <class U, class Minus> Found find(const Places<U>& t, std::size_t n, Minus minus) {
    Found found{Vector<double>(n), Vector<double>(n)};
    sources_.sums_and_slopes(t, n, tables_, [&](std::size_t j, double step, double value, double slope) {
      found.sum[j] = (step - minus(j)) + value, found.slope[j] = slope;
    });
    return found;
  }

  double x(std::size_t i) const { return double(row_.sources[i]); }
  bool outside(const Search& s) const { return s.below == 0 || s.below == row_.m; }
  double gap(const Search& s) const { return x(s.below) - x(s.below - 1); }

  void finish(const Search& s) const {
    const bool other = !outside(s) && s.anchor < s.below && s.at > 0.5 * gap(s);
    other ? row_.root(s.level, x(s.below), s.at - gap(s)) : row_.root(s.level, x(s.anchor), s.at);
  }

  // Guesses, those that are roots already finished.
  Vector<Search> start(std::size_t low, std::size_t high) {
    Vector<Search> open;
    std::size_t below = 0;
    for (std::size_t j = low; j < high; ++j) {
      while (below < row_.m && at_sources_.sum[below] <= row_.levels[j]) ++below;
      Search s{j, below, below == 0 ? 0 : below - 1, 0, 0, 0};
      const double width = outside(s) ? 0 : gap(s);
      if (!outside(s) && width <= kNarrow * tau_) {
        s.at = guess(s, width);
        finish(s);
      } else if (!kHyperbola && width > kWide * tau_ && std::fabs(row_.levels[j] - double(below)) < 0.25 &&
                 !(width > kVast * tau_ && reach(s) < 0.5 * width)) {
        s.high = width;
        balance(s, width);
        finish(s);
      } else {
        bracket(s, width);
        if (!open.empty() && open.back().below == below) keep_behind(open.back(), s);
        open.push_back(s);
      }
    }
    return open;
  }

  // The cubic t(FSum) with the values and slopes of both ends, if it stays between them.
  double guess(const Search& s, double width) const {
    const std::size_t i = s.below;
    const double rise = at_sources_.sum[i] - at_sources_.sum[i - 1], v = (row_.levels[s.level] - at_sources_.sum[i - 1]) / rise;
    if (!(rise > 0)) return 0.5 * width;
    const double first = rise * tau_ / at_sources_.slope[i - 1], last = rise * tau_ / at_sources_.slope[i];
    const double cubic = v * (width * v * (3 - 2 * v) + (1 - v) * (first * (1 - v) - last * v));
    return cubic >= 0 && cubic <= width ? cubic : v * width;
  }

  // Where a root is, and a guess. FSum - i = R - L, the tails of the sources above and below. What a
  // level needs of it, δ, comes from one side, whose tail falls at least as F does when n sources are
  // at its end: the root is not further away than F^-1(|δ|/n). In a wide gap, a step in logarithms
  // from that end is the guess.
  void bracket(Search& s, double width) const {
    const double wanted = row_.levels[s.level] - double(s.below);
    const bool inside = !outside(s), from_above = s.below == 0 || (inside && wanted > 0);
    const bool wide = !inside || width > kOpen * tau_;
    const double limit = wide ? reach(s) : width;  // in a narrow gap the gap itself will do
    const double most = inside ? std::min(width, limit) : limit * (1 + 1e-6);  // a root inside, not at the end
    s.anchor = from_above ? s.below : s.below - 1;
    s.low = from_above ? -most : 0, s.high = from_above ? 0 : most;
    if (inside) s.at = guess(s, width) - (from_above ? width : 0);
    const double has = at_sources_.sum[s.anchor] - double(s.below), slope = at_sources_.slope[s.anchor];
    if (wide && slope > 0 && (kHyperbola || wanted * has > 0)) {
      s.at = kHyperbola ? shaped(s, 0, has, slope) : has * tau_ / slope * std::log(wanted / has);
      if (inside) s.at = std::clamp(s.at, -0.5 * width, 0.5 * width);
    }
    s.at = std::clamp(s.at, s.low, s.high);
  }

  // How far a root may be from the end that it is drawn to.
  double reach(const Search& s) const {
    const double wanted = std::fabs(row_.levels[s.level] - double(s.below));
    return wanted == 0 ? std::numeric_limits<double>::infinity() : -tau_ * Law::quantile(std::min(0.5, wanted / double(row_.m)));
  }

  // One F-sum at every open root, and a step.
  void step(Vector<Search>& open) {
    const std::size_t n = open.size();
    Vector<double> value(n), rest(n);
    for (std::size_t j = 0; j < n; ++j) value[j] = x(open[j].anchor), rest[j] = open[j].at;
    const Found found = find(Places<double>{value.data(), rest.data()}, n, [&](std::size_t j) { return double(open[j].below); });
    std::size_t left = 0;
    for (std::size_t j = 0; j < n; ++j) {
      Search s = open[j];
      const double moved = move(s, found.sum[j], found.slope[j]);
      if (std::fabs(moved) <= kShort * tau_) {
        finish(s);
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

  // Moves a root by Newton's step, or to the middle of its bracket; by how much, if that tells what is left. `has` is
  // FSum less the number of sources below.
  double move(Search& s, double has, double slope) const {
    const double wanted = row_.levels[s.level] - double(s.below), before = s.at;
    if (has == wanted) return 0;
    (has < wanted ? s.low : s.high) = s.at;
    double by = (wanted - has) * tau_ / slope;
    if (outside(s) || gap(s) > kOpen * tau_) {
      if (kHyperbola) {
        by = shaped(s, from_nearest(s), has, slope);
      } else if (wanted * has > 0 && is_tail(s, has, slope)) {
        by = has * tau_ / slope * std::log(wanted / has);
      }
    }
    s.at += by;
    if (std::fabs(by) <= kShort * tau_) return by;
    if (!(s.at > s.low && s.at < s.high)) s.at = 0.5 * (s.low + s.high);
    return s.at == before || s.high - s.low <= kShort * kShort * tau_ ? 0 : std::numeric_limits<double>::infinity();
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
    const double newton = (row_.levels[s.level] - double(s.below) - has) / slope, n = double(row_.m);
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

  void balance(Search& s, double width) const {
    const double wanted = row_.levels[s.level] - double(s.below);
    s.at = 0.5 * width;
    for (int i = 0; i < 100; ++i) {
      const LogTail left = side(s.below - 1, false, s.at), right = side(s.below, true, width - s.at);
      // log(tail + |δ|) and its slope, for the side that is too short of δ
      const auto raised = [&](const LogTail& tail) {
        const double all = std::exp(tail.log) + std::fabs(wanted);
        return wanted == 0 ? tail : LogTail{std::log(all), tail.slope * (1 - std::fabs(wanted) / all)};
      };
      const LogTail l = wanted > 0 ? raised(left) : left, r = wanted < 0 ? raised(right) : right;
      const double excess = r.log - l.log;
      if (excess != excess) return;  // both are beyond the range of logarithms: how many they are does not count
      (excess < 0 ? s.low : s.high) = s.at;
      const double by = -excess * tau_ / (l.slope + r.slope), before = s.at;
      s.at += by;
      if (std::fabs(by) <= kShort * tau_) return;
      if (!(s.at > s.low && s.at < s.high)) s.at = 0.5 * (s.low + s.high);
      if (s.at == before || s.high - s.low <= 1e-15 * width) return;
    }
  }

  const InvertRow<T>& row_;
  Places<T> x_;
  double tau_;
  Tables& tables_;
  Sources sources_;
  Found at_sources_;
};

}  // namespace softorder
