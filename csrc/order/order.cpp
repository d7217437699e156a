// Soft ranks and soft sort of the rows of a matrix, with the Laplace density: sort, sum and put back
// in one go.
#include "kernels.hpp"

#include "order/laplace.hpp"
#include "sort/sorted_row.hpp"

namespace softorder {
namespace {

template <class T> T* row_of(const void* matrix, const SoftOrder& a, std::size_t row) {
  return static_cast<T*>(const_cast<void*>(matrix)) + row * a.n;
}

template <class T> struct Row : SortedRow<T> {
  double temperature;

  Row(const SoftOrder& a, std::size_t row)
      : SortedRow<T>(row_of<T>(a.values, a, row), a.order + row * a.n, a.n),
        temperature(a.temperature[row * a.temperature_stride]) {}

  LaplaceOrder<T> sums(Team team) const { return {this->finite_values(), this->finite, temperature, team}; }
};

template <class T> void write_ranks(const SoftOrder& a, std::size_t i, Team team) {
  const Row<T> row(a, i);
  T* out = row_of<T>(a.out, a, i);
  if (row.spoiled) return std::fill(out, out + a.n, kNan<T>);
  if (row.finite > 0) row.sums(team).ranks(row.finite_order(), out, a.descending, row.present());
  row.finish_ranks(out, a.descending);
}

template <class T> void write_rank_gradients(const SoftOrder& a, std::size_t i, Team team) {
  const Row<T> row(a, i);
  T* out = row_of<T>(a.out, a, i);
  if (row.spoiled || row.finite < a.n) std::fill(out, out + a.n, T(0));
  if (a.grad_temperature) a.grad_temperature[i] = 0;
  if (row.spoiled || row.finite == 0) return;
  const T* upstream = row_of<T>(a.upstream, a, i);
  row.sums(team).ranks_vjp(row.finite_order(), upstream, out, a.descending);
  if (!a.grad_temperature) return;
  a.grad_temperature[i] = row.sums(team).ranks_by_temperature(row.finite_order(), upstream, a.descending);
}

template <class T> typename LaplaceOrder<T>::Roots roots_of(const SoftOrder& a, std::size_t row, T* t) {
  return {t, a.segment + row * a.n, row_of<T>(a.rest, a, row), row_of<T>(a.slope, a, row)};
}

template <class T> void write_sorted(const SoftOrder& a, std::size_t i, Team team) {
  const Row<T> row(a, i);
  T* out = row_of<T>(a.out, a, i);
  if (row.spoiled) return std::fill(out, out + a.n, kNan<T>);
  if (row.finite > 0) row.sums(team).roots(roots_of<T>(a, i, out));
  std::fill(out + row.finite, out + a.n, kInfinity<T>);
  if (!a.descending) return;
  std::reverse(out, out + row.present());
  std::fill(out + row.present(), out + a.n, -kInfinity<T>);
}

template <class T> void write_sort_gradients(const SoftOrder& a, std::size_t i, Team team) {
  const Row<T> row(a, i);
  T* out = row_of<T>(a.out, a, i);
  if (row.spoiled || row.finite < a.n) std::fill(out, out + a.n, T(0));
  if (a.grad_temperature) a.grad_temperature[i] = 0;
  if (row.spoiled || row.finite == 0) return;
  const T* upstream = row_of<T>(a.upstream, a, i);
  Scratch<T> mirrored(a.descending ? a.n : 0);
  if (a.descending) {
    std::reverse_copy(upstream, upstream + row.present(), mirrored.get());
    upstream = mirrored.get();
  }
  const auto roots = roots_of<T>(a, i, nullptr);
  row.sums(team).roots_vjp(row.finite_order(), upstream, roots, out);
  if (a.grad_temperature) a.grad_temperature[i] = row.sums(team).roots_by_temperature(upstream, roots);
}

// Calls finish(a, row, team) for every row, which it has sorted before if there are scores.
template <class T, class Finish> void run(const SoftOrder& a, Finish finish) {
  for_rows(a.rows, a.n, a.threads, [&](std::size_t begin, std::size_t end, Team team) {
    Scratch<Word> words(a.scores ? 2 * a.n : 0);
    for (std::size_t row = begin; row < end; ++row) {
      if (a.scores) {
        T* values = row_of<T>(a.values, a, row);
        sort_row<T>(row_of<T>(a.scores, a, row), a.n, values, a.order + row * a.n, words.get(), team);
      }
      finish(a, row, team);
    }
  });
}

}  // namespace

void soft_rank_forward(const SoftOrder& a) {
  const NoDenormals guard;
  return a.wide ? run<double>(a, write_ranks<double>) : run<float>(a, write_ranks<float>);
}

void soft_rank_backward(const SoftOrder& a) {
  const NoDenormals guard;
  return a.wide ? run<double>(a, write_rank_gradients<double>) : run<float>(a, write_rank_gradients<float>);
}

void soft_sort_forward(const SoftOrder& a) {
  const NoDenormals guard;
  return a.wide ? run<double>(a, write_sorted<double>) : run<float>(a, write_sorted<float>);
}

void soft_sort_backward(const SoftOrder& a) {
  const NoDenormals guard;
  return a.wide ? run<double>(a, write_sort_gradients<double>) : run<float>(a, write_sort_gradients<float>);
}

}  // namespace softorder
