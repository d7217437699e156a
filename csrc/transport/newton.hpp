// Newton's method on the semi-dual of one row, as src/softorder/kernels/transport/reference.py has it.
#pragma once

#include "transport/curvature.hpp"

namespace softorder::transport {

struct Found {
  std::int32_t iterations = 0;
  double error = 0;
};

// Memory for rows of up to n scores and so many thresholds.
class Newton {
 public:
  Newton(std::size_t n, std::size_t thresholds)
      : width_(in_packs(n)), row_(n), curvature_(thresholds), steps_(thresholds * width_), below_((thresholds + 1) * width_), above_(thresholds * width_),
        plan_(thresholds + 1), room_(thresholds + 1), astray_(thresholds + 1), numbers_(6 * (thresholds + 1)),
        thresholds_(thresholds) {}

  Row& row() { return row_; }

  // `rest` is 0 at the beginning; centre and levels are those of the open thresholds.
  Found solve(const double* centre, const double* levels, double* rest, double tolerance, std::int32_t most) {
    centre_ = centre, levels_ = levels;
    const std::size_t open = row_.open;
    double* const base = number(0);
    std::fill_n(base, open, 0.0), std::fill_n(step(), open, 0.0), std::fill_n(z(), open, 0.0);
    start();
    double share = 0, slope = 0;
    Found found;
    kept_ = false;
    for (std::int32_t turn = 0; turn < most; ++turn) {
      found.error = look();
      ++found.iterations;
      const bool left = found.error > tolerance;
      if (turn == 0) {
        sinkhorn_step(step());
        std::copy_n(z(), open, base);
        share = 1, slope = -kInfinity;
      } else {
        const double end = dot(residual(), step());
        if (end > -kOvershot * slope) {  // a shorter step to the trial
          share *= std::clamp(slope / (slope - end), 0.1, 0.5);
        } else {
          std::copy_n(z(), open, base);
          newton_step();
          share = 1, slope = dot(residual(), step());
        }
      }
      // The next step is known already, and where this one is good it can only help.
      double moved = 0;
      for (std::size_t l = 0; l < open; ++l) {
        const double to = base[l] + share * step()[l];
        moved = std::max(moved, std::abs(to - z()[l]));
        z()[l] = to;
      }
      moved_ += moved;
      std::copy_n(left ? base : z(), open, rest);
      if (!left) break;
    }
    return found;
  }

 private:
  static constexpr double kOvershot = 0.5;   // of the slope that a step began with: it is taken back
  static constexpr double kPrecision = 1e-9; // of J: it decides how fast this is, and not where it ends
  static constexpr double kStill = 1e-3;     // thresholds that moved less leave J what it was

  double* number(std::size_t which) { return numbers_.get() + which * (thresholds_ + 1); }
  double* step() { return number(1); }
  double* z() { return number(2); }
  double* residual() { return number(3); }
  double* hard() { return number(4); }

  double dot(const double* a, const double* b) const {
    double sum = 0;
    for (std::size_t l = 0; l < row_.open; ++l) sum += a[l] * b[l];
    return sum;
  }

  // Steps of scores at the centres, and how many are below each, but for what its level asks.
  void start() {
    for (std::size_t l = 0; l < row_.open; ++l) {
      D count{};
      for (std::size_t i = 0; i < row_.width; i += kScores) {
        const D steps = steps_at(load(row_.begin() + i), centre_[l], row_.scale);
        store<double>(steps_.get() + l * row_.width + i, steps);
        count += steps < 0.0 ? D{} + 1.0 : D{};
      }
      hard()[l] = sum_lanes(count) - levels_[l];
    }
  }

  // Q and U at z, and the largest residual: Σ Q_j - L_j by what is on the wrong side, so that no digits are lost when that
  // is little.
  double look() {
    const std::size_t open = row_.open, width = row_.width;
    D *const plan = plan_.get(), *const astray = astray_.get();
    std::fill_n(astray, open, D{});
    for (std::size_t i = 0; i < width; i += kScores) {
      const auto step = [&](std::size_t l) { return load(steps_.get() + l * width + i); };
      const D share = 1.0 / weights(step, z(), open, plan, room_.get());
      D sum{};
      for (std::size_t l = 0; l < open; ++l) {
        sum += plan[l];
        store<double>(below_.get() + l * width + i, sum * share);
      }
      sum = D{};
      for (std::size_t l = open; l-- > 0;) {
        sum += plan[l + 1];
        const D above = sum * share;
        store<double>(above_.get() + l * width + i, above);
        const D below = load(below_.get() + l * width + i);
        astray[l] += step(l) < 0.0 ? -above : below;
      }
    }
    double error = 0;
    for (std::size_t l = 0; l < open; ++l) {
      const double off = residual()[l] = sum_lanes(astray[l]) + hard()[l];
      error = off != off ? off : std::max(error, std::abs(off));
    }
    return error;
  }

  void newton_step() {
    if (!kept_ || moved_ > kStill) {
      kept_ = curvature_.factorise(below_.get(), above_.get(), row_.open, row_.width, row_.sorted, kPrecision);
      moved_ = 0;
    }
    if (!kept_) return sinkhorn_step(step());
    for (std::size_t l = 0; l < row_.open; ++l) step()[l] = -residual()[l];
    curvature_.solve(step());
  }

  // Every anchor's weight changes by what it lacks, in the log domain.
  void sinkhorn_step(double* to) {
    const std::size_t open = row_.open, width = row_.width;
    double* const logs = below_.get();
    for (std::size_t i = 0; i < width; i += kScores) {
      const auto step = [&](std::size_t l) { return load(steps_.get() + l * width + i); };
      log_plan(step, z(), open, plan_.get(), room_.get());
      for (std::size_t a = 0; a <= open; ++a) store<double>(logs + a * width + i, plan_.get()[a]);
    }
    const double all = row_.beyond + double(row_.count);
    double before = 0;
    for (std::size_t a = 0; a <= open; ++a) {
      const double begin = a == 0 ? 0 : std::clamp(levels_[a - 1], 0.0, all);
      const double wanted = (a == open ? all : std::clamp(levels_[a], 0.0, all)) - begin;
      const double change = wanted > 0 ? std::log(wanted) - log_held(logs + a * width, a == open ? row_.beyond : 0) : 0;
      if (a > 0) to[a - 1] = before - change;
      before = change;
    }
  }

  // The logarithm of what an anchor holds, with those that are there for certain.
  double log_held(const double* logs, double certain) const {
    const auto at = [&](std::size_t i) {
      return i + kScores <= row_.count ? load(logs + i) : load_part(logs + i, row_.count - i, -kInfinity);
    };
    D top = D{} - kInfinity, sum{};
    for (std::size_t i = 0; i < row_.count; i += kScores) top = larger<double>(top, at(i));
    const double most = std::max(largest_lane(top), std::log(certain));
    for (std::size_t i = 0; i < row_.count; i += kScores) sum += exp2_minus<double>(most - at(i), D{} + std::numbers::log2e);
    return most + std::log(sum_lanes(sum) + std::exp(std::log(certain) - most));
  }

  std::size_t width_;
  Row row_;
  Curvature curvature_;
  Scratch<double> steps_, below_, above_;
  Scratch<D> plan_, room_, astray_;
  Scratch<double> numbers_;
  std::size_t thresholds_;
  const double* centre_ = nullptr;
  const double* levels_ = nullptr;
  bool kept_ = false;  // whether there is a factor of J; and how far thresholds went since then
  double moved_ = 0;
};

}  // namespace softorder::transport
