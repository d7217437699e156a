// Ranks and sorts as projections onto a permutahedron: sort, pool, put back, in one go, and their
// vector-Jacobian products, which are sums over blocks.
//
// With z, the finite scores of a row from the largest down, and place m - j for the j-th of m, j = 0, ...:
//
//   rank: s = z/τ, w = m - j      sort: s = (m - j)/τ, w = z
//   l2:   s_j - mean_B(s) + mean_B(w)      entropic: s_j - log Σ_B e^s + log Σ_B e^w, w = log(m - j) for ranks
//
// over the blocks B of an isotonic regression. Everything is taken relative to the first of a block:
// scores that are alone in theirs lose nothing, however small τ is, and no exponential overflows.
#include "kernels.hpp"

#include "in_range.hpp"
#include "isotonic/pool.hpp"
#include "sort/sorted_row.hpp"

namespace softorder {
namespace {

template <class T> T* row_of(const void* matrix, const Permutahedron& a, std::size_t row) {
  return static_cast<T*>(const_cast<void*>(matrix)) + row * a.n;
}

// The finite scores of a row, or their negatives, from the largest down.
template <class T> struct Descending {
  const T* values;
  const std::int32_t* order;
  std::size_t m;
  bool negative;
  double centre;  // from which scores are measured: one outlier shall not cost the others their digits

  Descending(const SortedRow<T>& row, bool negated) : Descending(row, row.finite_values(), negated) {}
  Descending(const SortedRow<T>& row, const T* finite, bool negated)
      : values(finite), order(row.finite_order()), m(row.finite), negative(negated),
        centre(m > 0 ? (*this)[m / 2] : 0) {
    if (m > 0 && !std::isfinite(std::max((*this)[0] - centre, centre - (*this)[m - 1]))) centre = 0;
  }

  double operator[](std::size_t j) const { return negative ? -double(values[j]) : double(values[m - 1 - j]); }
  std::int32_t source(std::size_t j) const { return order[negative ? j : m - 1 - j]; }
};

// One row on its way forward or back.
template <class T> struct Row : SortedRow<T> {
  double scale;  // 1/temperature, finite
  std::int32_t* starts;

  Row(const Permutahedron& a, std::size_t row)
      : SortedRow<T>(row_of<T>(a.values, a, row), a.order + row * a.n, a.n),
        scale(std::min(1 / a.temperature[row * a.temperature_stride], std::numeric_limits<double>::max())),
        starts(a.starts + row * a.n) {}

  template <class Work> void each_block(Work work) const {
    softorder::each_block(starts, this->finite, work);
  }
};

template <class Term> double sum(std::size_t start, std::size_t end, Term term) {
  double total = 0;
#pragma omp simd reduction(+ : total)
  for (std::size_t j = start; j < end; ++j) total += term(j);
  return total;
}

// The middle of the places m - j of a block.
double middle_of(std::size_t m, std::size_t start, std::size_t end) {
  return double(m) - 0.5 * (double(start) + double(end - 1));
}

// ---- ranks -----------------------------------------------------------------------------------

// z/τ where that is so large that places are lost beside it: the sum of its gaps, each of them at most `most`. Blocks
// on either side of such a gap are not pooled: the means of their places differ by less than m, and logarithms of
// these by less still.
template <class T> class Capped {
 public:
  Capped(const Descending<T>& z, double scale) : s_(is_far(z, scale) ? z.m : 0) {
    if (s_.get() == nullptr) return;
    const double most = 4 * double(z.m);
    s_.get()[0] = 0;
    for (std::size_t j = 1; j < z.m; ++j) {
      s_.get()[j] = s_.get()[j - 1] - std::min((z[j - 1] - z[j]) * scale, most);
    }
  }
  const double* get() const { return s_.get(); }

 private:
  static bool is_far(const Descending<T>& z, double scale) {
    constexpr double most = 1e9;
    return z.m > 0 && !((z[0] - z.centre) * scale < most && (z.centre - z[z.m - 1]) * scale < most);
  }
  Scratch<double> s_;
};

struct EuclideanRanks {
  using Level = Mean;

