// Short rows side by side, one per lane: summing and sorting all of them at once.
#pragma once

#include "simd/turn.hpp"

namespace softorder {

// The sums of the lanes of every pack, that of pack i in lane i; pairwise, so that equal lanes lose nothing. Two packs
// become one, with sums of halves of either in every second lane, until all are in one.
template <class T> inline Pack<T> sum_each(Pack<T> (&packs)[kLanes<T>]) {
  const Interleaved<T> from;
#pragma GCC unroll 4
  for (std::size_t half = kLanes<T> / 2; half > 0; half /= 2) {
#pragma GCC unroll 8
    for (std::size_t i = 0; i < half; ++i) {
      const Pack<T> first = packs[i], second = packs[i + half];
      packs[i] = shuffle<T>(first, second, from.lower) + shuffle<T>(first, second, from.upper);
    }
  }
  return packs[0];
}

// ---- sorting networks: the same comparators for all lanes, and no branches

template <class T> inline void compare(Pack<T>& first, Pack<T>& second) {
  const Pack<T> a = first, b = second;
  first = larger<T>(a, b), second = smaller<T>(a, b);
}

// Batcher's odd-even merge of the two halves of v[0], v[kStride], ..., v[kSize - kStride].
template <class T, std::size_t kSize, std::size_t kStride> inline void merge_halves(Pack<T>* v) {
  if constexpr (2 * kStride < kSize) {
    merge_halves<T, kSize, 2 * kStride>(v);
    merge_halves<T, kSize, 2 * kStride>(v + kStride);
#pragma GCC unroll 16
    for (std::size_t i = kStride; i + kStride < kSize; i += 2 * kStride) compare<T>(v[i], v[i + kStride]);
  } else {
    compare<T>(v[0], v[kStride]);
  }
}

template <class T, std::size_t kSize> inline void sort_network(Pack<T>* v) {
  if constexpr (kSize > 1) {
    sort_network<T, kSize / 2>(v);
    sort_network<T, kSize / 2>(v + kSize / 2);
    merge_halves<T, kSize, 1>(v);
  }
}

// Sorts v[0], ..., v[kSize - 1], which go down and then up, or up and then down.
template <class T, std::size_t kSize> inline void clean(Pack<T>* v) {
  if constexpr (kSize > 1) {
#pragma GCC unroll 16
    for (std::size_t i = 0; i < kSize / 2; ++i) compare<T>(v[i], v[i + kSize / 2]);
    clean<T, kSize / 2>(v);
    clean<T, kSize / 2>(v + kSize / 2);
  }
}

// As many as the registers hold: what is larger goes through memory once per level.
constexpr std::size_t kHeld = 16;

template <class T, class Work> inline void in_registers(Pack<T>* v, Work work) {
  Pack<T> held[kHeld];
#pragma GCC unroll 16
  for (std::size_t i = 0; i < kHeld; ++i) held[i] = v[i];
  work(held);
#pragma GCC unroll 16
  for (std::size_t i = 0; i < kHeld; ++i) v[i] = held[i];
}

template <class T> void clean_held(Pack<T>* v) {
  in_registers<T>(v, [](Pack<T>* held) { clean<T, kHeld>(held); });
}

// Sorts 32 packs of which the first 16 are in order.
template <class T> void sort_beside(Pack<T>* v) {
  in_registers<T>(v + kHeld, [v](Pack<T>* held) {
    sort_network<T, kHeld>(held);
#pragma GCC unroll 16
    for (std::size_t i = 0; i < kHeld; ++i) compare<T>(v[i], held[kHeld - 1 - i]);
    clean<T, kHeld>(held);
  });
  clean_held<T>(v);
}

// Sorts the lanes of v[0], ..., v[size - 1], the largest first; `size` is 16, 32 or 64. Every time that packs go through
// memory counts, so the first step of a merge of 32 finds one half in registers still, and the first two steps of one of
// 64 are one.
template <class T> void sort_lanes(Pack<T>* v, std::size_t size) {
  if (size == kHeld) return in_registers<T>(v, [](Pack<T>* held) { sort_network<T, kHeld>(held); });
  sort_lanes<T>(v, size / 2);
  if (size == 2 * kHeld) return sort_beside<T>(v);
  sort_lanes<T>(v + size / 2, size / 2);
  for (std::size_t i = 0, j = size - 1; i < kHeld; ++i, --j) {
    compare<T>(v[i], v[j]), compare<T>(v[i + kHeld], v[j - kHeld]);
    compare<T>(v[i], v[i + kHeld]), compare<T>(v[j - kHeld], v[j]);
  }
  for (std::size_t i = 0; i < size; i += kHeld) clean_held<T>(v + i);
}

}  // namespace softorder
