// The arguments of the soft comparator networks; kernels/network/cpu.py mirrors this struct.
#pragma once

#include <cstddef>
#include <cstdint>

namespace softorder {

// kernels/network/comparators.py has the same list.
enum class Comparator : std::int32_t {
  logistic, cauchy, reciprocal, optimal, gaussian, logistic_phi_quarter, logistic_phi_half
};

// Scores, out, upstream and weights are of float (wide = 0) or double (wide = 1), dense. The results of a
// row are its k selected values, the k × n rows of its permutation (matrix = 1), or with weights their
// weighted sum, n numbers (matrix = 1, too).
struct Network {
  const void* scores;            // rows × n
  const double* temperature;
  const std::int32_t* count;     // per row: wires from here on swap nothing; may be null
  const std::int32_t* low;       // the wires of the comparators, in the order in which they run;
  const std::int32_t* high;      // the larger value goes to the high wire
  const std::int32_t* outputs;   // the wires of the k results
  const void* weights;           // rows × k, of the rows of the permutation; may be null
  const void* upstream;          // null for the forward pass; for the backward pass, as the results
  void* out;                     // the results; or the gradients of the scores, rows × n
  void* by_weights;              // backward, with weights: their gradients, rows × k
  std::size_t rows, n, k, size, temperature_stride;
  std::int32_t comparator, matrix, descending, wide, threads;
};

}  // namespace softorder
