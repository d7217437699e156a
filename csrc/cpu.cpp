// Which SIMD level this CPU can run: a library of its own, built for the oldest CPU and with nothing
// else in it, since it is opened before that is known.
#include <cstdint>

#if defined(__x86_64__)
#include <cpuid.h>

namespace {

// The registers of the x86-64 instruction CPUID.
struct Answer {
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
};

Answer ask(unsigned leaf) {
  Answer answer;
  __get_cpuid_count(leaf, 0, &answer.eax, &answer.ebx, &answer.ecx, &answer.edx);
  return answer;
}

bool all(unsigned flags, unsigned wanted) { return (flags & wanted) == wanted; }

// Which registers the operating system saves when it changes threads.
unsigned saved_registers() {
  unsigned low, high;
  asm volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return low;
}

// The flags of CMakeLists.txt, one for one.
const char* widest_level() {
  constexpr unsigned kSaveAvx = 0x06, kSaveAvx512 = 0xe6;
  const Answer basic = ask(1), extended = ask(7);
  if (!all(basic.ecx, bit_OSXSAVE | bit_AVX | bit_FMA | bit_F16C)) return "baseline";
  const unsigned saved = saved_registers();
  if (!all(saved, kSaveAvx) || !all(extended.ebx, bit_AVX2 | bit_BMI | bit_BMI2)) return "baseline";
  const unsigned wide = bit_AVX512F | bit_AVX512BW | bit_AVX512CD | bit_AVX512DQ | bit_AVX512VL;
  return all(saved, kSaveAvx512) && all(extended.ebx, wide) ? "avx512" : "avx2";
}

}  // namespace

#else

namespace {

const char* widest_level() { return "baseline"; }

}  // namespace

#endif

extern "C" __attribute__((visibility("default"))) const char* softorder_cpu_level() { return widest_level(); }
