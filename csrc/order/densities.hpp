// The densities whose ranks, sorts and thresholds take linear time, by number.
#pragma once

#include "failure.hpp"
#include "order/laplace.hpp"
#include "order/uniform.hpp"
#include "threshold/topk.hpp"

namespace softorder {

// Calls run.operator()<T, Order>() with the type of the scores and the class that orders rows of them.
template <class Run> void with_order(std::int32_t density, std::int32_t wide, Run run) {
  const NoDenormals guard;
  switch (static_cast<Density>(density)) {
    case Density::laplace:
      return wide ? run.template operator()<double, LaplaceOrder>() : run.template operator()<float, LaplaceOrder>();
    case Density::uniform:
      return wide ? run.template operator()<double, UniformOrder>() : run.template operator()<float, UniformOrder>();
    default: throw unknown_choice();
  }
}

}  // namespace softorder
