// All kernels of the library, and the interface by which they are called. This list is the only one on
// this side of the interface; src/softorder/kernels/_native.py has the other.
#pragma once

#include <cstddef>
#include <cstdint>

#include "failure.hpp"
#include "fsum/fsum.hpp"
#include "isotonic/isotonic.hpp"
#include "network/network.hpp"
#include "one_entry/one_entry.hpp"
#include "order/order.hpp"
#include "pairs/pairs.hpp"
#include "pareto/pareto.hpp"
#include "permutahedron/permutahedron.hpp"
#include "permutation/permutation.hpp"
#include "placement/placement.hpp"
#include "row_softmax/row_softmax.hpp"
#include "sort/sort.hpp"
#include "subsets/subsets.hpp"
#include "threshold/topk.hpp"
#include "transport/transport.hpp"

// X(name, its struct of arguments)
#define SOFTORDER_KERNELS(X)                \
  X(topk_forward, TopkForward)              \
  X(topk_backward, TopkBackward)            \
  X(sort, Sort)                             \
  X(fsum, Fsum)                             \
  X(fsum_invert, FsumInvert)                \
  X(soft_rank_forward, SoftOrder)           \
  X(soft_rank_backward, SoftOrder)          \
  X(soft_sort_forward, SoftOrder)           \
  X(soft_sort_backward, SoftOrder)          \
  X(permutation_forward, Permutation)       \
  X(permutation_backward, Permutation)      \
  X(placement_forward, Placement)           \
  X(placement_backward, Placement)          \
  X(isotonic, Isotonic)                     \
  X(projected_rank_forward, Permutahedron)  \
  X(projected_rank_backward, Permutahedron) \
  X(projected_sort_forward, Permutahedron)  \
  X(projected_sort_backward, Permutahedron) \
  X(network, Network)                       \
  X(row_softmax, RowSoftmax)                \
  X(one_entry_forward, OneEntryForward)     \
  X(one_entry_backward, OneEntryBackward)   \
  X(pairs, Pairs)                           \
  X(pareto_forward, ParetoForward)          \
  X(pareto_backward, ParetoBackward)        \
  X(subsets_forward, SubsetsForward)        \
  X(subsets_backward, SubsetsBackward)      \
  X(transport_solve, TransportSolve)        \
  X(transport_plan_forward, TransportPlan)  \
  X(transport_plan_backward, TransportPlan)

namespace softorder {

// Kernels throw; only what is exported does not.
#define SOFTORDER_DECLARE(name, Arguments) void name(const Arguments& a);
SOFTORDER_KERNELS(SOFTORDER_DECLARE)
#undef SOFTORDER_DECLARE

// To be raised whenever a struct of arguments changes its meaning, here and in native.py.
constexpr std::int32_t kInterface = 9;

// What a caller needs to know of a kernel.
struct Entry {
  const char* name;
  Outcome (*call)(const void* arguments) noexcept;
  std::size_t argument_bytes;
};

// What the library says of itself.
struct Library {
  std::int32_t interface;
  std::int32_t pack_bytes;  // the width of a vector register of this level
  const char* level;
  std::size_t count;
  const Entry* kernels;
};

}  // namespace softorder
