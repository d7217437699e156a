// Loops over a row: the sums that the solver needs, the output, and the list of near elements.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "densities.hpp"
#include "simd/compress.hpp"
#include "simd/convert.hpp"

namespace softorder {

// A threshold b = centre + rest, split so that x - centre is exact for the scores that matter.
template <class T> struct Threshold {
  T centre, rest;
};

// u = (x - b)/τ is computed as z · scale, in the density's unit; finite for the tiniest τ.
template <class F, class T> T scale_of(double temperature) {
  constexpr double most = std::numeric_limits<T>::max();
  return static_cast<T>(std::min(double(F::kUnit) / temperature, most));
}

template <class F, class T> [[gnu::always_inline]] inline Values<T> values_at(Pack<T> z, Pack<T> scale) {
  if constexpr (F::kMiddle == 0) return F::values(absolute<T>(z), scale);
  const Pack<T> v = z * scale;
  return F::values(v < F::kMiddle ? v : T(1) - v, Pack<T>{} + T(1));
}

// f(u) for a gradient. What rounding alone has put inside the uniform density is not there: with a whole k between two
// scores further apart than its support, those at an end of it would have moved b.
template <class F, class T> [[gnu::always_inline]] inline Pack<T> pdf_at(Pack<T> z, Pack<T> scale) {
  const Values<T> at = values_at<F, T>(z, scale);
  if constexpr (requires { F::kEdge; }) return at.tail > F::kEdge ? at.pdf : Pack<T>{};
  else return at.pdf;
}

// Calls work(pack, index, count) on [0, n) in packs, the last one filled up with -inf, which takes
// no part in any sum. In memory scalars may be narrower.
template <class T, class S, class Work>
[[gnu::always_inline]] inline void for_packs_of(const S* x, std::size_t n, Work work) {
  std::size_t i = 0;
  for (; i + kLanes<T> <= n; i += kLanes<T>) work(load_as<T>(x + i), i, kLanes<T>);
  if (i < n) work(load_first<T>(x + i, n - i, -std::numeric_limits<T>::infinity()), i, n - i);
}

template <class T, class Work> [[gnu::always_inline]] inline void for_packs(const T* x, std::size_t n, Work work) {
  for_packs_of<T>(x, n, work);
}

// What one sweep learns about Σ F((x_i - b)/τ). Below and above b are summed apart, as tails, so
// that the residual keeps its relative accuracy when almost every p is 0 or 1.
struct Sums {
  double above = 0;                     // how many scores are >= b
  double lower = 0, upper = 0;          // Σ F(-|u|) over the scores below b, and over those above
  double lower_pdf = 0, upper_pdf = 0;  // Σ f(u), likewise
  double curve = 0;                     // Σ f'(u)
  double third = 0, fourth = 0;         // Σ f''(u) and Σ f'''(u), for steps of order 5

  Sums& operator+=(const Sums& o) {
    above += o.above, lower += o.lower, upper += o.upper;
    lower_pdf += o.lower_pdf, upper_pdf += o.upper_pdf, curve += o.curve;
    third += o.third, fourth += o.fourth;
    return *this;
  }
  double residual(double k) const { return (above - k) + (lower - upper); }
  double pdf() const { return lower_pdf + upper_pdf; }
};

// The sums of far scores, and how they change when b moves. Exponential tails are kept as Σ e^-a and
// Σ e^-2a, of which Laplace needs the first only: F(-a) = e^-a - e^-2a + ...
struct Far {
  Sums sums;
  double lower_square = 0, upper_square = 0;

  Far& operator+=(const Far& o) {
    sums += o.sums;
    lower_square += o.lower_square, upper_square += o.upper_square;
    return *this;
  }

  // After b has moved by d (in units of τ).
  template <class F> Far moved(double d) const {
    Far far = *this;
    Sums& s = far.sums;
    if (F::kTail == Tail::exponential) {
      const double fall = std::exp(std::clamp(-d, -340.0, 340.0)), rise = 1 / fall;  // squares are finite, too
      s.lower *= fall, far.lower_square *= fall * fall;
      s.upper *= rise, far.upper_square *= rise * rise;
      return far;
    }
    // linear for uniform, nothing for normal, a Taylor polynomial for Cauchy
    s.lower += d * (-s.lower_pdf + d / 2 * (s.curve - d / 3 * (s.third - d / 4 * s.fourth)));
    s.upper += d * s.upper_pdf;
    s.lower_pdf -= d * (s.curve - d / 2 * (s.third - d / 3 * s.fourth));
    s.curve -= d * (s.third - d / 2 * s.fourth);
    s.third -= d * s.fourth;
    return far;
  }

