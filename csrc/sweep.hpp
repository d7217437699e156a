// Loops over a row: the sums that the solver needs, the output, and the list of near elements.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "densities.hpp"

namespace softorder::SOFTORDER_LEVEL {

// A threshold b = centre + rest, split so that x - centre is exact for the scores that matter.
template <class T> struct Threshold {
  T centre, rest;
};

// u = (x - b)/τ is computed as z · scale, in the density's unit; finite for the tiniest τ.
template <class F, class T> T scale_of(double temperature) {
  constexpr double most = std::numeric_limits<T>::max();
  return static_cast<T>(std::min(double(F::kUnit) / temperature, most));
}

template <class F, class T> inline Values<T> values_at(Pack<T> z, Pack<T> scale) {
  if constexpr (F::kMiddle == 0) return F::values(absolute<T>(z), scale);
  const Pack<T> v = z * scale;
  return F::values(v < F::kMiddle ? v : T(1) - v, Pack<T>{} + T(1));
}

// Calls work(pack, index, count) on [0, n) in packs, the last one filled up with -inf, which takes
// no part in any sum.
template <class T, class Work> inline void for_packs(const T* x, std::size_t n, Work work) {
  std::size_t i = 0;
  for (; i + kLanes<T> <= n; i += kLanes<T>) work(load(x + i), i, kLanes<T>);
  if (i < n) work(load_part(x + i, n - i, -std::numeric_limits<T>::infinity()), i, n - i);
}

// What one sweep learns about Σ F((x_i - b)/τ). Below and above b are summed apart, as tails, so
// that the residual keeps its relative accuracy when almost every p is 0 or 1.
struct Sums {
  double above = 0;                     // how many scores are >= b
  double lower = 0, upper = 0;          // Σ F(-|u|) over the scores below b, and over those above
  double lower_pdf = 0, upper_pdf = 0;  // Σ f(u), likewise
  double curve = 0;                     // Σ f'(u)
  double squares = 0, twists = 0;       // Σ f(u)² and Σ f(u) f'(u), for steps of order 5