  static Level level(double s, std::size_t place) { return Level::of(s, double(place)); }
  template <class T>
  static void write(const Descending<T>& z, double scale, std::size_t start, std::size_t end, double shift, T* out) {
    const double base = z[start];
    const double mean = sum(start, end, [&](std::size_t j) { return z[j] - base; }) / double(end - start);
    const double middle = middle_of(z.m, start, end) + shift;
    for (std::size_t j = start; j < end; ++j) out[z.source(j)] = T(((z[j] - base) - mean) * scale + middle);
  }
  // g becomes the gradient of the scores.
  template <class T> static void pull(T* g, const T*, std::size_t start, std::size_t end, double scale) {
    const double mean = sum(start, end, [=](std::size_t j) { return double(g[j]); }) / double(end - start);
    for (std::size_t j = start; j < end; ++j) g[j] = T(scale * (double(g[j]) - mean));
  }
};

// e^s/Σ_B e^s of the sum of the places.
struct EntropicRanks {
  using Level = LogRatio;

  static Level level(double s, std::size_t place) { return Level::of(s, std::log(double(place))); }
  template <class T>
  static void write(const Descending<T>& z, double scale, std::size_t start, std::size_t end, double shift, T* out) {
    const auto power = [&](std::size_t j) { return std::exp((z[j] - z[start]) * scale); };
    const double share = double(end - start) * middle_of(z.m, start, end) / sum(start, end, power);
    for (std::size_t j = start; j < end; ++j) out[z.source(j)] = T(share * power(j) + shift);
  }
  // With ranks r = e^out: g r - r <g,r>/Σ r.
  template <class T> static void pull(T* g, const T* r, std::size_t start, std::size_t end, double scale) {
    const double total = sum(start, end, [=](std::size_t j) { return double(g[j]) * double(r[j]); });
    const double mean = total / sum(start, end, [=](std::size_t j) { return double(r[j]); });
    for (std::size_t j = start; j < end; ++j) g[j] = T(scale * double(r[j]) * (double(g[j]) - mean));
  }
};

template <class Ranks, class T>
void write_ranks(const Permutahedron& a, std::size_t i, Pool<typename Ranks::Level>& pool, Team team) {
  const Row<T> row(a, i);
  T* out = row_of<T>(a.out, a, i);
  if (row.spoiled) return std::fill(out, out + a.n, kNan<T>);
  const InRange<T> inside(row.finite_values(), row.finite, 1);
  const Descending<T> z(row, inside.values(), a.descending);
  const double scale = std::min(row.scale / inside.factor, std::numeric_limits<double>::max());
  const double shift = a.descending ? double(row.certain()) : 0.0;
  const Capped<T> capped(z, scale);
  if (const double* const s = capped.get()) {
    pool.run(z.m, [=](std::size_t j) { return Ranks::level(s[j], z.m - j); }, row.starts, team);
  } else {
    pool.run(z.m, [=](std::size_t j) { return Ranks::level((z[j] - z.centre) * scale, z.m - j); }, row.starts, team);
  }
  row.each_block([&](std::size_t start, std::size_t end) {
    if (end - start == 1) out[z.source(start)] = T(double(z.m - start) + shift);
    else Ranks::write(z, scale, start, end, shift, out);
  });
  row.finish_ranks(out, a.descending);
}

template <class Ranks, class T> void write_rank_gradients(const Permutahedron& a, std::size_t i, Team team) {
  const Row<T> row(a, i);
  T* out = row_of<T>(a.out, a, i);
  if (row.spoiled || row.finite < a.n) std::fill(out, out + a.n, T(0));
  if (row.spoiled) return;
  const Descending<T> z(row, a.descending);
  constexpr bool entropic = std::is_same_v<Ranks, EntropicRanks>;
  Scratch<T> buffers(entropic ? 2 * z.m : z.m);
  T *g = buffers.get(), *r = g + (entropic ? z.m : 0);
  const T *upstream = row_of<T>(a.upstream, a, i), *ranks = row_of<T>(a.ranks, a, i);
  const T shift = a.descending ? T(row.certain()) : T(0);
  team.split(z.m, [&](std::size_t begin, std::size_t end, int) {
    for (std::size_t j = begin; j < end; ++j) g[j] = upstream[z.source(j)];
    if (entropic) for (std::size_t j = begin; j < end; ++j) r[j] = ranks[z.source(j)] - shift;
  });
  const double scale = (a.descending ? -1 : 1) * row.scale;
  row.each_block([&](std::size_t start, std::size_t end) {
    if (end - start == 1) g[start] = 0;
    else Ranks::pull(g, r, start, end, scale);
  });
  team.split(z.m, [&](std::size_t begin, std::size_t end, int) {
    for (std::size_t j = begin; j < end; ++j) out[z.source(j)] = g[j];
  });
}

// ---- sorts -----------------------------------------------------------------------------------

struct EuclideanSort {
  using Level = Mean;
  static constexpr bool kHomogeneous = true;  // scores and 1/τ may be multiplied by one number

