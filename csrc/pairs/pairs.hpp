// The arguments of the kernel for pairs; kernels/pairs/cpu.py mirrors them field by field.
#pragma once

#include <cstddef>
#include <cstdint>

namespace softorder {

// Matrices are dense, rows × n, of float (wide = 0) or double (wide = 1); so are discount and bound.
struct Pairs {
  const void* x;         // what is compared
  const void* grades;    // who is preferred to whom; -inf for what takes no part
  const void* own;       // weights or gains of the elements; null: they are all 1
  const void* scores;    // their order gives the places; null: nobody asks
  const void* discount;  // of every place, n; null likewise
  const void* bound;     // of the distance of two places, n; null: it does not matter
  double* found;         // 3 × rows: the sums; of weights, or the gains in the best order; the numbers of pairs
  void* gradient;        // of the first of them; may be null
  std::size_t rows, n, first;  // first: two places behind so many have no bound
  std::int32_t weighing, hinge, wide, threads;
};

}  // namespace softorder
