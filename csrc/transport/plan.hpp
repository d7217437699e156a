// The plan of a row, a pack of scores at a time.
#pragma once

#include <numbers>

#include "simd/logarithm.hpp"
#include "transport/row.hpp"

namespace softorder::transport {

using D = Pack<double>;

// With step(l) the steps of a pack of scores at an open threshold, from its centre, in units of ε:
// log P of the pack at all anchors, but for a constant, into `logs`; `room` is for as much. They are sums of steps
// from the best anchor outwards, which stay small: Σ_{l<a} min(d_l, 0) - Σ_{l≥a} max(d_l, 0) = Σ_{l<a} d_l - Σ_l max(d_l, 0).
// Returns the largest of them.
template <class Step> inline D logits(Step step_at, const double* rest, std::size_t open, D* logs, D* room) {
  D down{};
  for (std::size_t l = 0; l < open; ++l) {
    const D step = step_at(l) - rest[l], fall = smaller<double>(step, D{});
    logs[l] = down, room[l] = step - fall;
    down += fall;
  }
  D up{}, most = down;
  logs[open] = down;
  for (std::size_t l = open; l-- > 0;) {
    up += room[l];
    logs[l] -= up;
    most = larger<double>(most, logs[l]);
  }
  return most;
}

// P times what is returned, into `plan`.
template <class Step> inline D weights(Step step_at, const double* rest, std::size_t open, D* plan, D* room) {
  const D most = logits(step_at, rest, open, plan, room);
  D sum{};
  for (std::size_t a = 0; a <= open; ++a) {
    plan[a] = exp2_minus<double>(most - plan[a], D{} + std::numbers::log2e);
    sum += plan[a];
  }
  return sum;
}

// log P, into `logs`.
template <class Step> inline void log_plan(Step step_at, const double* rest, std::size_t open, D* logs, D* room) {
  const D most = logits(step_at, rest, open, logs, room);
  D sum{};
  for (std::size_t a = 0; a <= open; ++a) sum += exp2_minus<double>(most - logs[a], D{} + std::numbers::log2e);
  const D all = most + log<double>(sum);
  for (std::size_t a = 0; a <= open; ++a) logs[a] -= all;
}

}  // namespace softorder::transport
