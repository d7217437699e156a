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

// The format that a kernel computes in, as the structs of arguments have it.
template <class T> constexpr std::int32_t format_of() {
  return static_cast<std::int32_t>(sizeof(T) == 8 ? FloatFormat::float64 : FloatFormat::float32);
}

}  // namespace softorder
