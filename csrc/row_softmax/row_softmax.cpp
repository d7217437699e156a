// Rows of SoftSort's and NeuralSort's permutations, and their vector-Jacobian products.
//
// Descending, with a_j the j-th largest score, j = 1, ... (ascending: the same of -x):
//
//   SoftSort     P_ji = softmax_i(-|a_j - x_i|/τ)
//   NeuralSort   P_ji = softmax_i(((n + 1 - 2j) x_i - Σ_l |x_i - x_l|)/τ)
#include "kernels.hpp"

#include "failure.hpp"
#include "row_softmax/neuralsort.hpp"
#include "row_softmax/softsort.hpp"
#include "team.hpp"

namespace softorder {
namespace {

template <class T, class Family> void run(const RowSoftmax& a) {
  const NoDenormals guard;
  const auto negate = [&](const T* from, T* to) {
    for (std::size_t i = 0; i < a.n; ++i) to[i] = -from[i];
  };
  for_rows(a.rows, a.n * std::max<std::size_t>(a.k, 1), a.threads, [&](std::size_t begin, std::size_t end, Team team) {
    Family family(a);
    const Scratch<T> negative(a.descending ? 0 : a.n);
    for (std::size_t row = begin; row < end; ++row) {
      const T* x = static_cast<const T*>(a.scores) + row * a.n;
      if (!a.descending) negate(x, negative.get()), x = negative.get();
      const SoftmaxRow<T> scores(a, row, x);
      if (!a.upstream) {
        family.forward(scores, team);
        continue;
      }
      T* const gradient = static_cast<T*>(a.gradient) + row * a.n;
      family.backward(scores, gradient);
      if (!a.descending) negate(gradient, gradient);
    }
  });
}

template <class T> void run(const RowSoftmax& a) {
  if (a.n == 0) return;
  switch (static_cast<RowSoftmaxFamily>(a.family)) {
    case RowSoftmaxFamily::softsort: return run<T, SoftSort<T>>(a);
    case RowSoftmaxFamily::neuralsort: return run<T, NeuralSort<T>>(a);
  }
  throw unknown_choice();
}

}  // namespace

void row_softmax(const RowSoftmax& a) { return a.wide ? run<double>(a) : run<float>(a); }

}  // namespace softorder
