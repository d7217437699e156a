// Rows of tensors, wherever they are and in whatever format: kernels compute with dense rows of T.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "failure.hpp"
#include "simd/compress.hpp"
#include "simd/convert.hpp"
#include "simd/turn.hpp"

namespace softorder {

// Where the rows of all operands are. `given` is what kernels/_layout.py packs: the number of axes that
// number the rows, their sizes, then for every operand its strides along these and, last, along a row.
// Strides count elements. Without it operands are dense, rows × n, or begin at `offsets`.
class Layout {
 public:
  Layout(const std::int64_t* given, std::size_t rows, std::size_t n, const std::int64_t* offsets = nullptr)
      : plain_{1, std::int64_t(rows), std::int64_t(n), 1}, given_(given), offsets_(offsets) {}

  const std::int64_t* strides(std::size_t operand) const {
    return given_ ? given_ + 1 + axes() + operand * (axes() + 1) : plain_ + 2;
  }
  std::ptrdiff_t step(const std::int64_t* strides) const { return strides[axes()]; }

  // Where a row begins. Short rows ask for it as often as they are read: no call, in the usual case.
  [[gnu::always_inline]] std::ptrdiff_t offset(std::size_t row, const std::int64_t* strides) const {
    return given_ || offsets_ ? given_offset(row, strides) : std::ptrdiff_t(row) * strides[0];
  }

  // Whether each row begins n elements behind the one before it.
  bool apart(const std::int64_t* strides, std::size_t n) const {
    return axes() == 1 && (strides[0] == std::int64_t(n) || size(0) == 1);
  }

  // How far the next row along the last axis is, and how many there are from this row on.
  std::ptrdiff_t beside(const std::int64_t* strides) const { return strides[axes() - 1]; }
  std::size_t neighbours(std::size_t row) const { return size(axes() - 1) - row % size(axes() - 1); }

 private:
  const std::int64_t* numbers() const { return given_ ? given_ : plain_; }
  std::size_t axes() const { return std::size_t(numbers()[0]); }
  std::size_t size(std::size_t axis) const { return std::size_t(numbers()[1 + axis]); }

  [[gnu::noinline]] std::ptrdiff_t given_offset(std::size_t row, const std::int64_t* strides) const {
    if (offsets_) return offsets_[row];
    std::ptrdiff_t offset = 0;
    std::size_t axis = axes() - 1;
    for (; axis > 0; --axis) {
      offset += std::ptrdiff_t(row % size(axis)) * strides[axis];
      row /= size(axis);
    }
    return offset + std::ptrdiff_t(row) * strides[0];
  }

