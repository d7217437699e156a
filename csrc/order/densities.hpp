// The densities whose ranks, sorts and thresholds take linear time, by number.
#pragma once

#include "failure.hpp"
#include "order/laplace.hpp"
#include "order/smooth.hpp"
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

// The same for thresholds, which every density has: all in double.
template <class Run> void with_thresholds(std::int32_t density, std::int32_t wide, Run run) {
  const NoDenormals guard;
  const auto with = [&]<class T>(T) {
    switch (static_cast<Density>(density)) {
      case Density::laplace: return run.template operator()<T, LaplaceOrder<double>>();
      case Density::uniform: return run.template operator()<T, UniformOrder<double>>();
      case Density::logistic: return run.template operator()<T, SmoothOrder<Logistic<double>, T>>();
      case Density::normal: return run.template operator()<T, SmoothOrder<Normal<double>, T>>();
      case Density::cauchy: return run.template operator()<T, SmoothOrder<Cauchy<double>, T>>();
      default: throw unknown_choice();
    }
  };
  wide ? with(double{}) : with(float{});
}

}  // namespace softorder
