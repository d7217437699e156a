// Sorts the rows of a matrix.
#include "kernels.hpp"

#include "failure.hpp"
#include "sort/radix.hpp"
#include "scratch.hpp"

namespace softorder {
namespace {

template <class F> void run(const Sort& a) {
  using Bits = typename F::Bits;
  static_assert(sizeof(Word) == sizeof(std::int64_t));
  for_rows(a.rows, a.n, a.threads, [&](std::size_t begin, std::size_t end, Team team) {
    Scratch<Word> scratch(a.n);
    for (std::size_t row = begin; row < end; ++row) {
      const Bits* scores = static_cast<const Bits*>(a.scores) + row * a.n;
      Bits* values = static_cast<Bits*>(a.values) + row * a.n;
      std::int64_t* order = a.order + row * a.n;
      // The place of the result serves as the other buffer: it is written behind where it is read.
      RowSorter<F> sorter(scratch.get(), reinterpret_cast<Word*>(order), team);
      sorter.sort(scores, a.n, [=](std::size_t place, typename F::Key key, std::size_t index) {
        values[place] = F::ambiguous(key) ? scores[index] : F::bits(key);
        order[place] = static_cast<std::int64_t>(index);
      });
    }
  });
}

}  // namespace

void sort(const Sort& a) {
  switch (static_cast<FloatFormat>(a.format)) {
    case FloatFormat::float16: return run<Float16>(a);
    case FloatFormat::bfloat16: return run<BFloat16>(a);
    case FloatFormat::float32: return run<Float32>(a);
    case FloatFormat::float64: return run<Float64>(a);
  }
  throw unknown_choice();
}

}  // namespace softorder
