// Entropic transport plans from thresholds, what scores have in the first places, and the gradients of both.
//
// In the names of src/softorder/relaxations/transport_plan.py, where the formulas are derived: P the plan, Q and U its parts
// below and above a threshold, H[V]_l = ∂<V, P>/∂d_l, J w = Σ_i H[V], and the gradient of a step is H[V] - J_i w. A mass
// log Q_k may be that of a score which is hopelessly far from there: the smallest are sums of logarithms.
#include "kernels.hpp"

#include <limits>

#include "team.hpp"
#include "transport/curvature.hpp"

namespace softorder {
namespace {

using transport::D;
using transport::kInfinity;
using transport::kScores;

constexpr double kContent = 1e-6;   // J_jj at which a solver's tolerance leaves the threshold enough digits
constexpr double kPlain = 1e-280;   // sums of weights whose ratios are as good as those of logarithms

// One row of the problem, and room for one of its packs at every anchor.
class PlanRow {
 public:
  explicit PlanRow(const TransportPlan& a)
      : a_(a), plan_(a.thresholds + 1), logs_(a.thresholds + 1), room_(a.thresholds + 1), sums_(a.thresholds + 1) {}

  void at(std::size_t row) {
    const transport::Open opened(a_.levels + row * a_.thresholds, a_.thresholds, a_.total[row]);
    first = opened.first, open = opened.count;
    levels = a_.levels + row * a_.thresholds + first;
    gains = a_.gains + row * a_.n;
    scale = transport::scale_of(a_.temperature[row * a_.temperature_stride]);
    centre = a_.centre + row * a_.thresholds + first, rest = a_.rest + row * a_.thresholds + first;
  }

  // A pack of scores: P at all anchors, and log P but for a constant.
  void read(std::size_t i) {
    count = std::min(kScores, a_.n - i);
    x = count == kScores ? load(gains + i) : load_part(gains + i, count, kInfinity);
    const D most = transport::logits([&](std::size_t l) { return step(l); }, rest, open, logs_.get(), room_.get());
    total = D{};
    for (std::size_t a = 0; a <= open; ++a) {
      logs_.get()[a] -= most;
      total += plan_.get()[a] = exp2_minus<double>(-logs_.get()[a], D{} + std::numbers::log2e);
    }
    const D share = 1.0 / total;
    for (std::size_t a = 0; a <= open; ++a) plan_.get()[a] *= share;
  }

  D plan(std::size_t a) const { return plan_.get()[a]; }

  D step(std::size_t l) const { return transport::steps_at(x, centre[l], scale); }

  // Q of all thresholds.
  template <class Take> void below(Take take) const {
    D sum{};
    for (std::size_t l = 0; l < open; ++l) take(l, sum += plan_.get()[l]);
  }

  // U of all thresholds, from the last.
  template <class Take> void above(Take take) const {
    D sum{};
    for (std::size_t l = open; l-- > 0;) take(l, sum += plan_.get()[l + 1]);
  }

  // log Q of thresholds up to the last, which is to be among those that are open.
  const D* log_below(std::size_t last) {
    const D all = log<double>(total);
    D most = logs_.get()[0], sum = D{} + 1.0;
    sums_.get()[0] = most - all;
    for (std::size_t a = 1; a <= last; ++a) {
      const D next = logs_.get()[a], less = exp2_minus<double>(absolute<double>(next - most), D{} + std::numbers::log2e);
      sum = next > most ? sum * less + 1.0 : sum + less;
      most = larger<double>(next, most);
      sums_.get()[a] = most + log<double>(sum) - all;
    }
    return sums_.get();
  }

  std::size_t first = 0, open = 0, count = 0;  // thresholds that are open, and scores of the pack
  const double* levels = nullptr;
  const double* gains = nullptr;
  double scale = 1;
  const double* centre = nullptr;
  const double* rest = nullptr;
  D x{}, total{};  // the scores of the pack, and the sum of their weights

