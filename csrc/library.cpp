// The one function that the library exports: what it is, and the table of its kernels. Every SIMD level
// is a library of its own, built from the same files; Python opens the one that this CPU can run.
#include <iterator>

#include "kernels.hpp"
#include "simd/pack.hpp"

namespace softorder {
namespace {

static_assert(kPackBytes == SOFTORDER_PACK_BYTES, "the compiler's flags do not give this level its registers");

template <class Arguments, void (*kernel)(const Arguments&)> Outcome call(const void* arguments) noexcept {
  return outcome_of([=] { kernel(*static_cast<const Arguments*>(arguments)); });
}

#define SOFTORDER_ENTRY(name, Arguments) {#name, call<Arguments, name>, sizeof(Arguments)},
constexpr Entry kKernels[] = {SOFTORDER_KERNELS(SOFTORDER_ENTRY)};
#undef SOFTORDER_ENTRY

constexpr Library kLibrary{kInterface, kPackBytes, SOFTORDER_LEVEL, std::size(kKernels), kKernels};

}  // namespace
}  // namespace softorder

extern "C" __attribute__((visibility("default"))) const softorder::Library* softorder_library() {
  return &softorder::kLibrary;
}
