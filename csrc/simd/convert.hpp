// From the formats in memory to packs and back: half and bfloat become float, exactly, and float is rounded
// to them, to the nearest, ties to even. Denormals, infinities and NaN are what they should be.
#pragma once

#include "formats.hpp"
#include "simd/pack.hpp"

namespace softorder {

typedef std::uint16_t Narrow __attribute__((vector_size(kPackBytes / 2)));  // as many as a pack of float has

inline Pack<float> widen(Narrow bits, BFloat) {
  return std::bit_cast<Pack<float>>(__builtin_convertvector(bits, Bits<float>) << 16);
}

// The upper half of what is below 2^16 is 0: no mask is needed where two halves are packed.
inline Narrow lower_halves(Bits<float> bits) {
#if defined(__AVX2__) && !defined(__AVX512F__)
  const __m256i both = (__m256i)bits;
  return Narrow(_mm_packus_epi32(_mm256_castsi256_si128(both), _mm256_extracti128_si256(both, 1)));
#else
  return __builtin_convertvector(bits, Narrow);
#endif
}

// NaN stays one: those of arithmetic, and of bfloats that were widened, have nothing in the half that is dropped.
inline Narrow narrow(Pack<float> values, BFloat) {
  const Bits<float> bits = std::bit_cast<Bits<float>>(values);
  return lower_halves((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

#if defined(__AVX512F__)
inline Pack<float> widen(Narrow bits, Half) { return Pack<float>(_mm512_cvtph_ps((__m256i)bits)); }
inline Narrow narrow(Pack<float> values, Half) { return Narrow(_mm512_cvtps_ph(values, _MM_FROUND_TO_NEAREST_INT)); }
#elif defined(__F16C__) && defined(__AVX2__)
inline Pack<float> widen(Narrow bits, Half) { return Pack<float>(_mm256_cvtph_ps((__m128i)bits)); }
inline Narrow narrow(Pack<float> values, Half) { return Narrow(_mm256_cvtps_ph(values, _MM_FROUND_TO_NEAREST_INT)); }
#else
// 2^112 moves the exponent from the place where half has it to that of float, for denormals too.
inline Pack<float> widen(Narrow narrow_bits, Half) {
  const Bits<float> bits = __builtin_convertvector(narrow_bits, Bits<float>), size = bits & 0x7fff;
  const Pack<float> scaled = std::bit_cast<Pack<float>>(size << 13) * 0x1p112f;
  const Bits<float> special = size >= 0x7c00 ? Bits<float>{} + 0x7f800000 : Bits<float>{};
  return std::bit_cast<Pack<float>>(std::bit_cast<Bits<float>>(scaled) | special | (bits & 0x8000) << 16);
}

// A size below 2^-14, added to 1/2, is rounded to a multiple of 2^-24, which is the lowest bit of half.
inline Narrow narrow(Pack<float> values, Half) {
  const Bits<float> bits = std::bit_cast<Bits<float>>(values), size = bits & 0x7fffffff;
  const Bits<float> normal = (size - (112 << 23) + 0xfff + (size >> 13 & 1)) >> 13;
  const Bits<float> tiny = std::bit_cast<Bits<float>>(std::bit_cast<Pack<float>>(size) + 0.5f) - 0x3f000000;
  Bits<float> result = size < (113 << 23) ? tiny : size < (143 << 23) ? normal : Bits<float>{} + 0x7c00;
  result = size > 0x7f800000 ? (size >> 13 & 0x3ff) | 0x7e00 : result;
  return __builtin_convertvector(result | (bits >> 16 & 0x8000), Narrow);
}
#endif

// A pack of T from consecutive scalars in memory, and back.
template <class T, class S> inline Pack<T> load_as(const S* from) {
  if constexpr (std::is_same_v<T, S>) {
    return load(from);
  } else {
    Narrow bits;
    std::memcpy(&bits, from, sizeof bits);
    return widen(bits, S{});
  }
}

template <class T, class S> inline void store_as(S* to, Pack<T> values) {
  if constexpr (std::is_same_v<T, S>) {
    store(to, values);
  } else {
    const Narrow bits = narrow(values, S{});
    std::memcpy(to, &bits, sizeof bits);
  }
}

// The same of `count` scalars, fewer than a pack has; the other lanes are 0.
template <class T, class S> inline Pack<T> load_some(const S* from, std::size_t count) {
  if constexpr (std::is_same_v<T, S>) return load_part(from, count, T(0));
  S list[kLanes<T>] = {};
  std::memcpy(list, from, count * sizeof(S));
  return load_as<T>(list);
}

template <class T, class S> inline void store_some(S* to, Pack<T> values, std::size_t count) {
  if constexpr (std::is_same_v<T, S>) return store_part(to, values, count);
  S list[kLanes<T>];
  store_as<T>(list, values);
  std::memcpy(to, list, count * sizeof(S));
}

// `count` scalars, a whole pack or fewer, and `filler` in the other lanes; and back.
template <class T, class S>
[[gnu::always_inline]] inline Pack<T> load_first(const S* from, std::size_t count, T filler) {
  if (count == kLanes<T>) return load_as<T>(from);
  if constexpr (std::is_same_v<T, S>) return load_part(from, count, filler);
  const Pack<T> some = load_some<T>(from, count);
  Pack<T> pack = Pack<T>{} + filler;
  std::memcpy(&pack, &some, count * sizeof(T));
  return pack;
}

template <class T, class S> [[gnu::always_inline]] inline void store_first(S* to, Pack<T> values, std::size_t count) {
  if (count == kLanes<T>) return store_as<T>(to, values);
  store_some<T>(to, values, count);
}

// n consecutive scalars of one format in the other.
template <class T, class S> void read_all(const S* from, std::size_t n, T* to) {
  std::size_t i = 0;
  for (; i + kLanes<T> <= n; i += kLanes<T>) store(to + i, load_as<T>(from + i));
  if (i == n) return;
  const Pack<T> values = load_some<T>(from + i, n - i);
  std::memcpy(to + i, &values, (n - i) * sizeof(T));
}

template <class T, class S> void write_all(S* to, std::size_t n, const T* from) {
  std::size_t i = 0;
  for (; i + kLanes<T> <= n; i += kLanes<T>) store_as<T>(to + i, load(from + i));
  if (i < n) store_some<T>(to + i, load_part(from + i, n - i, T(0)), n - i);
}

}  // namespace softorder
