// The float formats of tensors.
#pragma once

#include <cstdint>

namespace softorder {

enum class FloatFormat : std::int32_t { float16, bfloat16, float32, float64 };

// Two bytes in memory; simd/convert.hpp makes float of them.
struct Half {
  std::uint16_t bits;
};
struct BFloat {
  std::uint16_t bits;
};

}  // namespace softorder
