// Thresholds of one sorted row with a smooth density, and what they pass on to the scores: roots of F-sums, and one
// more F-sum with weights.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>

#include "fsum/cauchy_sum.hpp"
#include "fsum/laplace_sum.hpp"
#include "fsum/smooth_invert.hpp"
#include "fsum/smooth_sum.hpp"
#include "order/roots.hpp"

namespace softorder {

// What sums a density quickly, for scores that were given as T.
template <class Law, class T> struct FastSums {
  using Sources = SmoothSources<Law, double>;
  using Tables = SmoothTables<Law>;
  static void sum(const FsumRow<double>& row, Tables& tables, Team team) { smooth_fsum(row, tables, team); }
};
template <class T> struct FastSums<Cauchy<double>, T> {
  using Sources = CauchySources<double, T>;
  using Tables = CauchyTables<T>;
  static void sum(const FsumRow<double>& row, Tables& tables, Team team) { cauchy_fsum(row, tables, team); }
};

template <class Law, class T> class SmoothOrder {
  using Sums = FastSums<Law, T>;

 public:
  // Kept from row to row.
  struct Tables {
    typename Sums::Tables roots, slopes, heat;
  };

  // x: m finite scores, ascending.
  SmoothOrder(const double* x, std::size_t m, double temperature, Team team, Tables& tables)
      : x_(x), m_(m), tau_(temperature), team_(team), tables_(tables) {}

  // The places where Σ_i F((t - x_i)/τ) takes the levels: root j is rest[j] from the source segment[j].
  void roots(Levels levels, const Roots<double>& out) const {
    const Wanted row{x_, m_, tau_, levels, out};
    SmoothInverse<Law, Wanted, typename Sums::Sources>(row, tables_.roots, team_).run();
  }

  static std::size_t source_of(const Roots<double>& at, std::size_t j) { return std::size_t(at.segment[j]); }

  // out[order[i]] = Σ_j g_j f((t_j - x_i)/τ)/slope_j, with g in the order of the levels; where the slope underflows,
  // g_j is shared by the edges of the gap.
  void roots_vjp(Levels levels, const std::int32_t* order, const double* upstream, const Roots<double>& at, double* out) const {
    const RootPlaces t(x_, levels.count, at);
    Vector<double> share(levels.count), moved(m_);
    bool flat = false;
    for (std::size_t j = 0; j < levels.count; ++j) {
      flat |= is_flat(upstream, at, j);
      share[j] = at.slope[j] < kFlat ? 0 : upstream[j] / at.slope[j];
    }
    Sums::sum({t.places(), x(), share.data(), moved.data(), levels.count, m_, tau_, 1, 0}, tables_.slopes, team_);
    if (flat) pull_edges(levels, upstream, at, moved);
    for (std::size_t i = 0; i < m_; ++i) out[order[i]] = moved[i];
  }

  // Σ_j g_j Σ_i f(u) u/slope_j with u = (t_j - x_i)/τ: the gradient of τ.
  double roots_by_temperature(Levels levels, const double* upstream, const Roots<double>& at) const {
    const RootPlaces t(x_, levels.count, at);
    Vector<double> moments(levels.count);
    Sums::sum({x(), t.places(), nullptr, moments.data(), m_, levels.count, tau_, 1, 1}, tables_.heat, team_);
    double heat = 0;
    bool flat = false;
    for (std::size_t j = 0; j < levels.count; ++j) {
      flat |= is_flat(upstream, at, j);
      if (at.slope[j] >= kFlat) heat += upstream[j] / at.slope[j] * moments[j];
    }
    return flat ? heat + heat_of_edges(levels, upstream, at) : heat;
  }

 private:
  static constexpr bool kExponential = Law::kTail == Tail::exponential;
  static constexpr double kFlat = kExponential ? 1e-150 : 1e-250;

  // The levels of a row, as SmoothInverse wants them.
  struct Wanted {
    using Scalar = double;
    const double* sources;
    std::size_t m;
    double temperature;
    Levels levels;
    const Roots<double>& out;

    double level(std::size_t j) const { return levels.first() + double(j); }
    std::pair<std::size_t, std::size_t> rooted() const { return {0, levels.count}; }
    void settle(std::size_t j, std::size_t source, double offset, double slope) const {
      out.segment[j] = std::int32_t(source), out.rest[j] = offset, out.slope[j] = slope;
    }
  };

  struct RootPlaces {
    Vector<double> centre;
    const double* rest;

    RootPlaces(const double* x, std::size_t count, const Roots<double>& at) : centre(count), rest(at.rest) {
      for (std::size_t j = 0; j < count; ++j) centre[j] = x[source_of(at, j)];
    }
    Places<double> places() const { return {centre.data(), rest}; }
  };

  Places<double> x() const { return {x_, nullptr}; }

  // ---- gaps where the slope underflows: kernels/fsum/edges.py ----

  static bool is_flat(const double* upstream, const Roots<double>& at, std::size_t j) {
    return at.slope[j] < kFlat && upstream[j] != 0;
  }

  // Σ_i w_i f((x_j - x_i)/τ) at all scores as edges: where tails fall faster than e^-u, an edge has only its equals.
  Vector<double> at_edges(const double* weights) const {
    const double tau = kExponential ? tau_ : std::numeric_limits<double>::min();
    Vector<double> sums(m_);
    laplace_fsum(FsumRow<double>{x(), x(), weights, sums.data(), m_, m_, tau, 1, 0}, team_);
    return sums;
  }

  // Of a flat root, which is above the source j and below the next one: how far they are, in τ, and the share in its
  // moves that the lower one has, h/(h + h') with the hazards of both.
  struct Gap {
    double below, above, lower;
  };
  Gap gap(const Roots<double>& at, std::size_t j) const {
    const double from = x_[source_of(at, j)], below = ((from - x_[j]) + at.rest[j]) / tau_, above = ((x_[j + 1] - from) - at.rest[j]) / tau_;
    const double fall = Law::log_slope(below), fall_above = Law::log_slope(above), lower = fall / (fall + fall_above);
    return {below, above, lower >= 0 && lower <= 1 ? lower : 0.5};
  }

  void pull_edges(Levels levels, const double* upstream, const Roots<double>& at, Vector<double>& moved) const {
    const Vector<double> number = at_edges(nullptr);
    Vector<double> weights(m_);
    for (std::size_t j = 0; j < levels.count; ++j) {
      if (!is_flat(upstream, at, j)) continue;
      const double lower = gap(at, j).lower;
      weights[j] += lower * upstream[j] / number[j];
      weights[j + 1] += (1 - lower) * upstream[j] / number[j + 1];
    }
    const Vector<double> more = at_edges(weights.data());
    for (std::size_t i = 0; i < m_; ++i) moved[i] += more[i];
  }

  // Σ_j g_j (t_j - m_j)/τ, m_j being the means behind both edges by their shares.
  double heat_of_edges(Levels levels, const double* upstream, const Roots<double>& at) const {
    const Vector<double> number = at_edges(nullptr), total = at_edges(x_);
    const auto behind = [&](std::size_t edge) { return (x_[edge] - total[edge] / number[edge]) / tau_; };
    double heat = 0;
    for (std::size_t j = 0; j < levels.count; ++j) {
      if (!is_flat(upstream, at, j)) continue;
      const Gap own = gap(at, j);
      heat += upstream[j] * (own.lower * (own.below + behind(j)) - (1 - own.lower) * (own.above - behind(j + 1)));
    }
    return heat;
  }

  const double* x_;
  std::size_t m_;
  double tau_;
  Team team_;
  Tables& tables_;
};

}  // namespace softorder
