// Sorting a row: scores become 64-bit words, order-preserving key above index, and a radix sort
// orders the words. The index makes every word different, so the order is stable by itself.
//
// A long row is first dealt out by its leading bits into buckets that fit into a cache, by all
// threads; then every bucket is sorted by itself. Keys count from the smallest key of the row, so
// that narrow rows have few bits. What does not fit beside the index (of float64 keys only) is cut
// off, and the few words that then look equal are put right at the end.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <utility>

#include "scratch.hpp"
#include "team.hpp"

namespace softorder {

using Word = std::uint64_t;

// Floating-point numbers by their bits: sign, exponent, mantissa. kInfinity has all exponent bits.
template <class B, B infinity> struct Format {
  using Bits = B;
  using Key = B;
  static constexpr Bits kSign = Bits(Bits(1) << (8 * sizeof(Bits) - 1));
  static constexpr Bits kInfinity = infinity;

  // Ascends with the number; -0 and +0 are the same, and so is every NaN, above everything else.
  static Key key(Bits bits) {
    const Bits magnitude = Bits(bits & Bits(~kSign));
    const Key ordered = bits & kSign ? Key(~bits) : Key(bits | kSign);
    if (magnitude > kInfinity) return std::numeric_limits<Key>::max();
    return magnitude == 0 ? Key(kSign) : ordered;
  }
  // Whether the key does not tell which bits it came from.
  static bool ambiguous(Key key) { return key == kSign || key == std::numeric_limits<Key>::max(); }
  static Bits bits(Key key) { return key & kSign ? Bits(key & Bits(~kSign)) : Bits(~key); }
};
using Float16 = Format<std::uint16_t, 0x7c00>;
using BFloat16 = Format<std::uint16_t, 0x7f80>;
using Float32 = Format<std::uint32_t, 0x7f800000>;
using Float64 = Format<std::uint64_t, 0x7ff0000000000000>;

template <class F> class RowSorter {
 public:
  using Bits = typename F::Bits;
  using Key = typename F::Key;

  // Two buffers of n words each.
  RowSorter(Word* words, Word* others, Team team) : words_(words), others_(others), team_(team) {}

  // Calls emit(place, key, index) for every place of the sorted row, from several threads.
  template <class Emit> void sort(const Bits* row, std::size_t n, Emit emit) {
    if (n == 0) return;
    row_ = row;
    find_range(n);
    if (n > kCached) return sort_long(n, emit);
    for (std::size_t i = 0; i < n; ++i) words_[i] = word(row[i], i);
    sort_bucket(0, n, key_bits_, emit);
  }

 private:
  static constexpr std::size_t kCached = 32768;  // words that two buffers of a core's cache hold
  static constexpr int kMostDigit = 11;
  static constexpr std::size_t kMostDigits = std::size_t(1) << kMostDigit;
  static constexpr std::size_t kFew = 24;  // sorted by insertion
  static constexpr int kSpareBits = 8;     // for the sign and the exponent, which few values share

  Word word(Bits bits, std::size_t i) const {
    return Word(Word(Key(F::key(bits) - lowest_)) >> dropped_bits_) << index_bits_ | i;
  }

  // The smallest key, how many bits the others need above it, and how many of them are kept.
  void find_range(std::size_t n) {
    Key low[Team::kMost], high[Team::kMost];
    team_.split(n, [&](std::size_t begin, std::size_t end, int member) {
      Key least = std::numeric_limits<Key>::max(), most = 0;
      for (std::size_t i = begin; i < end; ++i) {
        const Key key = F::key(row_[i]);
        least = std::min(least, key), most = std::max(most, key);
      }
      low[member] = least, high[member] = most;
    });
    lowest_ = *std::min_element(low, low + team_.size);
    const Key highest = *std::max_element(high, high + team_.size);
    index_bits_ = std::bit_width(n - 1);
    const int bits = std::bit_width(Key(highest - lowest_));
    key_bits_ = std::min(bits, 64 - index_bits_);
    dropped_bits_ = bits - key_bits_;
  }

  template <class Emit> void sort_long(std::size_t n, Emit emit) {
    const int leading = std::min(kMostDigit, key_bits_), rest = key_bits_ - leading;
    const int shift = rest + index_bits_;
    const std::size_t digits = std::size_t(1) << leading;
    Vector<std::size_t> places(digits * std::size_t(team_.size));
    team_.split(n, [&](std::size_t begin, std::size_t end, int member) {
      std::size_t* count = places.data() + digits * std::size_t(member);
      for (std::size_t i = begin; i < end; ++i) ++count[word(row_[i], 0) >> shift];
    });
    Vector<std::size_t> starts(digits + 1);
    place_buckets(places.data(), starts.data(), digits);
    team_.split(n, [&](std::size_t begin, std::size_t end, int member) {
      std::size_t* place = places.data() + digits * std::size_t(member);
      for (std::size_t i = begin; i < end; ++i) {
        const Word next = word(row_[i], i);
        words_[place[next >> shift]++] = next;
      }
    });
    team_.split(n, [&](std::size_t begin, std::size_t end, int) {
      // the buckets that begin in this member's part
      std::size_t digit = std::size_t(std::lower_bound(starts.data(), starts.data() + digits, begin) - starts.data());
      for (; digit < digits && starts[digit] < end; ++digit) {
        sort_bucket(starts[digit], starts[digit + 1], rest, emit);
      }
    });
  }

  // Counts become the places where every member puts the words of every bucket.
  void place_buckets(std::size_t* counts, std::size_t* starts, std::size_t digits) const {
    std::size_t place = 0;
    for (std::size_t digit = 0; digit < digits; ++digit) {
      starts[digit] = place;
      for (int member = 0; member < team_.size; ++member) {
        place += std::exchange(counts[digits * std::size_t(member) + digit], place);
      }
    }
    starts[digits] = place;
  }

  // Sorts words_[begin, end), whose keys agree in all but the lowest `bits`.
  template <class Emit> void sort_bucket(std::size_t begin, std::size_t end, int bits, Emit emit) {
    const std::size_t n = end - begin;
    Word* from = sorted(words_ + begin, others_ + begin, n, bits);
    if (dropped_bits_ > 0) mend(from, n);
    const Word index_mask = (Word(1) << index_bits_) - 1;
    for (std::size_t i = 0; i < n; ++i) {
      const Word next = from[i];
      const std::size_t index = next & index_mask;
      const Key key = dropped_bits_ > 0 ? F::key(row_[index]) : Key(Key(next >> index_bits_) + lowest_);
      emit(begin + i, key, index);
    }
  }

  // The sorted words, in one of the two buffers. The leading bits of n random keys tell almost all
  // of them apart: a radix sort by these, and a few steps of insertion for the rest.
  Word* sorted(Word* from, Word* to, std::size_t n, int bits) const {
    if (n > std::numeric_limits<std::uint32_t>::max()) return std::sort(from, from + n), from;
    const int enough = std::bit_width(n) + (bits == key_bits_ ? kSpareBits : 2);
    const int skipped = n <= kFew ? bits : std::max(0, bits - enough);
    Word* const other[2] = {from, to};
    if (skipped < bits) from = radix_sort(from, to, n, skipped, bits);
    if (skipped == 0 || insertion_sort(from, n, n <= kFew ? n : 4)) return from;
    return radix_sort(from, other[from == other[0]], n, 0, bits);
  }

  // Gives up when it takes more than `most` steps per word.
  static bool insertion_sort(Word* words, std::size_t n, std::size_t most) {
    std::size_t steps = 0;
    for (std::size_t i = 1; i < n; ++i) {
      const Word next = words[i];
      std::size_t j = i;
      for (; j > 0 && words[j - 1] > next; --j) words[j] = words[j - 1];
      words[j] = next;
      steps += i - j;
      if (steps > most * n) return false;
    }
    return true;
  }

  // Sorts by the bits [first, last) of the keys; the result is where it says.
  Word* radix_sort(Word* from, Word* to, std::size_t n, int first, int last) const {
    const int bits = last - first, most = n < 2048 ? 9 : kMostDigit;
    const int passes = (bits + most - 1) / most;
    const int digit_bits = (bits + passes - 1) / passes;
    const std::size_t digits = std::size_t(1) << digit_bits;
    constexpr int kMostPasses = 8;
    std::uint32_t counts[kMostPasses * kMostDigits];
    static_assert(kMostPasses * 8 >= 64);
    std::fill(counts, counts + digits * std::size_t(passes), 0);
    for (std::size_t i = 0; i < n; ++i) {
      Word key = from[i] >> (index_bits_ + first);
      for (int pass = 0; pass < passes; ++pass, key >>= digit_bits) {
        ++counts[digits * std::size_t(pass) + (key & (digits - 1))];
      }
    }
    for (int pass = 0; pass < passes; ++pass) {
      std::uint32_t* count = counts + digits * std::size_t(pass);
      const int shift = index_bits_ + first + pass * digit_bits;
      if (count[from[0] >> shift & (digits - 1)] == n) continue;  // all have the same digit
      std::uint32_t place = 0;
      for (std::size_t digit = 0; digit < digits; ++digit) place += std::exchange(count[digit], place);
      for (std::size_t i = 0; i < n; ++i) to[count[from[i] >> shift & (digits - 1)]++] = from[i];
      std::swap(from, to);
    }
    return from;
  }

  // Words with the same part of their keys are in order of index: now order them by the whole key.
  void mend(Word* words, std::size_t n) const {
    const Word index_mask = (Word(1) << index_bits_) - 1;
    for (std::size_t i = 0; i < n;) {
      std::size_t end = i + 1;
      while (end < n && words[end] >> index_bits_ == words[i] >> index_bits_) ++end;
      if (end > i + 1) {
        std::sort(words + i, words + end, [&](Word a, Word b) {
          const Key key_a = F::key(row_[a & index_mask]), key_b = F::key(row_[b & index_mask]);
          return key_a != key_b ? key_a < key_b : a < b;
        });
      }
      i = end;
    }
  }

  Word* words_;
  Word* others_;
  Team team_;
  const Bits* row_ = nullptr;
  Key lowest_ = 0;
  int index_bits_ = 0, key_bits_ = 0, dropped_bits_ = 0;
};

}  // namespace softorder
