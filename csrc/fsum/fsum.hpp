// The arguments of the F-sum kernels; kernels/fsum/cpu.py mirrors these structs field by field.
#pragma once

#include <cstddef>
#include <cstdint>

namespace softorder {

// Matrices are dense, of float (wide = 0) or double (wide = 1), rows × m for sources and rows × n for targets, or
// (see ragged.hpp) in rows of their own lengths, both of them. A stride is 1, or 0 when one number serves every
// row; that of the levels is n or 0.
struct Fsum {
  const void* sources;
  const void* source_rest;  // may be null, like every rest, weights and counts
  const void* targets;
  const void* target_rest;
  const void* weights;
  const double* temperature;
  const std::int64_t* source_count;
  const std::int64_t* target_count;
  const std::int64_t* source_offsets;  // may be null: rows of different lengths, m and n are not used
  const std::int64_t* target_offsets;
  void* out;
  std::size_t rows, m, n, temperature_stride, source_count_stride, target_count_stride;
  std::int32_t density, derivative, moment, wide, threads;
};

struct FsumInvert {
  const void* sources;
  const double* levels;
  const double* temperature;
  const std::int64_t* count;
  const std::int64_t* source_offsets;  // as above
  const std::int64_t* target_offsets;  // of levels and roots
  void* centre;  // roots t = centre + rest
  void* rest;
  std::size_t rows, m, n, level_stride, temperature_stride, count_stride;
  std::int32_t density, wide, threads;
};

}  // namespace softorder
