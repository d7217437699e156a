// Soft ranks and soft sort of the rows of a matrix, with the densities whose F-sums take linear time: sort, sum
// and put back in one go.
#include "kernels.hpp"

#include "in_range.hpp"
#include "order/densities.hpp"
#include "ragged.hpp"
#include "sort/sorted_row.hpp"

namespace softorder {
namespace {

template <class T> T* row_of(const void* matrix, const SoftOrder& a, std::size_t row) {
  return static_cast<T*>(const_cast<void*>(matrix)) + begin_of(a, row);
}

// Order: LaplaceOrder<T>, or that of another density.
template <class T, class Order> struct Row : SortedRow<T> {
  InRange<T> inside;

  Row(const SoftOrder& a, std::size_t row)
      : SortedRow<T>(row_of<T>(a.values, a, row), a.order + begin_of(a, row), length_of(a, row)),
        inside(this->finite_values(), this->finite, a.temperature[row * a.temperature_stride]) {}

  Order sums(Team team) const { return {inside.values(), this->finite, inside.temperature, team}; }
};

template <class T, class Order> void write_ranks(const SoftOrder& a, std::size_t i, Team team) {
  const Row<T, Order> row(a, i);
  T* out = row_of<T>(a.out, a, i);
  if (row.spoiled) return std::fill(out, out + row.n, kNan<T>);
  if (row.finite > 0) row.sums(team).ranks(row.finite_order(), out, a.descending, row.present());
  row.finish_ranks(out, a.descending);
}

template <class T, class Order> void write_rank_gradients(const SoftOrder& a, std::size_t i, Team team) {
  const Row<T, Order> row(a, i);
  T* out = row_of<T>(a.out, a, i);
  if (row.spoiled || row.finite < row.n) std::fill(out, out + row.n, T(0));
  if (a.grad_temperature) a.grad_temperature[i] = 0;
  if (row.spoiled || row.finite == 0) return;
  const T* upstream = row_of<T>(a.upstream, a, i);
  row.sums(team).ranks_vjp(row.finite_order(), upstream, out, a.descending);
  row.inside.put_back_gradients(out, row.n);
  if (!a.grad_temperature) return;
  const double heat = row.sums(team).ranks_by_temperature(row.finite_order(), upstream, a.descending);
  a.grad_temperature[i] = row.inside.factor * heat;
}

template <class T> Roots<T> roots_of(const SoftOrder& a, std::size_t row, T* t) {
  return {t, a.segment + begin_of(a, row), row_of<T>(a.rest, a, row), row_of<T>(a.slope, a, row)};
}

template <class T, class Order> void write_sorted(const SoftOrder& a, std::size_t i, Team team) {
  const Row<T, Order> row(a, i);
  T* out = row_of<T>(a.out, a, i);
  if (row.spoiled) return std::fill(out, out + row.n, kNan<T>);
  if (row.finite > 0) {
    const Roots<T> roots = roots_of<T>(a, i, out);
    row.sums(team).roots(sort_levels(row.finite), roots);
    row.inside.put_back(out, row.finite);
    row.inside.put_back(roots.rest, row.finite);
  }
  std::fill(out + row.finite, out + row.n, kInfinity<T>);
  if (!a.descending) return;
  std::reverse(out, out + row.present());
  std::fill(out + row.present(), out + row.n, -kInfinity<T>);
}

template <class T, class Order> void write_sort_gradients(const SoftOrder& a, std::size_t i, Team team) {
  const Row<T, Order> row(a, i);
  T* out = row_of<T>(a.out, a, i);
  if (row.spoiled || row.finite < row.n) std::fill(out, out + row.n, T(0));
  if (a.grad_temperature) a.grad_temperature[i] = 0;
  if (row.spoiled || row.finite == 0) return;
  const T* upstream = row_of<T>(a.upstream, a, i);
  Scratch<T> mirrored(a.descending ? row.n : 0);
  if (a.descending) {
    std::reverse_copy(upstream, upstream + row.present(), mirrored.get());
    upstream = mirrored.get();
  }
  const Levels levels = sort_levels(row.finite);
  Roots<T> roots = roots_of<T>(a, i, nullptr);
  const double factor = row.inside.factor;
  Scratch<T> rest(factor == 1 ? 0 : row.finite);
  if (factor != 1) {
    std::transform(roots.rest, roots.rest + row.finite, rest.get(), [=](T own) { return T(factor * double(own)); });
    roots.rest = rest.get();
  }
  row.sums(team).roots_vjp(levels, row.finite_order(), upstream, roots, out);
  if (a.grad_temperature) a.grad_temperature[i] = row.sums(team).roots_by_temperature(levels, upstream, roots);
}

// Calls finish(a, row, team) for every row, which it has sorted before if there are scores.
template <class T, class Finish> void run(const SoftOrder& a, Finish finish) {
  for_rows_of(a, [&](std::size_t begin, std::size_t end, Team team) {
    Scratch<Word> words(a.scores ? 2 * longest_of(a, begin, end) : 0);
    for (std::size_t row = begin; row < end; ++row) {
      if (a.scores) {
        const std::size_t first = begin_of(a, row), n = length_of(a, row);
        sort_row<T>(row_of<T>(a.scores, a, row), n, row_of<T>(a.values, a, row), a.order + first, words.get(), team);
      }
      finish(a, row, team);
    }
  });
}

}  // namespace

void soft_rank_forward(const SoftOrder& a) {
  with_order(a.density, a.wide, [&]<class T, template <class> class Order>() { run<T>(a, write_ranks<T, Order<T>>); });
}

void soft_rank_backward(const SoftOrder& a) {
  with_order(a.density, a.wide, [&]<class T, template <class> class Order>() { run<T>(a, write_rank_gradients<T, Order<T>>); });
}

void soft_sort_forward(const SoftOrder& a) {
  with_order(a.density, a.wide, [&]<class T, template <class> class Order>() { run<T>(a, write_sorted<T, Order<T>>); });
}

void soft_sort_backward(const SoftOrder& a) {
  with_order(a.density, a.wide, [&]<class T, template <class> class Order>() { run<T>(a, write_sort_gradients<T, Order<T>>); });
}

}  // namespace softorder
