// The arguments of the kernels for conditional Poisson laws; kernels/subsets/cpu.py mirrors them.
#pragma once

#include <cstddef>
#include <cstdint>

namespace softorder {

// Matrices are dense, of float (wide = 0) or double (wide = 1); draws hold 0 and 1.
struct SubsetsForward {
  const void* logits;  // rows × n
  const double* size;  // rows
  const void* draws;   // draws × rows × n
  void* b;             // 2 × rows: centres and rests of the shifts of the logits
  double* log_prob;    // draws × rows
  double* angle;       // rows × points
  double* weight;      // rows × points × 2: complex numbers
  std::size_t rows, n, count, points;  // count: of draws
  std::int32_t wide, threads;
};

struct SubsetsBackward {
  const void* logits;
  const double* size;
  const void* draws;
  const void* b;
  const double* angle;
  const double* weight;
  const double* upstream;  // draws × rows
  void* gradient;          // rows × n
  std::size_t rows, n, count, points;
  std::int32_t wide, threads;
};

}  // namespace softorder
