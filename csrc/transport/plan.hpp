// The plan of a row, a pack of scores at a time.
#pragma once

#include <numbers>

#include "simd/logarithm.hpp"
#include "transport/row.hpp"

namespace softorder::transport {

using D = Pack<double>;

// The open thresholds of a row: centre + rest/scale.
struct Thresholds {
  const double* centre;
  const double* rest;
};

// log P of a pack of scores at all anchors, but for a constant, into `logs`; `room` is for as much. They are sums of steps
// from the best anchor outwards, which stay small: Σ_{l<a} min(d_l, 0) - Σ_{l≥a} max(d_l, 0) = Σ_{l<a} d_l - Σ_l max(d_l, 0).
// Returns the largest of them.
inline D logits(D gains, double scale, Thresholds at, std::size_t open, D* logs, D* room) {
  D down{};
  for (std::size_t l = 0; l < open; ++l) {
    const D step = steps_at(gains, at.centre[l], scale) - at.rest[l], fall = smaller<double>(step, D{});
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
inline D weights(D gains, double scale, Thresholds at, std::size_t open, D* plan, D* room) {
  const D most = logits(gains, scale, at, open, plan, room);
  D sum{};
  for (std::size_t a = 0; a <= open; ++a) {
    plan[a] = exp2_minus<double>(most - plan[a], D{} + std::numbers::log2e);
    sum += plan[a];
  }
  return sum;
}

// log P, into `logs`.
inline void log_plan(D gains, double scale, Thresholds at, std::size_t open, D* logs, D* room) {
  const D most = logits(gains, scale, at, open, logs, room);
  D sum{};
  for (std::size_t a = 0; a <= open; ++a) sum += exp2_minus<double>(most - logs[a], D{} + std::numbers::log2e);
  const D all = most + log<double>(sum);
  for (std::size_t a = 0; a <= open; ++a) logs[a] -= all;
}

}  // namespace softorder::transport
