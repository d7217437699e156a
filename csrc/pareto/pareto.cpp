// log P(x) of Pareto sampling, and the sums that its gradient needs:
//
//   P(x) = Π σ(±u_i) <c,x>      ∂log P/∂u_i = x_i - Σ_l G_l p_il - x_i Σ_l w_l p_il q_il/<c,x>      p = 1 - q
//
// with G_l = w_l Σ_{x_i=1} q_il/<c,x>, which sum to 1. Where p is nearly 1, q tells what is left of it. Beyond the
// farthest logit nothing moves but as e^-|u|. All of it is double.
#include "kernels.hpp"

#include <limits>

#include "pareto/levels.hpp"
#include "team.hpp"

namespace softorder {
namespace {

using D = Pack<double>;

// Σ log(1 + e^-|u|), and whether any unit is neither certain nor impossible.
struct Surprise {
  double log_rise = 0;
  bool free = false;
};

Surprise surprise_of(const double* u, std::size_t n) {
  Surprise found;
  for (std::size_t i = 0; i < n; i += kLanes<double>) {
    const std::size_t there = std::min(kLanes<double>, n - i);
    const D logit = absolute<double>(load_part(u + i, there, std::numeric_limits<double>::infinity()));
    found.log_rise += sum_lanes(log<double>(1.0 + exp2_minus<double>(logit, D{} + std::numbers::log2e)));
    found.free |= any<double>(logit < std::numeric_limits<double>::infinity());
  }
  return found;
}

void forward_row(const ParetoForward& a, std::size_t row, ParetoLevels& levels, double* weights) {
  const double* const u = a.u + row * a.n;
  levels.find(u, a.size[row], a.fine);
  for (std::size_t i = 0; i < levels.length; i += kLanes<double>) {
    const D odds = load(levels.odds() + i);
    D sum{};
    for (std::size_t l = 0; l < levels.count; ++l) sum += levels.weight()[l] * levels.outside(odds, l);
    store<double>(weights + i, sum);
  }
  if (a.weights) std::copy_n(weights, a.n, a.weights + row * a.n);
  if (!a.draws) return;
  const Surprise surprise = surprise_of(u, a.n);
  for (std::size_t draw = 0; draw < a.count; ++draw) {
    const std::size_t at = draw * a.rows + row;
    const double* const x = a.draws + at * a.n;
    double total = 0, taken = 0, drawn = 0;
#pragma omp simd reduction(+ : total, taken, drawn)
    for (std::size_t i = 0; i < a.n; ++i) {
      const double side = x[i] > 0 ? u[i] : -u[i];
      total += side > 0 ? 0 : side;
      taken += x[i] > 0 ? weights[i] : 0, drawn += x[i];
    }
    const double mean = surprise.free && a.size[row] > 0 ? std::log(taken) : 0;
    const bool possible = drawn == a.size[row];
    a.log_prob[at] = possible ? total - surprise.log_rise + mean : -std::numeric_limits<double>::infinity();
    a.taken[at] = taken;
  }
}

void backward_row(const ParetoBackward& a, std::size_t row, ParetoLevels& levels, double* pull) {
  const double *const u = a.u + row * a.n, *const shares = a.shares + row * a.n;
  levels.find(u, a.size[row], a.fine);
  for (std::size_t l = 0; l < levels.count; ++l) {
    D sum{};
    for (std::size_t i = 0; i < a.n; i += kLanes<double>) {
      sum += levels.outside(load(levels.odds() + i), l) * load_part(shares + i, std::min(kLanes<double>, a.n - i), 0.0);
    }
    pull[l] = levels.weight()[l] * sum_lanes(sum);
  }
  for (std::size_t i = 0; i < a.n; i += kLanes<double>) {
    const std::size_t there = std::min(kLanes<double>, a.n - i);
    const D odds = load(levels.odds() + i), logit = load_part(u + i, there, 0.0);
    D over{}, under{}, own{};
    for (std::size_t l = 0; l < levels.count; ++l) {
      const D q = levels.outside(odds, l), share = pull[l] * q;
      over += share, under += levels.times()[l] * share;
      own += (levels.weight()[l] * levels.times()[l]) * (q * q);
    }
    own *= odds * load_part(shares + i, there, 0.0);
    const D beyond = absolute<double>(logit) - ParetoLevels::kFarthest;
    const D away = exp2_minus<double>(beyond > 0.0 ? beyond : D{}, D{} + std::numbers::log2e);
    store_part<double>(a.gradient + row * a.n + i, away * (logit > 0.0 ? over - own : -(odds * under + own)), there);
  }
}

}  // namespace

void pareto_forward(const ParetoForward& a) {
  const NoDenormals guard;
  for_rows(a.rows, 16 * a.n, a.threads, [&](std::size_t begin, std::size_t end, Team) {
    ParetoLevels levels(a.n);
    const Scratch<double> weights(levels.length);
    for (std::size_t row = begin; row < end; ++row) forward_row(a, row, levels, weights.get());
  });
}

void pareto_backward(const ParetoBackward& a) {
  const NoDenormals guard;
  for_rows(a.rows, 16 * a.n, a.threads, [&](std::size_t begin, std::size_t end, Team) {
    ParetoLevels levels(a.n);
    const Scratch<double> pull(ParetoLevels::kMost);
    for (std::size_t row = begin; row < end; ++row) backward_row(a, row, levels, pull.get());
  });
}

}  // namespace softorder
