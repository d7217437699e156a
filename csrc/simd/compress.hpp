// Some lanes of packs: which of them bytes name, listing those, and putting a list back.
#pragma once

#include "simd/pack.hpp"

namespace softorder {

// The lanes whose bytes are not 0.
template <class T> inline Mask<T> named_lanes(const std::uint8_t* bytes) {
#if defined(__AVX512F__)
  if constexpr (is_single<T>) {
    return Mask<T>(_mm512_cvtepu8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(bytes)))) != 0;
  } else {
    return Mask<T>(_mm512_cvtepu8_epi64(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(bytes)))) != 0;
  }
#elif defined(__AVX2__)
  if constexpr (is_single<T>) {
    return Mask<T>(_mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(bytes)))) != 0;
  } else {
    std::int32_t four;
    std::memcpy(&four, bytes, sizeof four);
    return Mask<T>(_mm256_cvtepu8_epi64(_mm_cvtsi32_si128(four))) != 0;
  }
#else
  Mask<T> lanes;
  for (std::size_t i = 0; i < kLanes<T>; ++i) lanes[i] = bytes[i];
  return lanes != 0;
#endif
}

// The same of `count` bytes: the other lanes are not among them.
template <class T> inline Mask<T> named_lanes(const std::uint8_t* bytes, std::size_t count) {
  if (count == kLanes<T>) return named_lanes<T>(bytes);
  std::uint8_t some[kLanes<T>] = {};
  std::memcpy(some, bytes, count);
  return named_lanes<T>(some);
}

#if defined(__AVX2__) && !defined(__AVX512F__)
// For every set of the lanes of a pack, the 32-bit parts that belong to it, in order: AVX2 cannot
// compress, but it can permute. A byte holds an index.
template <class T> struct LaneSets {
  static constexpr std::size_t kParts = sizeof(T) / 4;
  std::uint64_t parts[1 << kLanes<T>] = {};
  constexpr LaneSets() {
    for (unsigned set = 0; set < (1u << kLanes<T>); ++set) {
      unsigned shift = 0;
      for (std::size_t lane = 0; lane < kLanes<T>; ++lane) {
        if (!(set >> lane & 1)) continue;
        for (std::size_t i = 0; i < kParts; ++i, shift += 8) {
          parts[set] |= std::uint64_t(kParts * lane + i) << shift;
        }
      }
    }
  }
};
template <class T> inline constexpr LaneSets<T> kLaneSets{};

// The way back: for every lane of a set, how many lanes of the set are before it.
template <class T> struct LanePlaces {
  static constexpr std::size_t kParts = sizeof(T) / 4;
  std::uint64_t parts[1 << kLanes<T>] = {};
  constexpr LanePlaces() {
    for (unsigned set = 0; set < (1u << kLanes<T>); ++set) {
      std::size_t before = 0;
      for (std::size_t lane = 0; lane < kLanes<T>; before += set >> lane & 1, ++lane) {
        for (std::size_t i = 0; i < kParts; ++i) {
          parts[set] |= std::uint64_t((kParts * before + i) % 8) << 8 * (kParts * lane + i);
        }
      }
    }
  }
};
template <class T> inline constexpr LanePlaces<T> kLanePlaces{};

inline __m256 permuted(__m256 values, std::uint64_t parts) {
  return _mm256_permutevar8x32_ps(values, _mm256_cvtepu8_epi32(_mm_cvtsi64_si128(static_cast<long long>(parts))));
}
#endif

// Appends the lanes of z that bits name to `list`, which needs room for a pack; returns how many.
template <class T> inline std::size_t append_named(T* list, Pack<T> z, unsigned bits) {
#if defined(__AVX512F__)
  if constexpr (is_single<T>) _mm512_storeu_ps(list, _mm512_maskz_compress_ps(__mmask16(bits), z));
  else _mm512_storeu_pd(list, _mm512_maskz_compress_pd(__mmask8(bits), z));
  return static_cast<std::size_t>(__builtin_popcount(bits));
#elif defined(__AVX2__)
  _mm256_storeu_ps(reinterpret_cast<float*>(list), permuted((__m256)z, kLaneSets<T>.parts[bits]));
  return static_cast<std::size_t>(__builtin_popcount(bits));
#else
  std::size_t kept = 0;
  for (std::size_t i = 0; i < kLanes<T>; ++i) {
    list[kept] = z[i];
    kept += bits >> i & 1;
  }
  return kept;
#endif
}

// The same of the lanes that a mask names.
template <class T> inline std::size_t append(T* list, Pack<T> z, Mask<T> wanted) {
  return append_named<T>(list, z, lane_bits<T>(wanted));
}

// The same of those where `value` is not above `limit`: AVX-512 compares into bits at once.
template <class T> inline std::size_t append_unless_above(T* list, Pack<T> z, Pack<T> value, Pack<T> limit) {
#if defined(__AVX512F__)
  if constexpr (is_single<T>) return append_named<T>(list, z, _mm512_cmp_ps_mask(value, limit, _CMP_NGT_UQ));
  else return append_named<T>(list, z, _mm512_cmp_pd_mask(value, limit, _CMP_NGT_UQ));
#else
  return append_named<T>(list, z, lane_bits<T>(value > limit) ^ ((1u << kLanes<T>) - 1));
#endif
}

// The way back: a pack with the first numbers of the list in the lanes that the mask names, and 0 in the
// others. All of a pack is read; `list` moves behind the numbers that were put.
template <class T> inline Pack<T> put_back(const T*& list, Mask<T> wanted) {
  const unsigned bits = lane_bits<T>(wanted);
  Pack<T> result;
#if defined(__AVX512F__)
  if constexpr (is_single<T>) result = Pack<T>(_mm512_maskz_expand_ps(__mmask16(bits), load(list)));
  else result = Pack<T>(_mm512_maskz_expand_pd(__mmask8(bits), load(list)));
#elif defined(__AVX2__)
  result = wanted ? (Pack<T>)permuted((__m256)load(list), kLanePlaces<T>.parts[bits]) : Pack<T>{};
#else
  for (std::size_t i = 0, next = 0; i < kLanes<T>; ++i) result[i] = bits >> i & 1 ? list[next++] : T(0);
#endif
  list += __builtin_popcount(bits);
  return result;
}

}  // namespace softorder
