// Where the threshold of a row probably is: a guess from the mean and the deviation of its scores.
#pragma once

#include <algorithm>
#include <cmath>
#include <numbers>

#include "threshold/row.hpp"
#include "threshold/step.hpp"

namespace softorder {

inline double normal_density(double z) { return 0.3989422804014327 * std::exp(-0.5 * z * z); }
inline double normal_tail(double z) { return 0.5 * std::erfc(z * std::numbers::sqrt2 / 2); }
inline double normal_loss(double t) { return normal_density(t) - t * normal_tail(t); }  // E(z - t)+

template <class F, class T> class Guess {
 public:
  struct Start {
    double distance;  // of the threshold from the mean
    double noise;     // the standard deviation of its error, for a bell-shaped row
    double density;   // the share of the row per unit of distance there, where F is not smooth
    double outer;     // further than this from b, the density is no longer typical
  };

  // A root that was found for one ratio of deviation and τ, and one share, serves its neighbours too. `slope` and
  // `fall`: how it changes with the ratio and with the share.
  struct Known {
    double ratio = 0, share = 0, root = 0, slope = 0, fall = 0;
    bool serves(double other, double other_share) const {
      return std::abs(other - ratio) < 0.1 * ratio && beside(share, other_share);
    }
    double at(double other, double other_share) const {
      return root + slope * (other - ratio) - fall * (other_share - share);
    }
  };

  // b/τ for a normal row, `ratio` = deviation/τ < 3; `start` need not be near it.
  const Known& smooth(double share, double ratio, double start) {
    if (!smooth_.serves(ratio, share)) smooth_ = find_smooth_root(share, ratio, start);
    return smooth_;
  }

  // For `share` = k/n of n scores.
  Start start(const Moments& row, double share, double n, double temperature) {
    const Quantiles& at = quantiles(share);
    const double noise = row.deviation * std::sqrt(at.moment_noise / row.count + at.rank_noise / n);
    const double b = distance(row.deviation, at, temperature);
    return {b, noise, density(b, row.deviation, temperature), (0.4 + 0.6 * std::abs(at.bell)) * row.deviation};
  }

 private:
  struct Quantiles {
    double share = -1;
    double bell, own;                 // upper quantiles of the normal density and of F
    double height;                    // the normal density at its quantile
    double moment_noise, rank_noise;  // variances of the guess: of one score, of one rank
  };

  // Whether two shares are so near to each other that a few terms of a series lead from one to the other: with a
  // mask, every row has a share of its own.
  static bool beside(double share, double other) {
    return std::abs(other - share) <= 0.05 * std::min(share, 1 - share);
  }

  // Rows mostly ask for the same share: remember the last one. The normal quantile, which takes longest, follows from
  // one that was found for a share beside it.
  const Quantiles& quantiles(double share) {
    if (share == quantiles_.share) return quantiles_;
    if (!beside(found_.share, share)) {
      const double bell = -Normal<double>::quantile(share);
      found_ = {share, bell, normal_density(bell)};
    }
    const double z = found_.bell, move = (found_.share - share) / found_.height;  // dz/dq = -1/f(z), f' = -z f
    const double step = move * (1 + move * (z / 2 + move * (1 + 2 * z * z) / 6));
    const double bell = z + step, height = found_.height * (1 - step * (z - step * (z * z - 1) / 2));
    quantiles_ = {share, bell, F::kMiddle - F::quantile(share), height, 1 + 0.5 * bell * bell,
                  share * (1 - share) / (height * height)};
    return quantiles_;
  }

  double distance(double deviation, const Quantiles& at, double temperature) {
    if constexpr (F::kTail == Tail::none) {
      if (temperature > 3 * deviation) return wide_distance(deviation, at.share, temperature);
    }
    const double rough = rough_distance(deviation, at, temperature) - F::kMiddle * temperature;
    if constexpr (F::kOrder < 5) return rough;
    if (!(deviation > 1e-3 * temperature)) return rough;
    const bool outside = F::kTail == Tail::hyperbola && std::abs(at.own) * temperature > 4 * deviation;
    if (deviation < 3 * temperature || outside) {
      const double ratio = deviation / temperature;
      return temperature * smooth(at.share, ratio, rough / temperature).at(ratio, at.share);
    }
    return F::kTail == Tail::hyperbola ? deviation * sharp_root(at, temperature / deviation) : rough;
  }

  static double density(double b, double deviation, double temperature) {
    const double at_b = normal_density(b / deviation);
    if (F::kTail != Tail::none) return at_b / deviation;
    return (at_b + normal_density((b + temperature) / deviation)) / deviation;  // both ends of its support
  }

  // The smoothed row has the quantile of a sum of two variables: they add like independent errors,
  // but far out in an exponential tail of F the row only adds its cumulant deviation²/2τ.
  static double rough_distance(double deviation, const Quantiles& at, double temperature) {
    const double own = std::abs(at.own) * temperature;
    const double cumulant = deviation * (deviation / temperature);
    double size = length(std::abs(deviation * at.bell), own);
    if (F::kTail == Tail::exponential && own > 0.5 * cumulant + deviation) size = own + 0.5 * cumulant;
    return at.bell < 0 ? -size : size;
  }

  // √(a² + b²) of numbers that are not negative, without overflow. std::hypot would be the only function
  // here that needs glibc 2.35, and so decide how old a system can run the wheel.
  static double length(double a, double b) {
    const double longer = std::max(a, b), ratio = std::min(a, b) / longer;
    return longer > 0 ? longer * std::sqrt(1 + ratio * ratio) : longer;
  }

  // The same for the uniform density with τ much larger than the row's deviation: only one end of its
  // support is among the scores, and E(x - b)+ = τ k/n (or its mirror image) for a normal x.
  static double wide_distance(double deviation, double share, double temperature) {
    const double smaller = std::min(share, 1 - share), mass = temperature * smaller / deviation;
    if (!(mass < 4)) return -temperature * share;  // no end of the support is among the scores
    const double t = inverse_normal_loss(mass);
    return share < 0.5 ? deviation * t : -deviation * t - temperature;
  }

  // The t with E(z - t)+ = mass for a standard normal z, by Newton's method on the logarithm.
  static double inverse_normal_loss(double mass) {
    double t = -mass;
    for (int i = 0; i < 6; ++i) {
      const double loss = normal_loss(t);
      t += std::log(loss / mass) * loss / normal_tail(t);
    }
    return t;
  }

  // ---- solving E F((x - b)/τ) = share for a normal x, by the trapezoidal rule on a few nodes
  static constexpr std::size_t kNodes = 16;
  static constexpr double kSpacing = 0.6;

  // The normal density at the nodes. With z = 0.6 (m + 1/2), z²/2 = 0.045 + 0.36 m (m + 1)/2: products
  // that the compiler can form, so that nothing has to run when the library is loaded.
  struct Nodes {
    alignas(kPackBytes) T place[kNodes], weight[kNodes];
    constexpr Nodes() : place{}, weight{} {
      static_assert(kSpacing == 0.6);
      constexpr double middle = kSpacing * 0.3989422804014327 * 0.95599748183309989;  // e^-0.045
      for (int i = 0; i < int(kNodes); ++i) {
        const int m = i - int(kNodes / 2);
        double density = middle;
        for (int step = 0; step < m * (m + 1) / 2; ++step) density *= 0.69767632607103103;  // e^-0.36
        place[i] = T(kSpacing * (m + 0.5)), weight[i] = T(density);
      }
    }
  };
  static constexpr Nodes kBell{};

  // Where the nodes are close enough to each other for F, or far enough from b.
  static Known find_smooth_root(double share, double ratio, double start) {
    double b = start, slope = 0, pdf = 1;
    for (int turn = 0; turn < 3; ++turn) {
      LaneSums<F, T> sums;
      Pack<T> above{}, moment{};
      for (std::size_t i = 0; i < kNodes; i += kLanes<T>) {
        const Pack<T> place = load(kBell.place + i), weight = load(kBell.weight + i);
        const Pack<T> z = place * T(ratio) - T(b), before = sums.lower_pdf + sums.upper_pdf;
        above += z < T(0) ? Pack<T>{} : weight;
        sums.add_weighted(z, F::kUnit, weight, z < T(0));
        moment += place * (sums.lower_pdf + sums.upper_pdf - before);
      }
      Sums total = sums.total(0);
      total.above = sum_lanes(above);
      pdf = total.pdf(), slope = sum_lanes(moment) / pdf;
      b += step<F>(total, share);
    }
    const bool sound = std::abs(b - start) < 2 + 2 * ratio && std::abs(slope) < 5;
    return sound ? Known{ratio, share, b, slope, 1 / pdf} : Known{ratio, share, start, start / ratio};
  }

  // b/deviation for a small τ (`ratio` = τ/deviation): b is near the normal quantile, and what heavy
  // tails add, F(u) - [u > 0], is an odd function of the distance, which nodes placed around b
  // integrate well. The derivative is that of the integral, so that F need not be differentiated.
  double sharp_root(const Quantiles& at, double ratio) {
    if (!sharp_.serves(ratio, at.share)) sharp_ = find_sharp_root(at, ratio);
    return sharp_.at(ratio, at.share);
  }

  static Known find_sharp_root(const Quantiles& at, double ratio) {
    constexpr double spread = 1 / kSpacing;  // nodes at ±1/2, ±3/2, ...
    const double share = std::min(at.share, 1 - at.share), sign = at.bell < 0 ? -1 : 1;
    double b = std::abs(at.bell), tails = 0, slope = 1;
    for (int turn = 0; turn < 4; ++turn) {
      tails = 0, slope = normal_density(b);
      for (std::size_t i = 0; i < kNodes; i += kLanes<T>) {
        const Pack<T> y = load(kBell.place + i) * T(spread), z = absolute<T>(y + T(b));
        const Pack<T> tail = values_at<F, T>(y, Pack<T>{} + T(1 / ratio)).tail;
        const Pack<T> bell = T(0.3989422804) * exp2_minus<T>(z, z * T(0.72134752));
        const Pack<T> part = bell * (y < T(0) ? tail : -tail);
        tails += sum_lanes(part), slope += sum_lanes(part * (y + T(b)));
      }
      const double value = normal_tail(b) + tails;
      if (!(value > 0 && slope > 0)) break;
      b += std::clamp(std::log(value / share) * value / slope, -1.0, 1.0);
    }
    return {ratio, at.share, sign * b, sign * tails / (ratio * slope), 1 / slope};  // the tails grow like τ
  }

  struct Found {
    double share = -1, bell = 0, height = 1;  // and the normal density there
  };

  Quantiles quantiles_;
  Found found_;
  Known smooth_, sharp_;
};

}  // namespace softorder
