// soft top-k over the rows of a matrix: thresholds, forward and backward.
#include "kernels.hpp"

#include "failure.hpp"
#include "threshold/backward.hpp"
#include "threshold/forward.hpp"

namespace softorder {
namespace {

template <class F, class T> void forward(const TopkForward& a) {
  const Layout layout(a.layout, a.rows, a.n, a.offsets);
  for_rows_of(a, [&](std::size_t begin, std::size_t end, Team team) {
    Forward<F, T> rows(a, layout, team, longest_of(a, begin, end));
    a.offsets ? rows.run_ragged(begin, end) : rows.run(begin, end);
  });
}

template <class F, class T> void backward(const TopkBackward& a) {
  const Layout layout(a.layout, a.rows, a.n, a.offsets);
  for_rows_of(a, [&](std::size_t begin, std::size_t end, Team team) {
    if (!a.offsets) return Backward<F, T>(a, layout, team).run(begin, end);
    TopkBackward one = a;  // its n is that of the row at work
    Backward<F, T> rows(one, layout, team);
    for (std::size_t row = begin; row < end; ++row) {
      one.n = length_of(a, row);
      rows.run(row, row + 1);
    }
  });
}

template <class T> void run_forward(const TopkForward& a) {
  switch (static_cast<Density>(a.density)) {
    case Density::laplace: return forward<Laplace<T>, T>(a);
    case Density::logistic: return forward<Logistic<T>, T>(a);
    case Density::normal: return forward<Normal<T>, T>(a);
    case Density::cauchy: return forward<Cauchy<T>, T>(a);
    case Density::uniform: return forward<Uniform<T>, T>(a);
  }
  throw unknown_choice();
}

template <class T> void run_backward(const TopkBackward& a) {
  switch (static_cast<Density>(a.density)) {
    case Density::laplace: return backward<Laplace<T>, T>(a);
    case Density::logistic: return backward<Logistic<T>, T>(a);
    case Density::normal: return backward<Normal<T>, T>(a);
    case Density::cauchy: return backward<Cauchy<T>, T>(a);
    case Density::uniform: return backward<Uniform<T>, T>(a);
  }
  throw unknown_choice();
}

bool is_double(std::int32_t format) {
  switch (static_cast<FloatFormat>(format)) {
    case FloatFormat::float16:
    case FloatFormat::bfloat16:
    case FloatFormat::float32: return false;
    case FloatFormat::float64: return true;
  }
  throw unknown_choice();
}

}  // namespace

void topk_forward(const TopkForward& a) {
  const NoDenormals guard;
  return is_double(a.format) ? run_forward<double>(a) : run_forward<float>(a);
}

void topk_backward(const TopkBackward& a) {
  const NoDenormals guard;
  return is_double(a.format) ? run_backward<double>(a) : run_backward<float>(a);
}

}  // namespace softorder