  template <class F> Sums total() const {
    if (F::kTail != Tail::exponential) return sums;
    Sums total{sums.above};
    total.lower = sums.lower - lower_square;
    total.upper = sums.upper - upper_square;
    total.lower_pdf = sums.lower - 2 * lower_square;
    total.upper_pdf = sums.upper - 2 * upper_square;
    total.curve = total.lower_pdf - total.upper_pdf;
    return total;
  }
};

// Short enough that sums in T lose nothing that matters, long enough to fill the vector units.
constexpr std::size_t kBlock = std::max<std::size_t>(256, 8 * kPackBytes);

// How far a score is from the next place where F is not smooth or not far out in its tail: from b,
// or, for the uniform density, from the nearer end of its support. z = x - b.
template <class F, class T> inline Pack<T> distance(Pack<T> z, T temperature) {
  if constexpr (F::kTail != Tail::none) return absolute<T>(z);
  const T half = T(0.5) * temperature;
  return absolute<T>(absolute<T>(z - half) - half);
}

// The scores with distance <= radius: a sweep does not sum them but appends their z = x - b to a
// list, which needs room for one pack more.
template <class T> struct Near {
  T radius, temperature;
  T* list = nullptr;
  std::size_t count = 0;
};

// The sums of one block, one per lane.
template <class F, class T> struct LaneSums {
  Pack<T> lower{}, upper{}, lower_pdf{}, upper_pdf{}, curve{}, third{}, fourth{};
  Mask<T> not_above{};

  // Adds the scores at z, some of them below b.
  [[gnu::always_inline]] Values<T> add(Pack<T> z, T scale, Mask<T> below) {
    const Values<T> at = values_at<F, T>(z, Pack<T>{} + scale);
    add_values(at, below), not_above += below;  // a mask is 0 or -1
    return at;
  }

  // Counts each score as many times as its weight says; `above` is not counted.
  void add_weighted(Pack<T> z, T scale, Pack<T> weight, Mask<T> below) {
    const Values<T> at = values_at<F, T>(z, Pack<T>{} + scale);
    const Pack<T> tail = weight * at.tail, pdf = weight * at.pdf, slope = weight * (below ? at.drop : -at.drop);
    share(tail, below, lower, upper);
    if constexpr (F::kSplitPdf) share(pdf, below, lower_pdf, upper_pdf);
    else lower_pdf += pdf;
    curve += slope, third += at.third * pdf, fourth += at.fourth * slope;
  }

  // The same for far scores, where F is known better: see kReach.
  [[gnu::always_inline]] void add_far(Pack<T> z, T scale, Mask<T> below, Mask<T> far) {
    not_above += below | ~far;
    if constexpr (F::kTail == Tail::exponential && !F::kExponential) {
      const Pack<T> e = kept(far, exp2_minus<T>(absolute<T>(z), Pack<T>{} + scale)), square = e * e;
      share(e, below, lower, upper);
      share(square, below, lower_pdf, upper_pdf);
    } else if constexpr (F::kTail == Tail::hyperbola) {
      constexpr T nowhere = std::numeric_limits<T>::infinity();
      add_values(F::far_values(far ? absolute<T>(z) : Pack<T>{} + nowhere, Pack<T>{} + scale), below);
    } else if constexpr (F::kTail != Tail::gaussian) {
      Values<T> at = values_at<F, T>(z, Pack<T>{} + scale);
      at.tail = kept(far, at.tail), at.pdf = kept(far, at.pdf), at.drop = kept(far, at.drop);
      add_values(at, below);
    }
  }

  Sums total(std::size_t n) const {
    Sums sums = tails(n);
    if constexpr (F::kExponential) return sums;
    if constexpr (F::kSplitPdf) sums.lower_pdf = sum_lanes(lower_pdf), sums.upper_pdf = sum_lanes(upper_pdf);
    else share_pdf(sums, sum_lanes(lower_pdf));
    sums.curve = F::kTail == Tail::none ? 0 : sum_lanes(curve);
    if constexpr (F::kOrder == 5) {
      sums.third = F::kThird[0] * sums.pdf() + F::kThird[1] * sum_lanes(third);
      sums.fourth = F::kFourth[0] * sums.curve + F::kFourth[1] * sum_lanes(fourth);
    }
    return sums;
  }

  Far far_total(std::size_t n) const {
    if constexpr (F::kTail == Tail::gaussian) return {{count_above(n)}};
    if constexpr (F::kTail != Tail::exponential || F::kExponential) return {total(n)};
    return {tails(n), sum_lanes(lower_pdf), sum_lanes(upper_pdf)};
  }

 private:
  [[gnu::always_inline]] void add_values(const Values<T>& at, Mask<T> below) {
    share(at.tail, below, lower, upper);
    if constexpr (F::kExponential) return;
    if constexpr (F::kSplitPdf) share(at.pdf, below, lower_pdf, upper_pdf);
    else lower_pdf += at.pdf;  // of both sides: nobody asks an unsplit density for a part of them
    const Pack<T> slope = below ? at.drop : -at.drop;
    curve += slope;
    if constexpr (F::kOrder == 5) third += at.third * at.pdf, fourth += at.fourth * slope;
  }

  static void share(Pack<T> value, Mask<T> below, Pack<T>& lower, Pack<T>& upper) {
    lower = below ? lower + value : lower, upper = below ? upper : upper + value;
  }

  double count_above(std::size_t n) const {
    const std::size_t padding = (kLanes<T> - n % kLanes<T>) % kLanes<T>;  // lanes of -inf, all below
    return double(n + padding) + sum_lanes(not_above);
  }

  static void share_pdf(Sums& sums, double pdf) {
    const double tails = sums.lower + sums.upper, rate = tails > 0 ? pdf / tails : 0;
    sums.lower_pdf = rate * sums.lower, sums.upper_pdf = rate * sums.upper;
  }

  // With the derivatives of an exponential.
  Sums tails(std::size_t n) const {
    const double below = sum_lanes(lower), beyond = sum_lanes(upper);
    return {count_above(n), below, beyond, below, beyond, below - beyond};
  }

  static Pack<T> kept(Mask<T> wanted, Pack<T> value) { return wanted ? value : Pack<T>{}; }
};

// What a sweep leaves behind, where it is asked to: p = F((x - b)/τ), and f where shift.hpp wants it.
template <class T> struct Left {
  T *p = nullptr, *pdf = nullptr;
  Left at(std::size_t i) const { return {p ? p + i : nullptr, pdf ? pdf + i : nullptr}; }
};

template <class F, class T, bool kStore>
Sums sweep_block(const T* x, std::size_t n, Threshold<T> b, T scale, Left<T> left) {
  LaneSums<F, T> sums;
  for_packs(x, n, [&](Pack<T> scores, std::size_t i, std::size_t count) {
    const Pack<T> z = (scores - b.centre) - b.rest;
    const Mask<T> below = (F::kMiddle == 0 ? z : z * scale) < F::kMiddle;
    const Values<T> at = sums.add(z, scale, below);
    if constexpr (kStore) store_part(left.p + i, below ? at.tail : T(1) - at.tail, count);
    if constexpr (kStore && F::kShift == Shift::taylor) store_part(left.pdf + i, at.pdf, count);
  });
  return sums.total(n);
}

// The sums of the far scores; the near ones go to the list.
template <class F, class T>
Far sweep_far_block(const T* x, std::size_t n, Threshold<T> b, T scale, Near<T>& near) {
  LaneSums<F, T> sums;
  const T radius = near.radius, temperature = near.temperature;
  T* end = near.list + near.count;
  for_packs(x, n, [&](Pack<T> scores, std::size_t, std::size_t) {
    const Pack<T> z = (scores - b.centre) - b.rest;
    const Mask<T> below = (F::kMiddle == 0 ? z : z * scale) < F::kMiddle;
    const Pack<T> away = distance<F, T>(z, temperature);
    const Mask<T> far = away > radius;
    end += append_unless_above<T>(end, z, away, Pack<T>{} + radius);  // a NaN goes to the list
    sums.add_far(z, scale, below, far);
  });
  near.count = static_cast<std::size_t>(end - near.list);
  return sums.far_total(n);
}

template <class F, class T>
Sums sweep(const T* x, std::size_t n, Threshold<T> b, T scale, Left<T> left = {}) {
  constexpr bool leaves = F::kShift != Shift::none;
  Sums total;
  for (std::size_t i = 0; i < n; i += kBlock) {
    const std::size_t count = std::min(kBlock, n - i);
    total += leaves && left.p ? sweep_block<F, T, leaves>(x + i, count, b, scale, left.at(i))
                              : sweep_block<F, T, false>(x + i, count, b, scale, {});
  }
  return total;
}

template <class F, class T> [[gnu::always_inline]] inline Pack<T> topk_at(Pack<T> scores, Threshold<T> b, T scale) {
  const Pack<T> z = (scores - b.centre) - b.rest;
  const Pack<T> tail = values_at<F, T>(z, Pack<T>{} + scale).tail;
  const Pack<T> place = F::kMiddle == 0 ? z : z * scale;
  return place < F::kMiddle ? tail : T(1) - tail;
}

// p, in its own format S.
template <class F, class T, class S> void write_topk(const T* x, S* p, std::size_t n, Threshold<T> b, T scale) {
  for_packs(x, n, [&](Pack<T> scores, std::size_t i, std::size_t count) {
    store_first<T>(p + i, topk_at<F>(scores, b, scale), count);
  });
}

// The same, and 0 for what does not take part.
template <class F, class T>
void write_some(const T* x, const std::uint8_t* part, T* p, std::size_t n, Threshold<T> b, T scale) {
  for_packs(x, n, [&](Pack<T> scores, std::size_t i, std::size_t count) {
    const Mask<T> named = named_lanes<T>(part + i, count);
    store_part(p + i, named ? topk_at<F>(scores, b, scale) : Pack<T>{}, count);
  });
}

}  // namespace softorder
