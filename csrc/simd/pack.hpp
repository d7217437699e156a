// A pack: as many scalars as one vector register of this SIMD level holds. GCC's and Clang's vector
// types give the operators; what they lack is here.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

#if defined(__SSE2__)
#include <immintrin.h>
#endif

#include "simd/polynomials.hpp"

namespace softorder {

#if defined(__AVX512F__)
constexpr std::size_t kPackBytes = 64;
#elif defined(__AVX2__)
constexpr std::size_t kPackBytes = 32;
#else
constexpr std::size_t kPackBytes = 16;
#endif

// While one lives, results that would be denormal become 0: they are a hundred times slower, and
// nothing here depends on them. Where this is not x86-64, one does nothing, and looks unused.
class [[maybe_unused]] NoDenormals {
 public:
#if defined(__SSE2__)
  NoDenormals() : before_(_mm_getcsr()) { _mm_setcsr(before_ | 0x8000); }
  ~NoDenormals() { _mm_setcsr(before_); }

 private:
  unsigned before_;
#endif
};

template <class T> struct Number;
template <> struct Number<float> {
  using Integer = std::int32_t;
  typedef float Pack __attribute__((vector_size(kPackBytes)));
  typedef std::int32_t Mask __attribute__((vector_size(kPackBytes)));
  typedef std::uint32_t Bits __attribute__((vector_size(kPackBytes)));
  static constexpr int kMantissa = 23;
  static constexpr float kRound = 12582912.0f;   // 1.5 · 2^23: adding it rounds to an integer
  static constexpr float kLowest = 126.0f;       // 2^-126 is the smallest normal number
  static constexpr double kExactRange = 16;      // differences up to this many τ are exact enough
  static constexpr double kTaylorRange = 0.06;   // its fifth power does not matter
};
template <> struct Number<double> {
  using Integer = std::int64_t;
  typedef double Pack __attribute__((vector_size(kPackBytes)));
  typedef std::int64_t Mask __attribute__((vector_size(kPackBytes)));
  typedef std::uint64_t Bits __attribute__((vector_size(kPackBytes)));
  static constexpr int kMantissa = 52;
  static constexpr double kRound = 6755399441055744.0;  // 1.5 · 2^52
  static constexpr double kLowest = 1022.0;
  static constexpr double kExactRange = 200;
  static constexpr double kTaylorRange = 3e-3;
};

template <class T> using Pack = typename Number<T>::Pack;
template <class T> using Mask = typename Number<T>::Mask;
template <class T> using Bits = typename Number<T>::Bits;  // unsigned: what overflows wraps around
template <class T> constexpr std::size_t kLanes = kPackBytes / sizeof(T);
template <class T> constexpr bool is_single = sizeof(T) == 4;

template <class T> inline Pack<T> load(const T* from) {
  Pack<T> pack;
  std::memcpy(&pack, from, sizeof pack);
  return pack;
}

template <class T> inline void store(T* to, Pack<T> pack) { std::memcpy(to, &pack, sizeof pack); }

#if defined(__AVX2__) && !defined(__AVX512F__)
// The first `count` lanes.
template <class T> inline __m256i first_lanes(std::size_t count) {
  constexpr std::size_t lanes = kLanes<T>;
  alignas(kPackBytes) static constexpr auto kEdge = [] {
    std::array<typename Number<T>::Integer, 2 * lanes> edge{};
    for (std::size_t i = 0; i < lanes; ++i) edge[i] = -1;
    return edge;
  }();
  return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(kEdge.data() + lanes - count));
}
#endif

// The first `count` scalars, and `filler` in the other lanes. Nothing behind them is touched: a copy of a few bytes
// would be a call, and the load behind it would wait until they have reached the cache.
template <class T> inline Pack<T> load_part(const T* from, std::size_t count, T filler) {
  Pack<T> pack = Pack<T>{} + filler;
#if defined(__AVX512F__)
  if constexpr (is_single<T>) return Pack<T>(_mm512_mask_loadu_ps(pack, __mmask16((1u << count) - 1), from));
  else return Pack<T>(_mm512_mask_loadu_pd(pack, __mmask8((1u << count) - 1), from));
#elif defined(__AVX2__)
  const __m256i wanted = first_lanes<T>(count);
  if constexpr (is_single<T>) return Mask<T>(wanted) ? Pack<T>(_mm256_maskload_ps(from, wanted)) : pack;
  else return Mask<T>(wanted) ? Pack<T>(_mm256_maskload_pd(from, wanted)) : pack;
#else
  std::memcpy(&pack, from, count * sizeof(T));
  return pack;
#endif
}

