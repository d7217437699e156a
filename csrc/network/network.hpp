// The arguments of the soft comparator networks; kernels/network/cpu.py mirrors this struct.
#pragma once

#include <cstddef>
#include <cstdint>

namespace softorder {

// kernels/network/comparators.py has the same list.
enum class Comparator : std::int32_t {
  logistic, cauchy, reciprocal, optimal, gaussian, logistic_phi_quarter, logistic_phi_half
};

// Scores, out and upstream are of float (wide = 0) or double (wide = 1), dense. The results of a row
// are its k selected values, or the k × n rows of its permutation (matrix = 1).
struct Network {
  const void* scores;            // rows × n
  const double* temperature;
  const std::int32_t* count;     // per row: wires from here on swap nothing; may be null
  const std::int32_t* low;       // the wires of the comparators, in the order in which they run;
  const std::int32_t* high;      // the larger value goes to the high wire
  const std::int32_t* outputs;   // the wires of the k results
  const void* upstream;          // null for the forward pass; for the backward pass, as the results
  void* out;                     // the results; or the gradients of the scores, rows × n
  std::size_t rows, n, k, size, temperature_stride;
  std::int32_t comparator, matrix, descending, wide, threads;
};

}  // namespace softorder
