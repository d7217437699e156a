// F-sums over the rows of matrices.
#include "kernels.hpp"

#include "failure.hpp"
#include "fsum/cauchy_sum.hpp"
#include "fsum/laplace_invert.hpp"
#include "fsum/laplace_sum.hpp"
#include "fsum/smooth_invert.hpp"
#include "fsum/smooth_sum.hpp"
#include "fsum/uniform_sum.hpp"
#include "in_range.hpp"
#include "ragged.hpp"
#include "scratch.hpp"

namespace softorder {
namespace {

// Where the sources of a row are, or its targets: levels and roots are targets, too.
struct Span {
  std::size_t begin, size;
};

Span span_of(const std::int64_t* offsets, std::size_t row, std::size_t width) {
  if (!offsets) return {row * width, width};
  return {std::size_t(offsets[row]), std::size_t(offsets[row + 1] - offsets[row])};
}

template <class Arguments> Span sources_of(const Arguments& a, std::size_t row) {
  return span_of(a.source_offsets, row, a.m);
}

template <class Arguments> Span targets_of(const Arguments& a, std::size_t row) {
  return span_of(a.target_offsets, row, a.n);
}

// Calls work(first_row, last_row, team_for_one_row); of two kinds of rows the longer ones are shared out.
template <class Arguments, class Work> void for_rows_in(const Arguments& a, Work work) {
  if (!a.source_offsets) return for_rows(a.rows, std::max(a.m, a.n), a.threads, work);
  const bool sources = a.source_offsets[a.rows] >= a.target_offsets[a.rows];
  RaggedShares(sources ? a.source_offsets : a.target_offsets, a.rows, a.threads).each(work);
}

template <class Arguments> std::size_t most_sources(const Arguments& a, std::size_t begin, std::size_t end) {
  std::size_t most = 0;
  for (; begin < end; ++begin) most = std::max(most, sources_of(a, begin).size);
  return most;
}

template <class T> const T* part_of(const void* matrix, Span span) {
  return matrix ? static_cast<const T*>(matrix) + span.begin : nullptr;
}

std::size_t count_of(const std::int64_t* counts, std::size_t place, std::size_t most) {
  if (counts == nullptr) return most;
  return static_cast<std::size_t>(std::clamp<std::int64_t>(counts[place], 0, std::int64_t(most)));
}

// The arguments of a row, with 0 for the targets that do not count.
template <class T> FsumRow<T> fsum_row(const Fsum& a, std::size_t row) {
  const Span sources = sources_of(a, row), targets = targets_of(a, row);
  T* const out = static_cast<T*>(a.out) + targets.begin;
  const std::size_t counted = count_of(a.target_count, row * a.target_count_stride, targets.size);
  std::fill(out + counted, out + targets.size, T(0));
  return {
      {part_of<T>(a.sources, sources), part_of<T>(a.source_rest, sources)},
      {part_of<T>(a.targets, targets), part_of<T>(a.target_rest, targets)},
      part_of<T>(a.weights, sources),
      out,
      count_of(a.source_count, row * a.source_count_stride, sources.size),
      counted,
      a.temperature[row * a.temperature_stride],
      a.derivative,
      a.moment,
  };
}

bool is_uniform(std::int32_t density) { return static_cast<Density>(density) == Density::uniform; }

template <class T> void run_fsum(const Fsum& a) {
  for_rows_in(a, [&](std::size_t begin, std::size_t end, Team team) {
    const bool uniform = is_uniform(a.density);
    Scratch<double> sums(uniform ? 2 * most_sources(a, begin, end) : 0);
    for (std::size_t i = begin; i < end; ++i) {
      const FsumRow<T> row = fsum_row<T>(a, i);
      uniform ? uniform_fsum(row, sums.get()) : laplace_fsum(row, team);
    }
  });
}

template <class T, class Law> void run_smooth_fsum(const Fsum& a) {
  for_rows_in(a, [&](std::size_t begin, std::size_t end, Team team) {
    SmoothTables<Law> tables;
    for (std::size_t i = begin; i < end; ++i) {
      const FsumRow<T> row = fsum_row<T>(a, i);
      smooth_fsum(row, tables, team);
    }
  });
}

template <class T> void run_cauchy_fsum(const Fsum& a) {
  for_rows_in(a, [&](std::size_t begin, std::size_t end, Team team) {
    CauchyTables<T> tables;
    for (std::size_t i = begin; i < end; ++i) {
      const FsumRow<T> row = fsum_row<T>(a, i);
      cauchy_fsum(row, tables, team);
    }
  });
}

template <class T> void run_any_fsum(const Fsum& a) {
  switch (static_cast<Density>(a.density)) {
    case Density::logistic: return run_smooth_fsum<T, Logistic<double>>(a);
    case Density::normal: return run_smooth_fsum<T, Normal<double>>(a);
    case Density::cauchy: return run_cauchy_fsum<T>(a);
    case Density::laplace:
    case Density::uniform: return run_fsum<T>(a);
    default: throw unknown_choice();
  }
}

template <class T> InvertRow<T> invert_row(const FsumInvert& a, std::size_t row) {
  const Span sources = sources_of(a, row), targets = targets_of(a, row);
  return {
      part_of<T>(a.sources, sources),
      a.levels + (a.target_offsets ? targets.begin : row * a.level_stride),
      static_cast<T*>(a.centre) + targets.begin,
      static_cast<T*>(a.rest) + targets.begin,
      count_of(a.count, row * a.count_stride, sources.size),
      targets.size,
      a.temperature[row * a.temperature_stride],
  };
}

// Calls solve(row) with the row in units in which nothing overflows.
template <class T, class Solve> void solve_in_range(InvertRow<T> row, Solve solve) {
  const InRange<T> inside(row.sources, row.m, row.temperature);
  row.sources = inside.values(), row.temperature = inside.temperature;
  solve(row);
  inside.put_back(row.centre, row.n), inside.put_back(row.rest, row.n);
}

template <class T> void run_invert(const FsumInvert& a) {
  for_rows_in(a, [&](std::size_t begin, std::size_t end, Team team) {
    Scratch<double> sums(2 * most_sources(a, begin, end));
    for (std::size_t i = begin; i < end; ++i) {
      solve_in_range(invert_row<T>(a, i), [&](const InvertRow<T>& row) {
        if (is_uniform(a.density)) {
          UniformInverse<T>(row, sums.get()).run();
        } else {
          LaplaceInverse<T>(row, sums.get()).run(team);
        }
      });
    }
  });
}

template <class T, class Law, class Sources> void run_smooth_invert(const FsumInvert& a) {
  for_rows_in(a, [&](std::size_t begin, std::size_t end, Team team) {
    typename Sources::RootTables tables;
    for (std::size_t i = begin; i < end; ++i) {
      solve_in_range(invert_row<T>(a, i), [&](const InvertRow<T>& row) {
        SmoothInverse<Law, InvertRow<T>, Sources>(row, tables, team).run();
      });
    }
  });
}

template <class T> void run_any_invert(const FsumInvert& a) {
  switch (static_cast<Density>(a.density)) {
    case Density::logistic: return run_smooth_invert<T, Logistic<double>, SmoothSources<Logistic<double>, T>>(a);
    case Density::normal: return run_smooth_invert<T, Normal<double>, SmoothSources<Normal<double>, T>>(a);
    case Density::cauchy: return run_smooth_invert<T, Cauchy<double>, CauchySources<T>>(a);
    case Density::laplace:
    case Density::uniform: return run_invert<T>(a);
    default: throw unknown_choice();
  }
}

}  // namespace

void fsum(const Fsum& a) {
  const NoDenormals guard;
  return a.wide ? run_any_fsum<double>(a) : run_any_fsum<float>(a);
}

void fsum_invert(const FsumInvert& a) {
  const NoDenormals guard;
  return a.wide ? run_any_invert<double>(a) : run_any_invert<float>(a);
}

}  // namespace softorder
