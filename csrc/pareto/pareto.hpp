// The arguments of the kernels for Pareto sampling; kernels/pareto/cpu.py mirrors them field by field.
#pragma once

#include <cstddef>
#include <cstdint>

namespace softorder {

// Matrices are dense, of double; draws hold 0 and 1.
struct ParetoForward {
  const double* u;     // rows × n: logits whose chances sum to the size
  const double* size;  // rows
  const double* draws;   // draws × rows × n; null: there are none
  double* weights;     // rows × n: c; null: nobody asks
  double* log_prob;    // draws × rows
  double* taken;       // draws × rows: <c,x>
  std::size_t rows, n, count;  // count: of draws
  std::int32_t fine, threads;  // fine: whether less than 1e-16 is left out, or 1e-11
};

struct ParetoBackward {
  const double* u;
  const double* size;
  const double* shares;  // rows × n: upstream/<c,x> of the draws that have the unit, added up
  double* gradient;      // rows × n, but for what the draws say directly: levels.hpp
  std::size_t rows, n;
  std::int32_t fine, threads;
};

}  // namespace softorder
