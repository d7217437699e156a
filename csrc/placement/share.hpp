// What a score has between two thresholds, F(above) - F(below), as a logarithm, and its derivatives.
//
// A threshold is told by its distance: how far it is below the score, or above it; negative on the other
// side, infinite where it is. Everything is made of 1 - e^-d or of differences of distances, so that
// nothing cancels, whether the score is between its thresholds or far away from both.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "simd/exponential.hpp"
#include "simd/logarithm.hpp"

namespace softorder {

// A few scores and their thresholds; unused ones have harmless distances.
struct Distances {
  static constexpr std::size_t kMost = 256;
  double below[kMost + kLanes<double>], above[kMost + kLanes<double>];
  double width[kMost + kLanes<double>];  // from threshold to threshold
};

// f(u)/(F(above) - F(below)) at both thresholds.
struct Rates {
  double below[Distances::kMost + kLanes<double>], above[Distances::kMost + kLanes<double>];
};

// Outside its thresholds a score has e^-near (1 - e^-width)/2, between them 1 - (e^-below + e^-above)/2.
class LaplaceShare {
 public:
  explicit LaplaceShare(double temperature)
      : inverse_(std::min(1 / temperature, std::numeric_limits<double>::max())) {}

  void losses(const Distances& at, std::size_t count, double* out) const {
    for (std::size_t k = 0; k < count; k += kLanes<double>) {
      const Parts parts = parts_of(at, k);
      const Pack<double> outside = parts.near * inverse_ + std::numbers::ln2;
      store(out + k, (parts.inside ? Pack<double>{} : outside) - log_of(parts));
    }
  }

  void rates(const Distances& at, std::size_t count, Rates& out) const {
    for (std::size_t k = 0; k < count; k += kLanes<double>) {
      const Parts parts = parts_of(at, k);
      const Pack<double> scale = 1.0 / parts.lost, from_above = scale * parts.above, from_below = scale * parts.below;
      const Mask<double> lower = load(at.below + k) < 0.0;  // the near one of two on the same side
      store(out.below + k, parts.inside ? 0.5 * from_below : lower ? scale : from_above);
      store(out.above + k, parts.inside ? 0.5 * from_above : lower ? from_above : scale);
    }
  }

 private:
  // (e^-p + e^-q)/2 = 1 - lost, for the two distances, or for the width instead of both.
  struct Parts {
    Mask<double> inside;
    Pack<double> near, below, above, lost;
  };

  Parts parts_of(const Distances& at, std::size_t k) const {
    constexpr double kLeast = std::numeric_limits<double>::epsilon();  // thresholds that rounding made one
    const Pack<double> below = load(at.below + k), above = load(at.above + k), none = {};
    const Pack<double> width = load(at.width + k) * inverse_, apart = width < kLeast ? none + kLeast : width;
    const Mask<double> inside = (below >= 0.0) & (above > 0.0);
    const Decay p = decay(inside ? below * inverse_ : apart);
    const Decay q = any<double>(inside) ? decay(inside ? above * inverse_ : apart) : p;
    const Pack<double> lost = 0.5 * (p.lost + q.lost), least = none + std::numeric_limits<double>::min();
    return {inside, below < 0.0 ? -below : -above, p.rest, q.rest, lost < least ? least : lost};
  }

  // log(lost), as log(1 - kept) where that is the smaller part.
  static Pack<double> log_of(const Parts& parts) {
    const Pack<double> kept = 0.5 * (parts.below + parts.above), rounded = 1.0 - kept;
    const Mask<double> mostly = parts.lost > 0.5;
    const Pack<double> missing = ((1.0 - rounded) - kept) / rounded;
    return log<double>(mostly ? rounded : parts.lost) + (mostly ? missing : Pack<double>{});
  }

  double inverse_;
};

// The part of [x - τ/2, x + τ/2] between the thresholds, over τ; a loss is infinite where there is none.
class UniformShare {
 public:
  explicit UniformShare(double temperature) : tau_(temperature), half_(0.5 * temperature) {}

  void losses(const Distances& at, std::size_t count, double* out) const {
    for (std::size_t k = 0; k < count; ++k) {
      const double share = this->share(at, k);
      out[k] = share > 0 ? std::fabs(std::log(share)) : std::numeric_limits<double>::infinity();
    }
  }

  void rates(const Distances& at, std::size_t count, Rates& out) const {
    for (std::size_t k = 0; k < count; ++k) {
      const double share = this->share(at, k), scale = share > 0 ? 1 / share : 0;
      out.below[k] = std::fabs(at.below[k]) < half_ ? scale : 0;
      out.above[k] = std::fabs(at.above[k]) < half_ ? scale : 0;
    }
  }

 private:
  double share(const Distances& at, std::size_t k) const {
    const double below = at.below[k], above = at.above[k];
    const double overlap = std::max(below, above) < half_ ? at.width[k] : std::min(below, half_) + std::min(above, half_);
    return std::min(overlap, tau_) / tau_;
  }

  double tau_, half_;
};

}  // namespace softorder
