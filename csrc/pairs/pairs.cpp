// Sums over the pairs of a list in which one element is preferred to the other, and their gradients:
//
//   Σ w_ij φ(x_i - x_j) over pairs with grade_i > grade_j
//
// Elements come in the order of their grades, so that those below the i-th are the first so many: no pair is looked
// at in vain, and an element of the lowest grade never is one that is preferred. Terms are float for rows of float;
// sums over more than a few of them are double.
#include "kernels.hpp"

#include <algorithm>
#include <limits>

#include "failure.hpp"
#include "pairs/terms.hpp"
#include "scratch.hpp"
#include "sort/sorted_row.hpp"
#include "team.hpp"

namespace softorder {
namespace {

struct Sums {
  double terms = 0, weights = 0, pairs = 0;
  Sums& operator+=(const Sums& o) {
    terms += o.terms, weights += o.weights, pairs += o.pairs;
    return *this;
  }
};

// A list in the order of its grades.
template <class T> class List {
 public:
  explicit List(const Pairs& a)
      : a_(a), room_((a.n / kLanes<T> + 1) * kLanes<T>), numbers_(5 * room_), order_(3 * room_), words_(2 * a.n),
        places_(room_) {
    elements = {numbers_.get(), numbers_.get() + room_, numbers_.get() + 2 * room_, places_.get()};
    grades_ = numbers_.get() + 3 * room_, below_ = order_.get() + 2 * room_;
  }

  void read(std::size_t row, Team team) {
    sort_row<T>(of_row(a_.grades, row), a_.n, grades_, order_.get(), words_.get(), team);
    absent_ = std::size_t(std::upper_bound(grades_, grades_ + a_.n, -kInfinity<T>) - grades_);
    count = a_.n - absent_;
    const T *const x = of_row(a_.x, row), *const own = a_.own ? of_row(a_.own, row) : nullptr;
    std::fill_n(elements.x, room_, T(0)), std::fill_n(elements.own, room_, T(0));
    for (std::size_t i = 0; i < count; ++i) elements.x[i] = x[source(i)], elements.own[i] = own ? own[source(i)] : T(1);
    for (std::size_t i = 0; i < count; ++i) {
      const bool equal = i > 0 && grades_[absent_ + i] == grades_[absent_ + i - 1];
      below_[i] = equal ? below_[i - 1] : std::int32_t(i);
    }
    find_places(row, team);
  }

  std::size_t source(std::size_t i) const { return std::size_t(order_.get()[absent_ + i]); }

  // How many elements are below the i-th.
  std::size_t below(std::size_t i) const { return std::size_t(below_[i]); }

  // Σ gain/D of the order that the grades ask for.
  double best() const {
    const T* const discount = static_cast<const T*>(a_.discount);
    double sum = 0;
    for (std::size_t i = 0; i < count; ++i) sum += double(elements.own[count - 1 - i]) * double(discount[i]);
    return sum;
  }

  std::size_t room() const { return room_; }

  ListElements<T> elements;
  std::size_t count;

 private:
  const T* of_row(const void* matrix, std::size_t row) const { return static_cast<const T*>(matrix) + row * a_.n; }

  // Where the elements are in the order of the scores, the largest first and equal ones as they come.
  void find_places(std::size_t row, Team team) {
    using Place = typename ListElements<T>::Place;
    std::fill_n(elements.place, room_, Place(0)), std::fill_n(elements.discount, room_, T(0));
    if (!a_.scores) return;
    T *const falling = elements.discount, *const sorted = numbers_.get() + 4 * room_;
    const T* const scores = of_row(a_.scores, row);
    for (std::size_t i = 0; i < a_.n; ++i) falling[i] = -scores[i];
    std::int32_t* const ranked = order_.get() + room_;
    sort_row<T>(falling, a_.n, sorted, ranked, words_.get(), team);
    std::int32_t* const place = reinterpret_cast<std::int32_t*>(words_.get());  // not needed any more
    for (std::size_t p = 0; p < a_.n; ++p) place[ranked[p]] = std::int32_t(p);
    const T* const discount = static_cast<const T*>(a_.discount);
    std::fill_n(falling, room_, T(0));
    for (std::size_t i = 0; i < count; ++i) {
      elements.place[i] = place[source(i)], elements.discount[i] = discount[place[source(i)]];
    }
  }

  const Pairs& a_;
  std::size_t room_, absent_;
  Scratch<T> numbers_;
  Scratch<std::int32_t> order_;
  Scratch<Word> words_;
  Scratch<typename ListElements<T>::Place> places_;
  T* grades_;
  std::int32_t* below_;
};

// The sums of a few of the elements, and the gradient if it is wanted.
template <class T, class Loss, Weighing weighing> class Part {
 public:
  Part(const Pairs& a, const List<T>& list)
      : a_(a), list_(list), short_(a.gradient ? list.room() : 0), total_(a.gradient ? list.room() : 0) {
    if (!a.gradient) return;
    std::fill_n(short_.get(), list.room(), T(0)), std::fill_n(total_.get(), list.room(), 0.0);
  }

  // Of the elements begin, begin + step, ...
  Sums over(std::size_t begin, std::size_t step) {
    Sums sums;
    for (std::size_t i = begin, done = 0; i < list_.count; i += step) {
      const std::size_t below = list_.below(i);
      if (below == 0) continue;
      if (a_.gradient) sums += below_of<true>(i, below);
      else sums += below_of<false>(i, below);
      sums.pairs += double(below);
      if (a_.gradient && ++done % kFew == 0) flush();
    }
    if (a_.gradient) flush();
    return sums;
  }

  const double* gradient() const { return total_.get(); }

 private:
  static constexpr std::size_t kFew = 64;  // terms that are added up in T

  template <bool slopes> Sums below_of(std::size_t i, std::size_t below) {
    const PairWeights<T, weighing> weights(list_.elements, static_cast<const T*>(a_.bound), a_.first, i);
    const T own = list_.elements.x[i];
    const T *const x = list_.elements.x;
    T* const pulled = short_.get();
    Sums sums;
    for (std::size_t at = 0; at < below;) {
      Pack<T> terms{}, taken{}, pull{};
      const auto take = [&](std::size_t j, auto valid) {
        const Pack<T> weight = valid(weights.at(j));
        const PairSlope<T> loss = Loss::template of<T>(own - load(x + j));
        terms += valid(weight * loss.value);
        if constexpr (weighing == Weighing::product) taken += weight;
        if constexpr (!slopes) return;
        const Pack<T> rate = valid(weight * loss.rate);
        pull += rate;
        store<T>(pulled + j, load(pulled + j) - rate);
      };
      const std::size_t end = std::min(below, at + kFew * kLanes<T>);
      for (; at + kLanes<T> <= end; at += kLanes<T>) take(at, [](Pack<T> values) { return values; });
      if (at < end) {
        const Mask<T> inside = first_lanes_of(end - at);
        take(at, [=](Pack<T> values) { return inside ? values : Pack<T>{}; });
        at = end;
      }
      sums.terms += sum_lanes(terms), sums.weights += sum_lanes(taken);
      if constexpr (slopes) total_.get()[i] += sum_lanes(pull);
    }
    return sums;
  }

  static Mask<T> first_lanes_of(std::size_t count) {
    Mask<T> lane;
    for (std::size_t i = 0; i < kLanes<T>; ++i) lane[i] = i < count ? -1 : 0;
    return lane;
  }

  void flush() {
    T* const few = short_.get();
    double* const all = total_.get();
#pragma omp simd
    for (std::size_t j = 0; j < list_.count; ++j) all[j] += double(few[j]), few[j] = T(0);
  }

  const Pairs& a_;
  const List<T>& list_;
  Scratch<T> short_;
  Scratch<double> total_;
};

template <class T, class Loss, Weighing weighing> void run_row(const Pairs& a, std::size_t row, List<T>& list, Team team) {
  list.read(row, team);
  T* const out = a.gradient ? static_cast<T*>(a.gradient) + row * a.n : nullptr;
  if (out) std::fill_n(out, a.n, T(0));
  Sums sums[Team::kMost];
  Scratch<double> gradients(out ? std::size_t(team.size) * list.count : 0);
  team.split_evenly(std::size_t(team.size), [&](std::size_t member, std::size_t) {
    Part<T, Loss, weighing> part(a, list);
    sums[member] = part.over(member, std::size_t(team.size));
    if (out) std::copy_n(part.gradient(), list.count, gradients.get() + member * list.count);
  });
  for (int member = 1; member < team.size; ++member) sums[0] += sums[member];
  a.found[row] = sums[0].terms, a.found[2 * a.rows + row] = sums[0].pairs;
  a.found[a.rows + row] = weighing == Weighing::product ? sums[0].weights : list.best();
  if (!out) return;
  for (std::size_t i = 0; i < list.count; ++i) {
    double pull = 0;
    for (int member = 0; member < team.size; ++member) pull += gradients.get()[std::size_t(member) * list.count + i];
    out[list.source(i)] = T(pull);
  }
}

template <class T, class Loss, Weighing weighing> void run(const Pairs& a) {
  const std::size_t work = a.n * (1 + a.n / 16);  // in elements, as for_rows counts
  for_rows(a.rows, work, a.threads, [&](std::size_t begin, std::size_t end, Team team) {
    List<T> list(a);
    for (std::size_t row = begin; row < end; ++row) run_row<T, Loss, weighing>(a, row, list, team);
  });
}

template <class T, class Loss> void run_by(const Pairs& a) {
  switch (static_cast<Weighing>(a.weighing)) {
    case Weighing::product: return run<T, Loss, Weighing::product>(a);
    case Weighing::first: return run<T, Loss, Weighing::first>(a);
    case Weighing::exchange: return run<T, Loss, Weighing::exchange>(a);
    case Weighing::bound: return run<T, Loss, Weighing::bound>(a);
    case Weighing::both: return run<T, Loss, Weighing::both>(a);
  }
  throw unknown_choice();
}

}  // namespace

void pairs(const Pairs& a) {
  const NoDenormals guard;
  if (a.hinge) return a.wide ? run_by<double, HingePair>(a) : run_by<float, HingePair>(a);
  return a.wide ? run_by<double, LogisticPair>(a) : run_by<float, LogisticPair>(a);
}

}  // namespace softorder
