// The steps of soft comparators: for u = (b - a)/τ, how much of the values a and b is swapped, and
// how quickly that falls with u.
#pragma once

#include <cmath>

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

// Lane by lane, which compilers turn into one instruction.
template <class T> inline Pack<T> square_root(Pack<T> x) {
  for (std::size_t i = 0; i < kLanes<T>; ++i) x[i] = std::sqrt(x[i]);
  return x;
}

// The logistic step at u/(|u| + ε)^λ, for λ = 1/2 or 1/4: the activation replacement trick.
template <class T, int kOneOver> struct LogisticPhi {
  static_assert(kOneOver == 2 || kOneOver == 4);
  static constexpr T kUnit = 1;
  static constexpr T kNearZero = T(1e-10);  // ε: keeps the slope finite at 0
  static constexpr T kFar = is_single<T> ? T(1e18) : T(1e150);  // where the tail is 0 long since
  static Values<T> values(Pack<T> z, Pack<T> scale) {
    const Pack<T> a = smaller<T>(z * scale, Pack<T>{} + kFar), r = a + kNearZero;
    const Pack<T> root = square_root<T>(r);
    const Pack<T> shrunk = T(1) / (kOneOver == 2 ? root : square_root<T>(root));
    const Values<T> at = Logistic<T>::values(a * shrunk, Pack<T>{} + Logistic<T>::kUnit);
    return {at.tail, at.pdf * shrunk * (T(1) - a / (T(kOneOver) * r)), Pack<T>{}};
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
