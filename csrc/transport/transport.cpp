// The thresholds of entropic transport plans from scores to ordered anchors, for the rows of matrices.
#include "kernels.hpp"

#include <algorithm>
#include <limits>

#include "team.hpp"
#include "transport/newton.hpp"

namespace softorder {
namespace {

using transport::Found;
using transport::Newton;
using transport::Row;

void solve_row(const TransportSolve& a, std::size_t at, Newton& newton) {
  const double* const levels = a.levels + at * a.thresholds;
  double* const centre = a.centre + at * a.thresholds;
  double* const rest = a.rest + at * a.thresholds;
  std::fill_n(rest, a.thresholds, 0.0);
  Row& row = newton.row();
  Found found{1, std::numeric_limits<double>::quiet_NaN()};
  if (row.read(a.gains + at * a.n, a.n, levels, a.thresholds, a.total[at], a.temperature[at * a.temperature_stride])) {
    for (std::size_t l = 0; l < a.thresholds; ++l) centre[l] = row.middle(levels[l]);
    found = newton.solve(centre + row.first, levels + row.first, rest + row.first, *a.tolerance, a.max_iterations);
  } else {
    std::fill_n(centre, a.thresholds, 0.0);
  }
  a.iterations[at] = found.iterations;
  a.error[at] = found.error;
}

}  // namespace

void transport_solve(const TransportSolve& a) {
  const NoDenormals guard;
  for_rows(a.rows, 64 * a.n * a.thresholds, a.threads, [&](std::size_t begin, std::size_t end, Team) {
    Newton newton(a.n, a.thresholds);
    for (std::size_t row = begin; row < end; ++row) solve_row(a, row, newton);
  });
}

}  // namespace softorder
