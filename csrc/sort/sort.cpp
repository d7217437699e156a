// Sorts the rows of a matrix.
#include "kernels.hpp"

#include "failure.hpp"
#include "ragged.hpp"
#include "sort/radix.hpp"
#include "scratch.hpp"

namespace softorder {
namespace {

template <class F> void run(const Sort& a) {
  using Bits = typename F::Bits;
  static_assert(sizeof(Word) == sizeof(std::int64_t));
  for_rows_of(a, [&](std::size_t begin, std::size_t end, Team team) {
    Scratch<Word> scratch(longest_of(a, begin, end));
    for (std::size_t row = begin; row < end; ++row) {
      const std::size_t first = begin_of(a, row);
      const Bits* scores = static_cast<const Bits*>(a.scores) + first;
      Bits* values = static_cast<Bits*>(a.values) + first;
      std::int64_t* order = a.order + first;
      // The place of the result serves as the other buffer: it is written behind where it is read.
      RowSorter<F> sorter(scratch.get(), reinterpret_cast<Word*>(order), team);
      sorter.sort(scores, length_of(a, row), [=](std::size_t place, typename F::Key key, std::size_t index) {
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
