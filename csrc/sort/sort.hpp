// The arguments of the sort kernel; kernels/sort/cpu.py mirrors them field by field.
#pragma once

#include <cstddef>
#include <cstdint>

#include "formats.hpp"

namespace softorder {

// Matrices are dense, rows × n, in the given format.
struct Sort {
  const void* scores;
  void* values;
  std::int64_t* order;
  std::size_t rows, n;
  std::int32_t format, threads;
};

}  // namespace softorder