 private:
  const TransportPlan& a_;
  Scratch<D> plan_, logs_, room_, sums_;
};

bool all_at_least(D values, double least) { return !any<double>(values < least); }

// ---- forward

void write_plan(const TransportPlan& a, PlanRow& row, double* out) {
  std::fill_n(out, row.first * a.n, 0.0);
  std::fill_n(out + (row.first + row.open + 1) * a.n, (a.thresholds - row.first - row.open) * a.n, 0.0);
  for (std::size_t i = 0; i < a.n; i += kScores) {
    row.read(i);
    for (std::size_t l = 0; l <= row.open; ++l) store_part<double>(out + (row.first + l) * a.n + i, row.plan(l), row.count);
  }
}

// Whether a threshold is so cold that only a balance of logarithms tells where it is: relaxations/transport_masses.py.
bool has_cold(const PlanRow& row, const D* diagonal, const D* hard) {
  for (std::size_t l = 0; l < row.open; ++l) {
    if (sum_lanes(diagonal[l]) < kContent && sum_lanes(hard[l]) == row.levels[l]) return true;
  }
  return false;
}

void write_log_below(const TransportPlan& a, PlanRow& row, std::size_t at, D* room) {
  double* const out = a.out + at * a.columns * a.n;
  D *const diagonal = room, *const hard = room + row.open, *const below = room + 2 * row.open;
  std::fill_n(diagonal, 2 * row.open, D{});
  for (std::size_t i = 0; i < a.n; i += kScores) {
    row.read(i);
    row.below([&](std::size_t l, D q) { below[l] = q; });
    row.above([&](std::size_t l, D u) {
      diagonal[l] += below[l] * u;
      hard[l] += row.step(l) < 0.0 ? D{} + 1.0 : D{};
    });
    for (std::size_t c = 0; c < a.columns; ++c) {
      const auto k = std::size_t(a.ks[c]);
      D value{};                                             // everything is in the first places
      if (k <= row.first) value -= transport::kCertain;      // nothing is
      else if (k <= row.first + row.open) {
        const D q = below[k - row.first - 1];
        value = all_at_least(q, kPlain) ? log<double>(q) : row.log_below(k - row.first - 1)[k - row.first - 1];
      }
      store_part<double>(out + c * a.n + i, value, row.count);
    }
  }
  a.cold[at] = has_cold(row, diagonal, hard);
}

// ---- backward

// Q, U and H of a row, (thresholds, width) each, and what Newton's system is solved with.
class Gradient {
 public:
  explicit Gradient(const TransportPlan& a)
      : a_(a), width_(transport::in_packs(a.n)), row_(a), curvature_(a.thresholds), below_(a.thresholds * width_),
        above_(a.thresholds * width_), slope_(a.thresholds * width_), right_(a.thresholds), heads_(a.thresholds + 1) {}

  // False where that is beyond what is done here.
  bool find(std::size_t at) {
    row_.at(at);
    const double* const upstream = a_.upstream + at * a_.columns * a_.n;
    for (std::size_t i = 0; i < width_; i += kScores) {
      row_.read(i);
      row_.below([&](std::size_t l, D q) { store<double>(below_.get() + l * width_ + i, q); });
      row_.above([&](std::size_t l, D u) { store<double>(above_.get() + l * width_ + i, u); });
      if (a_.ks == nullptr) slope_of_plan(upstream, i);
      else slope_of_log_below(upstream, i);
    }
    for (std::size_t l = 0; l < row_.open; ++l) {
      D sum{};
      for (std::size_t i = 0; i < width_; i += kScores) sum += slope(l, i);
      right_.get()[l] = sum_lanes(sum);
    }
    if (row_.open > 0) {
      const bool solved = curvature_.factorise(below_.get(), above_.get(), row_.open, width_, false, 0);
      if (!solved || curvature_.inexact() || (a_.ks != nullptr && curvature_.cold())) return false;
      curvature_.solve(right_.get());
    }
    write(at);
    return true;
  }

 private:
  D below(std::size_t l, std::size_t i) const { return load(below_.get() + l * width_ + i); }
  D above(std::size_t l, std::size_t i) const { return load(above_.get() + l * width_ + i); }
  D slope(std::size_t l, std::size_t i) const { return load(slope_.get() + l * width_ + i); }
  void set_slope(std::size_t l, std::size_t i, D value) { store<double>(slope_.get() + l * width_ + i, value); }

