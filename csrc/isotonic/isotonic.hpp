// The arguments of the isotonic kernel; kernels/isotonic/cpu.py mirrors them field by field.
#pragma once

#include <cstddef>
#include <cstdint>

namespace softorder {

// Matrices are dense, rows × n, of float (wide = 0) or double (wide = 1).
struct Isotonic {
  const void* s;
  const void* w;
  std::int64_t* first;  // of every place: the first place of its block
  std::size_t rows, n;
  std::int32_t entropic, wide, threads;
};

}  // namespace softorder
