// The arguments of the sort kernel; kernels/sort/cpu.py mirrors them field by field.
#pragma once

#include <cstddef>
#include <cstdint>

#include "formats.hpp"

namespace softorder {

// Matrices are dense, rows × n or (see ragged.hpp) in rows of their own lengths, in the given format.
struct Sort {
  const void* scores;
  void* values;
  std::int64_t* order;
  const std::int64_t* offsets;  // may be null: rows of different lengths, n is not used
  std::size_t rows, n;
  std::int32_t format, threads;
};

}  // namespace softorder
