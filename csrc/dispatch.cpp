// The exported C functions: they call the widest SIMD level that this machine can run.
#include <cstring>
#include <cstdlib>

#include "fsum.hpp"
#include "isotonic.hpp"
#include "network.hpp"
#include "order.hpp"
#include "permutahedron.hpp"
#include "permutation.hpp"
#include "row_softmax.hpp"
#include "sort.hpp"
#include "topk.hpp"

namespace softorder {
namespace {

struct Level {
  const char* name;
  int (*topk_forward)(const TopkForward&);
  int (*topk_backward)(const TopkBackward&);
  int (*sort)(const Sort&);
  int (*fsum)(const Fsum&);
  int (*fsum_invert)(const FsumInvert&);
  int (*soft_rank_forward)(const SoftOrder&);
  int (*soft_rank_backward)(const SoftOrder&);
  int (*soft_sort_forward)(const SoftOrder&);
  int (*soft_sort_backward)(const SoftOrder&);
  int (*permutation_forward)(const Permutation&);
  int (*permutation_backward)(const Permutation&);
  int (*isotonic)(const Isotonic&);
  int (*projected_rank_forward)(const Permutahedron&);
  int (*projected_rank_backward)(const Permutahedron&);
  int (*projected_sort_forward)(const Permutahedron&);
  int (*projected_sort_backward)(const Permutahedron&);
  int (*network)(const Network&);
  int (*row_softmax)(const RowSoftmax&);
};

#define SOFTORDER_LEVEL_OF(level)                                      \
  Level {                                                              \
    #level, level::topk_forward, level::topk_backward, level::sort,    \
        level::fsum, level::fsum_invert, level::soft_rank_forward,     \
        level::soft_rank_backward, level::soft_sort_forward,           \
        level::soft_sort_backward, level::permutation_forward,         \
        level::permutation_backward, level::isotonic,                  \
        level::projected_rank_forward, level::projected_rank_backward, \
        level::projected_sort_forward, level::projected_sort_backward, \
        level::network, level::row_softmax                             \
  }
constexpr Level kBaseline = SOFTORDER_LEVEL_OF(baseline);
#if SOFTORDER_HAVE_X86_LEVELS
constexpr Level kAvx2 = SOFTORDER_LEVEL_OF(avx2);
constexpr Level kAvx512 = SOFTORDER_LEVEL_OF(avx512);
#endif

// SOFTORDER_SIMD=baseline|avx2|avx512 asks for a narrower level than the machine's, for tests.
Level choose() {
#if SOFTORDER_HAVE_X86_LEVELS
  const char* wanted = std::getenv("SOFTORDER_SIMD");
  const bool any = wanted == nullptr || *wanted == '\0';
  if (!any && std::strcmp(wanted, "baseline") == 0) return kBaseline;
  __builtin_cpu_init();
  const bool has_avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
                        __builtin_cpu_supports("bmi2");
  const bool has_avx512 = has_avx2 && __builtin_cpu_supports("avx512f") &&
                          __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512bw") &&
                          __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512cd");
  if (has_avx512 && (any || std::strcmp(wanted, "avx512") == 0)) return kAvx512;
  if (has_avx2) return kAvx2;
#endif
  return kBaseline;
}

const Level kLevel = choose();

}  // namespace
}  // namespace softorder

#if defined(_WIN32)
#define SOFTORDER_EXPORT extern "C" __declspec(dllexport)
#else
#define SOFTORDER_EXPORT extern "C" __attribute__((visibility("default")))
#endif

SOFTORDER_EXPORT const char* softorder_level() { return softorder::kLevel.name; }

SOFTORDER_EXPORT int softorder_topk_forward(const softorder::TopkForward* arguments) {
  return softorder::kLevel.topk_forward(*arguments);
}

SOFTORDER_EXPORT int softorder_topk_backward(const softorder::TopkBackward* arguments) {
  return softorder::kLevel.topk_backward(*arguments);
}

SOFTORDER_EXPORT int softorder_sort(const softorder::Sort* arguments) {
  return softorder::kLevel.sort(*arguments);
}

SOFTORDER_EXPORT int softorder_fsum(const softorder::Fsum* arguments) {
  return softorder::kLevel.fsum(*arguments);
}

SOFTORDER_EXPORT int softorder_fsum_invert(const softorder::FsumInvert* arguments) {
  return softorder::kLevel.fsum_invert(*arguments);
}

SOFTORDER_EXPORT int softorder_soft_rank_forward(const softorder::SoftOrder* arguments) {
  return softorder::kLevel.soft_rank_forward(*arguments);
}

SOFTORDER_EXPORT int softorder_soft_rank_backward(const softorder::SoftOrder* arguments) {
  return softorder::kLevel.soft_rank_backward(*arguments);
}

SOFTORDER_EXPORT int softorder_soft_sort_forward(const softorder::SoftOrder* arguments) {
  return softorder::kLevel.soft_sort_forward(*arguments);
}

SOFTORDER_EXPORT int softorder_soft_sort_backward(const softorder::SoftOrder* arguments) {
  return softorder::kLevel.soft_sort_backward(*arguments);
}

SOFTORDER_EXPORT int softorder_permutation_forward(const softorder::Permutation* arguments) {
  return softorder::kLevel.permutation_forward(*arguments);
}

SOFTORDER_EXPORT int softorder_permutation_backward(const softorder::Permutation* arguments) {
  return softorder::kLevel.permutation_backward(*arguments);
}

SOFTORDER_EXPORT int softorder_isotonic(const softorder::Isotonic* arguments) {
  return softorder::kLevel.isotonic(*arguments);
}

SOFTORDER_EXPORT int softorder_projected_rank_forward(const softorder::Permutahedron* arguments) {
  return softorder::kLevel.projected_rank_forward(*arguments);
}

SOFTORDER_EXPORT int softorder_projected_rank_backward(const softorder::Permutahedron* arguments) {
  return softorder::kLevel.projected_rank_backward(*arguments);
}

SOFTORDER_EXPORT int softorder_projected_sort_forward(const softorder::Permutahedron* arguments) {
  return softorder::kLevel.projected_sort_forward(*arguments);
}

SOFTORDER_EXPORT int softorder_projected_sort_backward(const softorder::Permutahedron* arguments) {
  return softorder::kLevel.projected_sort_backward(*arguments);
}

SOFTORDER_EXPORT int softorder_network(const softorder::Network* arguments) {
  return softorder::kLevel.network(*arguments);
}

SOFTORDER_EXPORT int softorder_row_softmax(const softorder::RowSoftmax* arguments) {
  return softorder::kLevel.row_softmax(*arguments);
}
