// Soft ranks and soft sort of the rows of a matrix, with the Laplace density: sort, sum and put back
// in one go. Compiled once per SIMD level.
#include "order.hpp"

#include "laplace_order.hpp"
#include "ordering.hpp"

namespace softorder::SOFTORDER_LEVEL {
namespace {

template <class T> using FormatOf = std::conditional_t<is_single<T>, Float32, Float64>;
template <class T> constexpr T kInfinity = std::numeric_limits<T>::infinity();
template <class T> constexpr T kNan = std::numeric_limits<T>::quiet_NaN();

// A sorted row: -inf, which is absent; finite scores; +inf, which is certain; or a NaN that spoils it.
template <class T> struct Row {
  const T* values;
  const std::int32_t* order;
  std::size_t n;
  double temperature;
  std::size_t absent, finite;
  bool spoiled;

  Row(const SoftOrder& a, std::size_t row)
      : values(static_cast<const T*>(a.values) + row * a.n),
        order(a.order + row * a.n),
        n(a.n),
        temperature(a.temperature[row * a.temperature_stride]),
        absent(partition_point(n, [this](std::size_t i) { return values[i] == -kInfinity<T>; })),
        finite(partition_point(n - absent, [this](std::size_t i) { return values[absent + i] < kInfinity<T>; })),
        spoiled(n > 0 && std::isnan(values[n - 1])) {}

  std::size_t present() const { return n - absent; }
  const std::int32_t* finite_order() const { return order + absent; }
  LaplaceOrder<T> sums(Team team) const { return {values + absent, finite, temperature, team}; }
};

template <class T> T* row_of(const void* matrix, const SoftOrder& a, std::size_t row) {
  return static_cast<T*>(const_cast<void*>(matrix)) + row * a.n;
}

template <class T> void sort_row(const SoftOrder& a, std::size_t row, Word* words, Team team) {
  using F = FormatOf<T>;
  using Bits = typename F::Bits;
  const Bits* scores = row_of<Bits>(a.scores, a, row);
  Bits* values = row_of<Bits>(a.values, a, row);
  std::int32_t* order = a.order + row * a.n;
  RowSorter<F> sorter(words, words + a.n, team);
  sorter.sort(scores, a.n, [=](std::size_t place, typename F::Key key, std::size_t index) {
    values[place] = F::ambiguous(key) ? scores[index] : F::bits(key);
    order[place] = static_cast<std::int32_t>(index);
  });
}

template <class T> void write_ranks(const SoftOrder& a, std::size_t i, Team team) {
  const Row<T> row(a, i);
  T* out = row_of<T>(a.out, a, i);
  if (row.spoiled) return std::fill(out, out + a.n, kNan<T>);
  if (row.finite > 0) row.sums(team).ranks(row.finite_order(), out, a.descending, row.present());
  const double present = double(row.present());
  const double certain = 0.5 * (double(row.finite) + present + 1);
  for (std::size_t j = row.absent + row.finite; j < a.n; ++j) {
    out[row.order[j]] = T(a.descending ? present + 1 - certain : certain);
  }
  for (std::size_t j = 0; j < row.absent; ++j) out[row.order[j]] = T(0.5 * (present + 1 + double(a.n)));
}

template <class T> void write_rank_gradients(const SoftOrder& a, std::size_t i, Team team) {
  const Row<T> row(a, i);
  T* out = row_of<T>(a.out, a, i);
  if (row.spoiled || row.finite < a.n) std::fill(out, out + a.n, T(0));
  if (row.spoiled || row.finite == 0) return;
  row.sums(team).ranks_vjp(row.finite_order(), row_of<T>(a.upstream, a, i), out, a.descending);
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
  if (row.spoiled || row.finite == 0) return;
  const T* upstream = row_of<T>(a.upstream, a, i);
  if (!a.descending) return row.sums(team).roots_vjp(row.finite_order(), upstream, roots_of<T>(a, i, nullptr), out);
  Scratch<T> mirrored(a.n);
  std::reverse_copy(upstream, upstream + row.present(), mirrored.get());
  row.sums(team).roots_vjp(row.finite_order(), mirrored.get(), roots_of<T>(a, i, nullptr), out);
}

// Calls finish(a, row, team) for every row, which it has sorted before if there are scores.
template <class T, class Finish> int run(const SoftOrder& a, Finish finish) {
  for_rows(a.rows, a.n, a.threads, [&](std::size_t begin, std::size_t end, Team team) {
    Scratch<Word> words(a.scores ? 2 * a.n : 0);
    for (std::size_t row = begin; row < end; ++row) {
      if (a.scores) sort_row<T>(a, row, words.get(), team);
      finish(a, row, team);
    }
  });
  return 0;
}

}  // namespace

int soft_rank_forward(const SoftOrder& a) {
  const NoDenormals guard;
  return a.wide ? run<double>(a, write_ranks<double>) : run<float>(a, write_ranks<float>);
}

int soft_rank_backward(const SoftOrder& a) {
  const NoDenormals guard;
  return a.wide ? run<double>(a, write_rank_gradients<double>) : run<float>(a, write_rank_gradients<float>);
}

int soft_sort_forward(const SoftOrder& a) {
  const NoDenormals guard;
  return a.wide ? run<double>(a, write_sorted<double>) : run<float>(a, write_sorted<float>);
}

int soft_sort_backward(const SoftOrder& a) {
  const NoDenormals guard;
  return a.wide ? run<double>(a, write_sort_gradients<double>) : run<float>(a, write_sort_gradients<float>);
}

}  // namespace softorder::SOFTORDER_LEVEL