  std::int64_t plain_[4];
  const std::int64_t *given_, *offsets_;
};

constexpr std::size_t kTogether = 16;  // rows that lie across the memory: so many share their cache lines
constexpr std::size_t kChunk = 1024;   // scores that are read, computed and written before the next ones

// Rows of scratch this far apart, an odd number of cache lines, do not meet in the same places of a cache.
inline std::size_t apart(std::size_t n) { return ((n + 15) / 16 | 1) * 16; }

// Calls work(begin, end) on [begin, end) as a whole, or chunk by chunk.
template <class Work> void in_chunks(bool whole, std::size_t begin, std::size_t end, Work work) {
  if (whole) return work(begin, end);
  for (; begin < end; begin += kChunk) work(begin, std::min(begin + kChunk, end));
}

// Rows of one tensor, of T or of a format narrower than T.
template <class T> class Matrix {
 public:
  Matrix(const void* data, FloatFormat format, const Layout& layout, std::size_t operand)
      : data_(const_cast<void*>(data)), format_(format), layout_(layout), strides_(layout.strides(operand)),
        step_(layout.step(strides_)) {}

  explicit operator bool() const { return data_ != nullptr; }

  // Whether rows can be used where they are.
  bool dense() const { return step_ == 1 && (sizeof(T) == 8 || format_ == FloatFormat::float32); }
  bool packed(std::size_t n) const { return dense() && layout_.apart(strides_, n); }
  [[gnu::always_inline]] T* row(std::size_t row) const {
    return static_cast<T*>(data_) + layout_.offset(row, strides_);
  }

  // Rows without gaps in the format that they have, S: work(first scalar) for one of them, or where it begins.
  bool gapless() const { return step_ == 1; }
  template <class Work> void with_row(std::size_t row, Work work) const {
    with_scalars([&](auto* scalars) { work(scalars + layout_.offset(row, strides_)); });
  }
  template <class S> S* row_of(std::size_t row) const { return static_cast<S*>(data_) + layout_.offset(row, strides_); }

  // Whether they lie across the memory, and are read sooner several at a time.
  bool across() const { return step_ != 1 && step_ != 0; }

  void read(std::size_t row, std::size_t begin, std::size_t end, T* to) const {
    with_scalars([&](auto* scalars) {
      auto* const from = scalars + layout_.offset(row, strides_) + std::ptrdiff_t(begin) * step_;
      if (step_ == 1) return read_all(from, end - begin, to);
      std::remove_reference_t<decltype(*from)> list[kList];
      for (std::size_t i = 0, n = end - begin; i < n; i += kList) {
        const std::size_t count = std::min(kList, n - i);
        for (std::size_t j = 0; j < count; ++j) list[j] = from[std::ptrdiff_t(i + j) * step_];
        read_all(list, count, to + i);
      }
    });
  }

  void write(std::size_t row, std::size_t begin, std::size_t end, const T* values) const {
    with_scalars([&](auto* scalars) {
      auto* const to = scalars + layout_.offset(row, strides_) + std::ptrdiff_t(begin) * step_;
      if (step_ == 1) return write_all(to, end - begin, values);
      std::remove_reference_t<decltype(*to)> list[kList];
      for (std::size_t i = 0, n = end - begin; i < n; i += kList) {
        const std::size_t count = std::min(kList, n - i);
        write_all(list, count, values + i);
        for (std::size_t j = 0; j < count; ++j) to[std::ptrdiff_t(i + j) * step_] = list[j];
      }
    });
  }

  // The part [begin, end) of several rows from or to a dense matrix, whose rows are `length` apart. A pack of
  // rows that are side by side is turned around its diagonal on the way.
  void read(std::size_t first, std::size_t count, std::size_t begin, std::size_t end, T* to, std::size_t length) const {
    each(first, count, [&](std::size_t row, std::size_t at) {
      read(row, begin, end, to + at * length + begin);
    }, [&](std::size_t row, std::size_t at, std::size_t side_by_side) {
      read_columns(row, side_by_side, begin, end, to + at * length, length);
    });
  }
  void write(std::size_t first, std::size_t count, std::size_t begin, std::size_t end, const T* from,
             std::size_t length) const {
    each(first, count, [&](std::size_t row, std::size_t at) {
      write(row, begin, end, from + at * length + begin);
    }, [&](std::size_t row, std::size_t at, std::size_t side_by_side) {
      write_columns(row, side_by_side, begin, end, from + at * length, length);
    });
  }

 private:
  static constexpr std::size_t kList = 256;

  template <class Work> void with_scalars(Work work) const {
    if constexpr (is_single<T>) {
      if (format_ == FloatFormat::float16) return work(static_cast<Half*>(data_));
      if (format_ == FloatFormat::bfloat16) return work(static_cast<BFloat*>(data_));
    }
    work(static_cast<T*>(data_));
  }

  // Calls some(row, place, count) for up to a pack of rows that are side by side, and one(row, place) for others.
  template <class One, class Some> void each(std::size_t first, std::size_t count, One one, Some some) const {
    const bool turned = across() && layout_.beside(strides_) == 1;
    for (std::size_t at = 0; at < count;) {
      const std::size_t together = std::min({layout_.neighbours(first + at), count - at, kLanes<T>});
      if (turned && together > 2) {
        some(first + at, at, together);
        at += together;
      } else {
        one(first + at, at);
        ++at;
      }
    }
  }

  void read_columns(std::size_t row, std::size_t count, std::size_t begin, std::size_t end, T* to,
                    std::size_t length) const {
    std::size_t i = begin;
    with_scalars([&](auto* scalars) {
      const auto* from = scalars + layout_.offset(row, strides_) + std::ptrdiff_t(begin) * step_;
      for (; i + kLanes<T> <= end; i += kLanes<T>) {
        Pack<T> block[kLanes<T>];
        const auto place = [=, this](std::size_t lane) { return from + std::ptrdiff_t(lane) * step_; };
        if (count == kLanes<T>) load_turned<T>(place, block);
        else turn_each<T>([&](std::size_t lane) { return load_some<T>(place(lane), count); }, block);
        from += std::ptrdiff_t(kLanes<T>) * step_;
        for (std::size_t j = 0; j < count; ++j) store(to + j * length + i, block[j]);
      }
    });
    if (i == end) return;
    for (std::size_t j = 0; j < count; ++j) read(row + j, i, end, to + j * length + i);
  }

  void write_columns(std::size_t row, std::size_t count, std::size_t begin, std::size_t end, const T* from,
                     std::size_t length) const {
    std::size_t i = begin;
    with_scalars([&](auto* scalars) {
      auto* to = scalars + layout_.offset(row, strides_) + std::ptrdiff_t(begin) * step_;
      for (; i + kLanes<T> <= end; i += kLanes<T>) {
        Pack<T> block[kLanes<T>];
        const auto place = [=](std::size_t j) { return from + j * length + i; };
        if (count == kLanes<T>) load_turned<T>(place, block);
        else turn_each<T>([&](std::size_t j) { return j < count ? load(place(j)) : Pack<T>{}; }, block);
        if (count == kLanes<T>) {
          for (const auto& pack : block) store_as<T>(to, pack), to += step_;
        } else {
          for (const auto& pack : block) store_some<T>(to, pack, count), to += step_;
        }
      }
    });
    if (i == end) return;
    for (std::size_t j = 0; j < count; ++j) write(row + j, i, end, from + j * length + i);
  }

  void* data_;
  FloatFormat format_;
  const Layout& layout_;
  const std::int64_t* strides_;
  std::ptrdiff_t step_;
};

// Which elements take part: bytes, 0 for those that do not.
class Participants {
 public:
  Participants(const std::uint8_t* data, const Layout& layout, std::size_t operand)
      : data_(data), layout_(layout), strides_(layout.strides(operand)), step_(layout.step(strides_)) {}