  Sums& operator+=(const Sums& o) {
    above += o.above, lower += o.lower, upper += o.upper;
    lower_pdf += o.lower_pdf, upper_pdf += o.upper_pdf, curve += o.curve;
    squares += o.squares, twists += o.twists;
    return *this;
  }
  double residual(double k) const { return (above - k) + (lower - upper); }
  double pdf() const { return lower_pdf + upper_pdf; }
};

// Short enough that sums in T lose nothing that matters, long enough to fill the vector units.
constexpr std::size_t kBlock = 256;

// How far a score is from the next place where F is not smooth or not far out in its tail: from b,
// or, for the uniform density, from the nearer end of its support. z = x - b.
template <class F, class T> inline Pack<T> distance(Pack<T> z, T temperature) {
  if constexpr (F::kTail != Tail::none) return absolute<T>(z);
  const T half = T(0.5) * temperature;
  return absolute<T>(absolute<T>(z - half) - half);
}

// Appends the lanes of z that the mask names to `list`, which needs room for a pack; returns how many.
template <class T> inline std::size_t append(T* list, Pack<T> z, Mask<T> wanted) {
#if defined(__AVX512F__)
  if constexpr (is_single<T>) {
    const __mmask16 bits = _mm512_movepi32_mask((__m512i)wanted);
    if (bits) _mm512_storeu_ps(list, _mm512_maskz_compress_ps(bits, z));
    return static_cast<std::size_t>(__builtin_popcount(bits));
  } else {
    const __mmask8 bits = _mm512_movepi64_mask((__m512i)wanted);
    if (bits) _mm512_storeu_pd(list, _mm512_maskz_compress_pd(bits, z));
    return static_cast<std::size_t>(__builtin_popcount(bits));
  }
#else
  std::size_t kept = 0;
#if defined(__AVX2__)
  const int bits = is_single<T> ? _mm256_movemask_ps((__m256)wanted) : _mm256_movemask_pd((__m256d)wanted);
  if (bits == 0) return 0;
#endif
  for (std::size_t i = 0; i < kLanes<T>; ++i) {
    list[kept] = z[i];
    kept += wanted[i] ? 1 : 0;
  }
  return kept;
#endif
}

// The scores with distance <= radius: a sweep does not sum them but appends their z = x - b to a
// list, which needs room for one pack more. None if the radius is negative.
template <class T> struct Near {
  T radius, temperature;
  T* list = nullptr;
  std::size_t count = 0;
};

template <class F, class T, bool kNearApart>
Sums sweep_block(const T* x, std::size_t n, Threshold<T> b, T scale, Near<T>& near) {
  Pack<T> lower{}, upper{}, pdf{}, upper_pdf{}, curve{}, squares{}, twists{};
  const Pack<T> none{};
  Mask<T> not_above{};
  for_packs(x, n, [&](Pack<T> scores, std::size_t, std::size_t) {
    const Pack<T> z = (scores - b.centre) - b.rest;
    const Mask<T> below = (F::kMiddle == 0 ? z : z * scale) < F::kMiddle;
    Mask<T> out{};
    if constexpr (kNearApart) {
      out = ~(distance<F, T>(z, near.temperature) > near.radius);  // a NaN goes to the list
      near.count += append<T>(near.list + near.count, z, out);
    }
    const Mask<T> is_lower = below & ~out, not_upper = below | out;
    Values<T> at = values_at<F, T>(z, Pack<T>{} + scale);
    lower += is_lower ? at.tail : none;
    upper += not_upper ? none : at.tail;
    not_above += not_upper;  // a mask is 0 or -1
    if constexpr (!F::kExponential) {
      if constexpr (kNearApart) {
        at.pdf = is_lower ? at.pdf : not_upper ? none : at.pdf;
        at.drop = is_lower ? at.drop : not_upper ? none : at.drop;
      }
      pdf += F::kSplitPdf ? (is_lower ? at.pdf : none) : at.pdf;
      if constexpr (F::kSplitPdf) upper_pdf += not_upper ? none : at.pdf;
      const Pack<T> slope = is_lower ? at.drop : -at.drop;
      curve += slope;
      if constexpr (F::kOrder == 5) squares += at.pdf * at.pdf, twists += at.pdf * slope;
    }
  });
  const std::size_t padding = (kLanes<T> - n % kLanes<T>) % kLanes<T>;  // lanes of -inf, all below
  const double above = double(n + padding) + sum_lanes(not_above);
  const double lower_sum = sum_lanes(lower), upper_sum = sum_lanes(upper);
  if constexpr (F::kExponential) {
    return {above, lower_sum, upper_sum, lower_sum, upper_sum, lower_sum - upper_sum};
  }
  const double pdf_sum = sum_lanes(pdf), tails = lower_sum + upper_sum;
  const double rate = tails > 0 ? pdf_sum / tails : 0;
  Sums sums{above, lower_sum, upper_sum, rate * lower_sum, rate * upper_sum, sum_lanes(curve)};
  if constexpr (F::kSplitPdf) sums.lower_pdf = pdf_sum, sums.upper_pdf = sum_lanes(upper_pdf);
  if constexpr (F::kOrder == 5) sums.squares = sum_lanes(squares), sums.twists = sum_lanes(twists);
  return sums;
}

template <class F, class T>
Sums sweep_block(const T* x, std::size_t n, Threshold<T> b, T scale, Near<T>& near) {
  return near.radius < 0 ? sweep_block<F, T, false>(x, n, b, scale, near)
                         : sweep_block<F, T, true>(x, n, b, scale, near);
}

template <class F, class T> Sums sweep(const T* x, std::size_t n, Threshold<T> b, T scale) {
  Near<T> none{-1, 1};
  Sums total;
  for (std::size_t i = 0; i < n; i += kBlock) {
    total += sweep_block<F, T>(x + i, std::min(kBlock, n - i), b, scale, none);
  }
  return total;
}

template <class F, class T>
void write_topk(const T* x, T* p, std::size_t n, Threshold<T> b, T scale) {
  for_packs(x, n, [&](Pack<T> scores, std::size_t i, std::size_t count) {
    const Pack<T> z = (scores - b.centre) - b.rest;
    const Pack<T> tail = values_at<F, T>(z, Pack<T>{} + scale).tail;
    const Pack<T> place = F::kMiddle == 0 ? z : z * scale;
    const Pack<T> result = place < F::kMiddle ? tail : T(1) - tail;
    std::memcpy(p + i, &result, count * sizeof(T));
  });
}

}  // namespace softorder::SOFTORDER_LEVEL