  // Of what does not come from any score there is none.
  D part(const double* upstream, std::size_t column, std::size_t i) const {
    return load_part(upstream + column * a_.n + i, row_.count, 0.0);
  }

  void slope_of_plan(const double* upstream, std::size_t i) {
    D head{}, tail{};
    D* const shares = heads_.get();
    for (std::size_t l = 0; l <= row_.open; ++l) shares[l] = row_.plan(l) * part(upstream, row_.first + l, i);
    for (std::size_t l = 0; l < row_.open; ++l) {
      head += shares[l];
      set_slope(l, i, -above(l, i) * head);
    }
    for (std::size_t l = row_.open; l-- > 0;) {
      tail += shares[l + 1];
      set_slope(l, i, slope(l, i) + below(l, i) * tail);
    }
  }

  void slope_of_log_below(const double* upstream, std::size_t i) {
    for (std::size_t l = 0; l < row_.open; ++l) set_slope(l, i, D{});
    for (std::size_t c = 0; c < a_.columns; ++c) {
      const auto k = std::size_t(a_.ks[c]);
      if (k <= row_.first || k > row_.first + row_.open) continue;
      const std::size_t own = k - row_.first - 1;
      const D g = part(upstream, c, i), pull = g * above(own, i), q = below(own, i);
      if (all_at_least(q, kPlain)) {
        const D factor = pull / q;
        for (std::size_t l = 0; l < own; ++l) set_slope(l, i, slope(l, i) - factor * below(l, i));
      } else {
        const D* const logs = row_.log_below(own);
        for (std::size_t l = 0; l < own; ++l) {
          const D ahead = exp2_minus<double>(larger<double>(logs[own] - logs[l], D{}), D{} + std::numbers::log2e);
          set_slope(l, i, slope(l, i) - pull * ahead);
        }
      }
      for (std::size_t l = own; l < row_.open; ++l) set_slope(l, i, slope(l, i) - g * above(l, i));
    }
  }

  void write(std::size_t at) {
    const double* const w = right_.get();
    D by_temperature{};
    for (std::size_t i = 0; i < width_; i += kScores) {
      row_.count = std::min(kScores, a_.n - i);
      row_.x = load_part(row_.gains + i, row_.count, kInfinity);
      D* const heads = heads_.get();
      D head{}, tail{}, by_gain{};
      for (std::size_t l = 0; l < row_.open; ++l) heads[l] = head += below(l, i) * w[l];
      for (std::size_t l = row_.open; l-- > 0;) {
        const D by_step = slope(l, i) - above(l, i) * heads[l] - below(l, i) * tail;
        tail += above(l, i) * w[l];
        by_gain += by_step;
        by_temperature += by_step * row_.step(l);
      }
      store_part<double>(a_.out + at * a_.n + i, by_gain * row_.scale, row_.count);
    }
    a_.grad_temperature[at] = -sum_lanes(by_temperature) * row_.scale;
  }

  const TransportPlan& a_;
  std::size_t width_;
  PlanRow row_;
  transport::Curvature curvature_;
  Scratch<double> below_, above_, slope_, right_;
  Scratch<D> heads_;
};

}  // namespace

void transport_plan_forward(const TransportPlan& a) {
  const NoDenormals guard;
  for_rows(a.rows, 16 * a.n * a.thresholds, a.threads, [&](std::size_t begin, std::size_t end, Team) {
    PlanRow row(a);
    const Scratch<D> room(3 * a.thresholds);
    for (std::size_t at = begin; at < end; ++at) {
      row.at(at);
      if (a.ks == nullptr) write_plan(a, row, a.out + at * a.columns * a.n);
      else write_log_below(a, row, at, room.get());
    }
  });
}

void transport_plan_backward(const TransportPlan& a) {
  const NoDenormals guard;
  for_rows(a.rows, 64 * a.n * a.thresholds, a.threads, [&](std::size_t begin, std::size_t end, Team) {
    Gradient gradient(a);
    for (std::size_t at = begin; at < end; ++at) a.cold[at] = !gradient.find(at);
  });
}

}  // namespace softorder
