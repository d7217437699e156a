// What a pair costs by the difference u of its scores, and what it weighs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <numbers>

#include "simd/pack.hpp"

namespace softorder {

// A loss and its derivative in u.
template <class T> struct PairSlope {
  Pack<T> value, rate;
};

// log(1 + e^-u) = max(-u, 0) + log(1 + e), e = e^-|u|, whose derivative is -σ(-u).
struct LogisticPair {
  template <class T> static PairSlope<T> of(Pack<T> u) {
    const Pack<T> e = exp2_minus<T>(absolute<T>(u), Pack<T>{} + std::numbers::log2e_v<T>);
    const Pack<T> large = inverse<T>(T(1) + e);
    return {larger<T>(-u, Pack<T>{}) + log_above_one<T>(e), u >= T(0) ? -e * large : -large};
  }

 private:
  // log(1 + e) = 2 artanh(s), s = e/(2 + e) <= 1/3: what is small keeps its digits.
  template <class T> static Pack<T> log_above_one(Pack<T> e) {
    constexpr std::size_t terms = is_single<T> ? 8 : 17;
    constexpr auto series = [] {
      struct { T of[terms]; } found{};
      for (std::size_t i = 0; i < terms; ++i) found.of[i] = T(1) / T(2 * (terms - i) - 1);
      return found;
    }();
    const Pack<T> s = e * inverse<T>(T(2) + e);
    return T(2) * s * horner<T>(series.of, s * s);
  }
};

// max(0, 1 - u).
struct HingePair {
  template <class T> static PairSlope<T> of(Pack<T> u) {
    const Pack<T> missing = T(1) - u;
    return {missing <= T(0) ? Pack<T>{} : missing, missing > T(0) ? Pack<T>{} - T(1) : Pack<T>{}};
  }
};

// Elements of one list, lowest grade first, with room for a whole pack behind them.
template <class T> struct ListElements {
  using Place = typename Number<T>::Integer;
  T *x, *own, *discount;  // discount: of their places
  Place* place;           // from 0
};

// What the weights of pairs are made of.
enum class Weighing : std::int32_t { product, first, exchange, bound, both };

template <class T> inline Pack<T> looked_up(const T* table, Mask<T> place) {
#if defined(__AVX512F__)
  if constexpr (is_single<T>) return Pack<T>(_mm512_i32gather_ps((__m512i)place, table, 4));
  else return Pack<T>(_mm512_i64gather_pd((__m512i)place, table, 8));
#elif defined(__AVX2__)
  if constexpr (is_single<T>) return Pack<T>(_mm256_i32gather_ps(table, (__m256i)place, 4));
  else return Pack<T>(_mm256_i64gather_pd(table, (__m256i)place, 8));
#else
  Pack<T> found;
  for (std::size_t lane = 0; lane < kLanes<T>; ++lane) found[lane] = table[place[lane]];
  return found;
#endif
}

// The weights of pairs of one element, the preferred one, and those from j on.
template <class T, Weighing weighing> class PairWeights {
 public:
  PairWeights(const ListElements<T>& list, const T* bound, std::size_t first, std::size_t i)
      : list_(list),
        bound_(bound),
        own_(list.own[i]),
        discount_(list.discount[i]),
        place_(list.place[i]),
        first_(std::size_t(place_) < first ? std::numeric_limits<Place>::max() : Place(first)) {}

  Pack<T> at(std::size_t j) const {
    if constexpr (weighing == Weighing::product) return own_ * load(list_.own + j);
    if constexpr (weighing == Weighing::first) return Pack<T>{} + own_ * discount_;
    const Pack<T> gained = absolute<T>(own_ - load(list_.own + j));
    if constexpr (weighing == Weighing::exchange) return gained * exchanged(j);
    if constexpr (weighing == Weighing::bound) return gained * bound(j);
    return gained * (exchanged(j) + bound(j));
  }

 private:
  using Place = typename ListElements<T>::Place;

  Pack<T> exchanged(std::size_t j) const { return absolute<T>(discount_ - load(list_.discount + j)); }
  Pack<T> bound(std::size_t j) const {
    Mask<T> there;
    std::memcpy(&there, list_.place + j, sizeof there);
    const Mask<T> apart = there - place_;
    return there < first_ ? looked_up<T>(bound_, apart < 0 ? -apart : apart) : Pack<T>{};
  }

  const ListElements<T>& list_;
  const T* bound_;
  T own_, discount_;
  Place place_, first_;  // first_: of the other one's place, where a bound ends
};

}  // namespace softorder