  explicit operator bool() const { return data_ != nullptr; }

  // Whether bytes can be used where they are, as many as there are in the row.
  bool dense() const { return step_ == 1; }
  // Whether the rows of n bytes are one behind another, too.
  bool packed(std::size_t n) const { return step_ == 1 && layout_.apart(strides_, n); }

  // Those of some elements, where they are or in the buffer.
  const std::uint8_t* bytes(std::size_t row, std::size_t begin, std::size_t end, std::uint8_t* buffer) const {
    const std::uint8_t* const first = data_ + layout_.offset(row, strides_) + std::ptrdiff_t(begin) * step_;
    if (step_ == 1) return first;
    if (step_ == 0) std::fill(buffer, buffer + (end - begin), *first);
    else for (std::size_t i = 0; i < end - begin; ++i) buffer[i] = first[std::ptrdiff_t(i) * step_];
    return buffer;
  }

  // Copies values, element `begin` and so on, with `filler` in the place of the others.
  template <class T>
  void copy(std::size_t row, std::size_t begin, std::size_t end, const T* from, T* to, T filler) const {
    in_chunks(dense(), begin, end, [&](std::size_t at, std::size_t stop) {
      std::uint8_t buffer[kChunk];
      copy_part(bytes(row, at, stop, buffer), from + (at - begin), to + (at - begin), stop - at, filler);
    });
  }

 private:
  template <class T>
  static void copy_part(const std::uint8_t* part, const T* from, T* to, std::size_t n, T filler) {
    const Pack<T> others = Pack<T>{} + filler;
    std::size_t i = 0;
    for (; i + kLanes<T> <= n; i += kLanes<T>) {
      store(to + i, named_lanes<T>(part + i) ? load(from + i) : others);
    }
    for (; i < n; ++i) to[i] = part[i] ? from[i] : filler;
  }

  const std::uint8_t* data_;
  const Layout& layout_;
  const std::int64_t* strides_;
  std::ptrdiff_t step_;
};

}  // namespace softorder
