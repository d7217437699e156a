// Square blocks of packs, turned around their diagonals: rows of a matrix become lanes.
#pragma once

#include <type_traits>

#include "simd/convert.hpp"
#include "simd/pack.hpp"

namespace softorder {

// Indices that interleave the lower and the upper halves of two packs.
template <class T> struct Interleaved {
  Mask<T> lower, upper;
  [[gnu::always_inline]] Interleaved() {
    constexpr std::size_t size = kLanes<T>, half = size / 2;
    for (std::size_t i = 0; i < half; ++i) {
      lower[2 * i] = static_cast<int>(i), lower[2 * i + 1] = static_cast<int>(size + i);
      upper[2 * i] = static_cast<int>(half + i), upper[2 * i + 1] = static_cast<int>(size + half + i);
    }
  }
};

// Element i of every lane's row, for i < kLanes: a square block, turned around its diagonal.
template <class T> inline void transpose(Pack<T> (&block)[kLanes<T>]) {
  constexpr std::size_t size = kLanes<T>, half = size / 2;
  const Interleaved<T> from;
  for (std::size_t done = 1; done < size; done *= 2) {
    Pack<T> mixed[size];
#pragma GCC unroll 16
    for (std::size_t i = 0; i < half; ++i) {
      mixed[2 * i] = shuffle<T>(block[i], block[i + half], from.lower);
      mixed[2 * i + 1] = shuffle<T>(block[i], block[i + half], from.upper);
    }
#pragma GCC unroll 16
    for (std::size_t i = 0; i < size; ++i) block[i] = mixed[i];
  }
}

#if defined(__AVX2__)
// Quarters of a register, each from a row of its own.
#if defined(__AVX512F__)
typedef __m512 Turning;
template <class Place> [[gnu::always_inline]] inline Turning load_quarters(Place place, std::size_t i, std::size_t at) {
  const Turning first = _mm512_castps128_ps512(_mm_loadu_ps(place(i) + at));
  const Turning two = _mm512_insertf32x4(first, _mm_loadu_ps(place(4 + i) + at), 1);
  const Turning three = _mm512_insertf32x4(two, _mm_loadu_ps(place(8 + i) + at), 2);
  return _mm512_insertf32x4(three, _mm_loadu_ps(place(12 + i) + at), 3);
}
#else
typedef __m256 Turning;
template <class Place> [[gnu::always_inline]] inline Turning load_quarters(Place place, std::size_t i, std::size_t at) {
  return _mm256_insertf128_ps(_mm256_castps128_ps256(_mm_loadu_ps(place(i) + at)), _mm_loadu_ps(place(4 + i) + at), 1);
}
#endif

// Four by four within each of them.
inline void turn_quarters(const Turning (&from)[4], Pack<float>* to) {
#if defined(__AVX512F__)
  const auto lower = [](Turning a, Turning b) { return _mm512_castps_pd(_mm512_unpacklo_ps(a, b)); };
  const auto upper = [](Turning a, Turning b) { return _mm512_castps_pd(_mm512_unpackhi_ps(a, b)); };
  const auto put = [to](std::size_t i, __m512d a, __m512d b) {
    to[i] = Pack<float>(_mm512_castpd_ps(_mm512_unpacklo_pd(a, b)));
    to[i + 1] = Pack<float>(_mm512_castpd_ps(_mm512_unpackhi_pd(a, b)));
  };
#else
  const auto lower = [](Turning a, Turning b) { return _mm256_castps_pd(_mm256_unpacklo_ps(a, b)); };
  const auto upper = [](Turning a, Turning b) { return _mm256_castps_pd(_mm256_unpackhi_ps(a, b)); };
  const auto put = [to](std::size_t i, __m256d a, __m256d b) {
    to[i] = Pack<float>(_mm256_castpd_ps(_mm256_unpacklo_pd(a, b)));
    to[i + 1] = Pack<float>(_mm256_castpd_ps(_mm256_unpackhi_pd(a, b)));
  };
#endif
  put(0, lower(from[0], from[1]), lower(from[2], from[3]));
  put(2, upper(from[0], from[1]), upper(from[2], from[3]));
}
#endif

// A square block of the packs pack(0), pack(1), ..., turned.
template <class T, class Get> inline void turn_each(Get pack, Pack<T> (&block)[kLanes<T>]) {
  for (std::size_t i = 0; i < kLanes<T>; ++i) block[i] = pack(i);
  transpose<T>(block);
}

// The same of packs in memory, which begin at place(0), place(1), ... Of floats the loads put every four lanes into the
// quarter of a register where they belong, which leaves half of the work.
template <class T, class Place> [[gnu::always_inline]] inline void load_turned(Place place, Pack<T> (&block)[kLanes<T>]) {
#if defined(__AVX2__)
  if constexpr (std::is_same_v<decltype(place(0)), const float*>) {
#pragma GCC unroll 4
    for (std::size_t at = 0; at < kLanes<T>; at += 4) {
      Turning quarters[4];
#pragma GCC unroll 4
      for (std::size_t i = 0; i < 4; ++i) quarters[i] = load_quarters(place, i, at);
      turn_quarters(quarters, block + at);
    }
    return;
  }
#endif
  turn_each<T>([&](std::size_t i) { return load_as<T>(place(i)); }, block);
}

}  // namespace softorder
