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
#include "scratch.hpp"

namespace softorder {
namespace {

template <class T> const T* row_of(const void* matrix, std::size_t row, std::size_t n) {
  return matrix ? static_cast<const T*>(matrix) + row * n : nullptr;
}

std::size_t count_of(const std::int64_t* counts, std::size_t place, std::size_t most) {
  if (counts == nullptr) return most;
  return static_cast<std::size_t>(std::clamp<std::int64_t>(counts[place], 0, std::int64_t(most)));
}

template <class T> FsumRow<T> fsum_row(const Fsum& a, std::size_t row) {
  return {
      {row_of<T>(a.sources, row, a.m), row_of<T>(a.source_rest, row, a.m)},
      {row_of<T>(a.targets, row, a.n), row_of<T>(a.target_rest, row, a.n)},
      row_of<T>(a.weights, row, a.m),
      static_cast<T*>(a.out) + row * a.n,
      count_of(a.source_count, row * a.source_count_stride, a.m),
      count_of(a.target_count, row * a.target_count_stride, a.n),
      a.temperature[row * a.temperature_stride],
      a.derivative,
      a.moment,
  };
}

bool is_uniform(std::int32_t density) { return static_cast<Density>(density) == Density::uniform; }

template <class T> void run_fsum(const Fsum& a) {
  for_rows(a.rows, std::max(a.m, a.n), a.threads, [&](std::size_t begin, std::size_t end, Team team) {
    const bool uniform = is_uniform(a.density);
    Scratch<double> sums(uniform ? 2 * a.m : 0);
    for (std::size_t i = begin; i < end; ++i) {
      const FsumRow<T> row = fsum_row<T>(a, i);
      std::fill(row.out + row.n, row.out + a.n, T(0));
      uniform ? uniform_fsum(row, sums.get()) : laplace_fsum(row, team);
    }
  });
}

template <class T, class Law> void run_smooth_fsum(const Fsum& a) {
  for_rows(a.rows, std::max(a.m, a.n), a.threads, [&](std::size_t begin, std::size_t end, Team team) {
    SmoothTables<Law> tables;
    for (std::size_t i = begin; i < end; ++i) {
      const FsumRow<T> row = fsum_row<T>(a, i);
      std::fill(row.out + row.n, row.out + a.n, T(0));
      smooth_fsum(row, tables, team);
    }
  });
}

template <class T> void run_cauchy_fsum(const Fsum& a) {
  for_rows(a.rows, std::max(a.m, a.n), a.threads, [&](std::size_t begin, std::size_t end, Team team) {
    CauchyTables<T> tables;
    for (std::size_t i = begin; i < end; ++i) {
      const FsumRow<T> row = fsum_row<T>(a, i);
      std::fill(row.out + row.n, row.out + a.n, T(0));
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
  return {
      row_of<T>(a.sources, row, a.m),
      a.levels + row * a.level_stride,
      static_cast<T*>(a.centre) + row * a.n,
      static_cast<T*>(a.rest) + row * a.n,
      count_of(a.count, row * a.count_stride, a.m),
      a.n,
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
  for_rows(a.rows, std::max(a.m, a.n), a.threads, [&](std::size_t begin, std::size_t end, Team team) {
    Scratch<double> sums(2 * a.m);
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
  for_rows(a.rows, std::max(a.m, a.n), a.threads, [&](std::size_t begin, std::size_t end, Team team) {
    typename Sources::RootTables tables;
    for (std::size_t i = begin; i < end; ++i) {
      solve_in_range(invert_row<T>(a, i), [&](const InvertRow<T>& row) {
        SmoothInverse<Law, T, Sources>(row, tables, team).run();
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
