// The arguments of the sort kernel; kernels/sort/cpu.py mirrors them field by field.
#pragma once

#include <cstddef>
#include <cstdint>

namespace softorder {

enum class FloatFormat : std::int32_t { float16, bfloat16, float32, float64 };

// Matrices are dense, rows × n, in the given format.
struct Sort {
  const void* scores;
  void* values;
  std::int64_t* order;
  std::size_t rows, n;
  std::int32_t format, threads;
};

}  // namespace softorder