// Writes the first `count` lanes.
template <class T> inline void store_part(T* to, Pack<T> pack, std::size_t count) {
  if (count == kLanes<T>) return store(to, pack);
#if defined(__AVX512F__)
  if constexpr (is_single<T>) _mm512_mask_storeu_ps(to, __mmask16((1u << count) - 1), pack);
  else _mm512_mask_storeu_pd(to, __mmask8((1u << count) - 1), pack);
#elif defined(__AVX2__)
  if constexpr (is_single<T>) _mm256_maskstore_ps(to, first_lanes<T>(count), pack);
  else _mm256_maskstore_pd(to, first_lanes<T>(count), pack);
#else
  std::memcpy(to, &pack, count * sizeof(T));
#endif
}

template <class T> inline Pack<T> absolute(Pack<T> x) {
  return std::bit_cast<Pack<T>>(std::bit_cast<Mask<T>>(x) &
                                std::numeric_limits<typename Number<T>::Integer>::max());
}

template <class T> inline Pack<T> larger(Pack<T> a, Pack<T> b) {
#if defined(__AVX512F__)
  if constexpr (is_single<T>) return Pack<T>(_mm512_max_ps(a, b));
#elif defined(__AVX2__)
  if constexpr (is_single<T>) return Pack<T>(_mm256_max_ps(a, b));
#endif
  return a > b ? a : b;
}

template <class T> inline Pack<T> smaller(Pack<T> a, Pack<T> b) {
#if defined(__AVX512F__)
  if constexpr (is_single<T>) return Pack<T>(_mm512_min_ps(a, b));
#elif defined(__AVX2__)
  if constexpr (is_single<T>) return Pack<T>(_mm256_min_ps(a, b));
#endif
  return a > b ? b : a;
}

// The lanes that `from` names: 0 ... of a, then of b.
template <class T> inline Pack<T> shuffle(Pack<T> a, Pack<T> b, Mask<T> from) {
#if defined(__clang__)
  Pack<T> result;
  for (std::size_t i = 0; i < kLanes<T>; ++i) {
    const std::size_t j = static_cast<std::size_t>(from[i]);
    result[i] = j < kLanes<T> ? a[j] : b[j - kLanes<T>];
  }
  return result;
#else
  return __builtin_shuffle(a, b, from);
#endif
}

// The lanes that a mask names, as bits.
template <class T> inline unsigned lane_bits(Mask<T> mask) {
#if defined(__AVX512F__)
  if constexpr (is_single<T>) return _mm512_movepi32_mask((__m512i)mask);
  else return _mm512_movepi64_mask((__m512i)mask);
#elif defined(__AVX2__)
  return unsigned(is_single<T> ? _mm256_movemask_ps((__m256)mask) : _mm256_movemask_pd((__m256d)mask));
#elif defined(__SSE2__)
  return unsigned(is_single<T> ? _mm_movemask_ps((__m128)mask) : _mm_movemask_pd((__m128d)mask));
#else
  unsigned bits = 0;
  for (std::size_t i = 0; i < kLanes<T>; ++i) bits |= unsigned(mask[i] != 0) << i;
  return bits;
#endif
}

