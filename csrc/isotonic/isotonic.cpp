// The blocks of isotonic regressions, for the rows of matrices.
#include "kernels.hpp"

#include <algorithm>

#include "isotonic/pool.hpp"

namespace softorder {
namespace {

template <class Level, class T> void run(const Isotonic& a) {
  for_rows(a.rows, a.n, a.threads, [&](std::size_t begin, std::size_t end, Team team) {
    Pool<Level> pool(a.n);
    Scratch<std::int32_t> starts(a.n);
    for (std::size_t row = begin; row < end; ++row) {
      const T* s = static_cast<const T*>(a.s) + row * a.n;
      const T* w = static_cast<const T*>(a.w) + row * a.n;
      std::int64_t* first = a.first + row * a.n;
      pool.run(a.n, [=](std::size_t j) { return Level::of(double(s[j]), double(w[j])); }, starts.get(), team);
      each_block(starts.get(), a.n, [=](std::size_t start, std::size_t last) {
        std::fill(first + start, first + last, static_cast<std::int64_t>(start));
      });
    }
  });
}

}  // namespace

void isotonic(const Isotonic& a) {
  if (a.entropic) return a.wide ? run<LogRatio, double>(a) : run<LogRatio, float>(a);
  return a.wide ? run<Mean, double>(a) : run<Mean, float>(a);
}

}  // namespace softorder