  template <class T>
  static void write(const Descending<T>& z, double scale, std::size_t start, std::size_t end, T* out) {
    const double base = z[start], sign = z.negative ? -1 : 1;
    const double mean = sum(start, end, [&](std::size_t j) { return z[j] - base; }) / double(end - start);
    const double middle = 0.5 * (double(start) + double(end - 1));
    for (std::size_t j = start; j < end; ++j) out[j] = T(sign * ((middle - double(j)) * scale + (base + mean)));
  }
  // out = weights of the scores: those of a block share its upstream evenly.
  template <class T>
  static void pull(const Descending<T>& z, const T* upstream, std::size_t start, std::size_t end, T* out) {
    const double mean = sum(start, end, [=](std::size_t j) { return double(upstream[j]); }) / double(end - start);
    for (std::size_t j = start; j < end; ++j) out[z.source(j)] = T(mean);
  }
};

struct EntropicSort {
  using Level = LogRatio;
  static constexpr bool kHomogeneous = false;

  template <class T> static double weight(const Descending<T>& z, std::size_t start, std::size_t j) {
    return std::exp(z[j] - z[start]);
  }
  template <class T> static double total(const Descending<T>& z, std::size_t start, std::size_t end) {
    return sum(start, end, [&](std::size_t j) { return weight(z, start, j); });
  }
  template <class T>
  static void write(const Descending<T>& z, double scale, std::size_t start, std::size_t end, T* out) {
    const auto above = [&](std::size_t j) { return (double(start) - double(j)) * scale; };
    const double powers = sum(start, end, [&](std::size_t j) { return std::exp(above(j)); });
    const double level = z[start] + std::log(total(z, start, end) / powers), sign = z.negative ? -1 : 1;
    for (std::size_t j = start; j < end; ++j) out[j] = T(sign * (above(j) + level));
  }
  template <class T>
  static void pull(const Descending<T>& z, const T* upstream, std::size_t start, std::size_t end, T* out) {
    const double share = sum(start, end, [=](std::size_t j) { return double(upstream[j]); }) / total(z, start, end);
    for (std::size_t j = start; j < end; ++j) out[z.source(j)] = T(share * weight(z, start, j));
  }
};

template <class Sort, class T>
void write_sorted(const Permutahedron& a, std::size_t i, Pool<typename Sort::Level>& pool, Team team) {
  const Row<T> row(a, i);
  T* out = row_of<T>(a.out, a, i);
  if (row.spoiled) return std::fill(out, out + a.n, kNan<T>);
  const InRange<T> inside(row.finite_values(), Sort::kHomogeneous ? row.finite : 0, 1);
  const Descending<T> z(row, inside.values(), !a.descending);
  const double scale = row.scale * inside.factor;
  T* const finite = out + (a.descending ? row.certain() : 0);
  const auto level = [=](std::size_t j) { return Sort::Level::of(double(z.m - j) * scale, z[j] - z.centre); };
  pool.run(z.m, level, row.starts, team);
  row.each_block([&](std::size_t start, std::size_t end) {
    if (end - start == 1) finite[start] = T(z.negative ? -z[start] : z[start]);
    else Sort::write(z, scale, start, end, finite);
  });
  inside.put_back(finite, row.finite);
  std::fill(out, finite, kInfinity<T>);
  std::fill(finite + row.finite, out + a.n, a.descending ? -kInfinity<T> : kInfinity<T>);
}

template <class Sort, class T> void write_sort_gradients(const Permutahedron& a, std::size_t i, Team) {
  const Row<T> row(a, i);
  T* out = row_of<T>(a.out, a, i);
  if (row.spoiled || row.finite < a.n) std::fill(out, out + a.n, T(0));
  if (row.spoiled) return;
  const Descending<T> z(row, !a.descending);
  const T* upstream = row_of<T>(a.upstream, a, i) + (a.descending ? row.certain() : 0);
  row.each_block([&](std::size_t start, std::size_t end) {
    if (end - start == 1) out[z.source(start)] = upstream[start];
    else Sort::pull(z, upstream, start, end, out);
  });
}

// ---- rows ------------------------------------------------------------------------------------

template <class T> void sort_row(const Permutahedron& a, std::size_t i, Word* words, Team team) {
  sort_row<T>(row_of<T>(a.scores, a, i), a.n, row_of<T>(a.values, a, i), a.order + i * a.n, words, team);
}

template <class Level, class T, class Write> void forward(const Permutahedron& a, Write write) {
  for_rows(a.rows, a.n, a.threads, [&](std::size_t begin, std::size_t end, Team team) {
    Scratch<Word> words(2 * a.n);
    Pool<Level> pool(a.n);
    for (std::size_t row = begin; row < end; ++row) {
      sort_row<T>(a, row, words.get(), team);
      write(a, row, pool, team);
    }
  });
}

template <class Write> void backward(const Permutahedron& a, Write write) {
  for_rows(a.rows, a.n, a.threads, [&](std::size_t begin, std::size_t end, Team team) {
    for (std::size_t row = begin; row < end; ++row) write(a, row, team);
  });
}

// Calls run<regularization, scalar>().
template <class Euclidean, class Entropic, class Run> void choose(const Permutahedron& a, Run run) {
  const NoDenormals guard;
  if (a.entropic) {
    a.wide ? run.template operator()<Entropic, double>() : run.template operator()<Entropic, float>();
  } else {
    a.wide ? run.template operator()<Euclidean, double>() : run.template operator()<Euclidean, float>();
  }
}

}  // namespace

void projected_rank_forward(const Permutahedron& a) {
  return choose<EuclideanRanks, EntropicRanks>(
      a, [&]<class Ranks, class T>() { forward<typename Ranks::Level, T>(a, write_ranks<Ranks, T>); });
}

void projected_rank_backward(const Permutahedron& a) {
  return choose<EuclideanRanks, EntropicRanks>(
      a, [&]<class Ranks, class T>() { backward(a, write_rank_gradients<Ranks, T>); });
}

void projected_sort_forward(const Permutahedron& a) {
  return choose<EuclideanSort, EntropicSort>(
      a, [&]<class Sort, class T>() { forward<typename Sort::Level, T>(a, write_sorted<Sort, T>); });
}

void projected_sort_backward(const Permutahedron& a) {
  return choose<EuclideanSort, EntropicSort>(
      a, [&]<class Sort, class T>() { backward(a, write_sort_gradients<Sort, T>); });
}

}  // namespace softorder
