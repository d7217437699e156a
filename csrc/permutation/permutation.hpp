// The arguments of the permutation kernels; kernels/permutation/cpu.py mirrors this struct.
#pragma once

#include <cstddef>
#include <cstdint>

namespace softorder {

// P_ji = F((t_{j+1} - x_i)/τ) - F((t_j - x_i)/τ) for k + 1 ascending thresholds t = centre + rest per
// row, the first and the last of which may be infinite. Scores, out and upstream are of
// float (wide = 0) or double (wide = 1).
struct Permutation {
  const void* scores;
  const double* centre;
  const double* rest;
  const double* temperature;
  void* out;             // forward: P, rows × k × n; backward: gradients of the scores, rows × n,
                         // with the thresholds moving as Σ_i F = const demands
  const void* upstream;  // backward only: rows × k × n
  std::size_t rows, k, n, temperature_stride;
  std::int32_t density, flip, wide, threads;  // flip: the rows of P from the last to the first
};

}  // namespace softorder
