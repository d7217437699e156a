// The steps of soft comparators: for u = (b - a)/τ, how much of the values a and b is swapped, and
// how quickly that falls with u.
#pragma once

#include "densities.hpp"

namespace softorder {

// The step 1/2 + u/(1 + 2|u|).
template <class T> struct Reciprocal {
  static constexpr T kUnit = 1;
  static Values<T> values(Pack<T> z, Pack<T> scale) {
    const Pack<T> inner = T(1) / (T(1) + T(2) * z * scale);
    return {T(0.5) * inner, inner * inner, Pack<T>{}};
  }
};

// The step u + 1/2 up to |u| = 1/4, and 1 - 1/(16 |u|) beyond.
template <class T> struct Optimal {
  static constexpr T kUnit = 1;
  static Values<T> values(Pack<T> z, Pack<T> scale) {
    const Pack<T> a = z * scale, one = Pack<T>{} + T(1);
    const Mask<T> near = a <= T(0.25);
    const Pack<T> quarter = T(0.25) / (near ? one : a);
    return {near ? T(0.5) - a : T(0.25) * quarter, near ? one : quarter * quarter, Pack<T>{}};
  }
};

// For z = b - a: what is swapped, F(-u), and the slope f(u) = -dF(-u)/du.
template <class T> struct Swap {
  Pack<T> part, slope;
};

template <class F, class T> inline Swap<T> swap_at(Pack<T> z, Pack<T> scale) {
  const Values<T> at = F::values(absolute<T>(z), scale);
  return {z < T(0) ? T(1) - at.tail : at.tail, at.pdf};
}

}  // namespace softorder