// Pairwise, so that equal lanes lose nothing.
template <class P> inline double sum_lanes(P pack) {
#if defined(__AVX512F__)
  if constexpr (std::is_same_v<P, Pack<float>>) return _mm512_reduce_add_ps(pack);
  if constexpr (std::is_same_v<P, Pack<double>>) return _mm512_reduce_add_pd(pack);
  if constexpr (std::is_same_v<P, Mask<float>>) return _mm512_reduce_add_epi32((__m512i)pack);
#elif defined(__AVX2__)
  if constexpr (std::is_same_v<P, Pack<float>>) {
    const __m128 four = _mm_add_ps(_mm256_castps256_ps128(pack), _mm256_extractf128_ps(pack, 1));
    const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
  }
  if constexpr (std::is_same_v<P, Mask<float>>) {
    const __m256i all = (__m256i)pack;
    const __m128i four = _mm_add_epi32(_mm256_castsi256_si128(all), _mm256_extracti128_si256(all, 1));
    const __m128i two = _mm_add_epi32(four, _mm_unpackhi_epi64(four, four));
    return _mm_cvtsi128_si32(_mm_add_epi32(two, _mm_shuffle_epi32(two, 1)));
  }
#endif
  constexpr std::size_t lanes = sizeof(P) / sizeof(pack[0]);
  for (std::size_t half = lanes / 2; half > 0; half /= 2) {
    for (std::size_t i = 0; i < half; ++i) pack[i] += pack[i + half];
  }
  return double(pack[0]);
}

// Whether any lane of a mask is set.
template <class T> inline bool any(Mask<T> mask) {
#if defined(__AVX512F__)
  return _mm512_test_epi32_mask((__m512i)mask, (__m512i)mask) != 0;
#elif defined(__AVX2__)
  return !_mm256_testz_si256((__m256i)mask, (__m256i)mask);
#else
  return sum_lanes(mask) != 0;
#endif
}

template <class P> inline double largest_lane(P pack) {
#if defined(__AVX512F__)
  if constexpr (std::is_same_v<P, Pack<float>>) return _mm512_reduce_max_ps(pack);
#endif
  double most = double(pack[0]);
  for (std::size_t i = 1; i < sizeof(P) / sizeof(pack[0]); ++i) most = std::max(most, double(pack[i]));
  return most;
}

template <class T, std::size_t N> [[gnu::always_inline]] inline Pack<T> horner(const T (&coefficients)[N], Pack<T> x) {
  Pack<T> y = Pack<T>{} + coefficients[0];
  for (std::size_t i = 1; i < N; ++i) y = y * x + coefficients[i];
  return y;
}

// 1/x for finite x that are not tiny: an estimate and one Newton step where that is faster than dividing.
template <class T> [[gnu::always_inline]] inline Pack<T> inverse(Pack<T> x) {
#if defined(__AVX512F__)
  if constexpr (is_single<T>) {
    const __m512 estimate = _mm512_rcp14_ps(x);
    const __m512 error = _mm512_fnmadd_ps(x, estimate, _mm512_set1_ps(1));
    return Pack<T>(_mm512_fmadd_ps(estimate, error, estimate));
  }
#endif
  return T(1) / x;
}

// 1/x to three digits at least.
template <class T> [[gnu::always_inline]] inline Pack<T> rough_inverse(Pack<T> x) {
#if defined(__AVX512F__)
  if constexpr (is_single<T>) return Pack<T>(_mm512_rcp14_ps(x));
#elif defined(__AVX2__)
  if constexpr (is_single<T>) return Pack<T>(_mm256_rcp_ps(x));
#endif
  return T(1) / x;
}

// 2^-(a·b) for a, b >= 0; exactly 0 from 2^-125.5 (2^-1021.5) on, before results become denormal; NaN stays
// NaN, whatever bits it has. The product is never rounded by itself where there is a fused multiply-add.
template <class T> [[gnu::always_inline]] inline Pack<T> exp2_minus(Pack<T> a, Pack<T> b) {
  constexpr T round = Number<T>::kRound + (std::numeric_limits<T>::max_exponent - 1);  // its last bits: the exponent of 1
  const Pack<T> shifted = round - a * b;
  const Pack<T> whole = round - shifted;
  const Pack<T> power = horner<T>(Polynomials<T>::kExp2, whole - a * b);
  const Pack<T> scale = std::bit_cast<Pack<T>>(std::bit_cast<Bits<T>>(shifted) << Number<T>::kMantissa);
  return shifted <= round - Number<T>::kLowest ? Pack<T>{} : power * scale;
}

}  // namespace softorder
