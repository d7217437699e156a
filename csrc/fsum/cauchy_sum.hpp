// F-sums of the Cauchy density, Σ_i w_i G((t_j - x_i)/τ), in time that is linear in the number of sources and
// targets: a fast multipole method on the line.
//
// Tails like 1/u are felt everywhere, but the further away the smoother. Boxes of targets and of sources
// (tree.hpp) are compared from the widest down:
//   1. more than kNear boxes apart, they meet as in smooth_sum.hpp: the moments Σ_i w_i T_l(b_i) of the sources,
//      times a table of 16 × 16 numbers, become a polynomial Σ_k c_k T_k(a) for the targets;
//   2. with at most kDirect pairs of places, all terms are summed directly;
//   3. the narrowest boxes, a fraction of τ wide, meet by tables also where they are neighbours;
//   4. all others are halved, and their halves compared.
// Whether a pair is halved depends on these two boxes alone, so that no lists are kept: two boxes of a level
// meet if their parents did not. Moments are joined on the way up and polynomials divided on the way down. Places
// that are equal count as one, so that no number of ties makes a pair of boxes crowded.
//
// The error. G has its poles at u = ±i. In b in [-1, 1], half a box, they are at least
//   2 (kNear + 1) - 1 from the middle of a box at distance > kNear, and 2τ/box from that of the narrowest boxes:
// for double (3 and 1/3) at 7 and 6i, on ellipses with ρ = 13.9 and 12.1; for float (1 and 2/3) at 3 and 3i, with
// ρ = 5.8 and 6.2. Interpolated at 16 Chebyshev nodes, a function with a pole of order p there misses about
// 16^(p-1)/(p-1)! ρ^-16 of its size at the near end: with p = 1 less than 1e-17 for double and 1e-12 for float, and
// with p = 4 (f'', the steepest) 3e-15 and 4e-10. Both places are interpolated, which costs the Lebesgue constant
// 2.8. So the error of a sum is below
//   1e-15 (for float 1e-11) Σ_i |w_i| max |G(v)| over |v - u_i| <= 1 + |u_i|/3,
// and a hundred times that for f'': below the rounding of the result. Nothing is left out, and every term keeps
// its relative accuracy, so that sums in wide gaps and weights as huge as G is small need no care.
#pragma once

#include "fsum/cauchy_law.hpp"
#include "fsum/moments.hpp"
#include "fsum/short_row.hpp"
#include "fsum/tree.hpp"
#include "team.hpp"

namespace softorder {

// The sources of a row, ready for sums at any targets; Precision: how accurate tables are.
template <class T, class Precision = T> class CauchySources {
 public:
  using Kernel = CauchyKernel;
  using Tables = CauchyTables<Precision>;
  using RootTables = Tables;

  // `weights` may be null: ones.
  CauchySources(const Places<T>& x, const double* weights, std::size_t m, double tau, Team team)
      : x_(x), weights_{weights}, m_(m), tau_(tau), inverse_(std::min(1 / tau, 1e300)), team_(team) {}

  // Calls write(j, step, value) for every target: its sum is step + value.
  template <class U, class Write>
  void sums(const Places<U>& t, std::size_t n, const Kernel& kernel, Tables& tables, Write write) {
    find<false>(t, n, kernel, tables);
    for (std::size_t j = 0; j < n; ++j) write(j, steps_[j], values_[j]);
  }

  // Calls write(j, step, value, slope, bend) for every target: FSum is step + value, and its first two derivatives by
  // t/τ are about slope and bend.
  template <class U, class Write> void sums_and_slopes(const Places<U>& t, std::size_t n, Tables& tables, Write write) {
    find<true>(t, n, Kernel{0, 0}, tables);
    for (std::size_t j = 0; j < n; ++j) write(j, steps_[j], values_[j], slopes_[j], bends_[j]);
  }

 private:
  static constexpr std::size_t kFew = 1 << 14, kDirect = 128;
  static constexpr int kNear = Tables::kNear;
  using Source = typename Tree<T>::Box;
  enum class Meeting { directly, by_table, as_halves };

  template <bool kSloped, class U> void find(const Places<U>& t, std::size_t n, const Kernel& kernel, Tables& tables) {
    values_.assign(n, 0.0);
    if (kSloped) slopes_.assign(n, 0.0), bends_.assign(n, 0.0);
    find_steps(t, n, kernel.derivative == 0);
    const double width = box_width(Tables::kBox * tau_);
    const auto [low, top] = std::minmax({Tree<T>::top_of(x_, m_, width), Tree<U>::top_of(t, n, width)});
    if (low < 0 || n == 0 || m_ <= kFew / n) {
      if (short_.empty() && m_ > 0) short_ = ShortRow(x_, weights_, m_);
      return team_.split(n, [&](std::size_t begin, std::size_t end, int) { all_pairs<kSloped>(t, begin, end, kernel); });
    }
    Tree<T> sources(x_, width);
    Tree<U> targets(t, width);
    sources.plant(m_, top), targets.plant(n, top);
    while (halve_crowded(targets, sources)) targets.grow(), sources.grow();
    tables.prepare(kernel, width * inverse_);
    find_moments(sources, tables.basis());
    meet<kSloped>(targets, sources, tables);
  }

  // The weight of the sources that are not above a target: by u, as the terms, which may underflow.
  template <class U> void find_steps(const Places<U>& t, std::size_t n, bool wanted) {
    steps_.assign(n, 0.0);
    if (!wanted) return;
    if (weights_.data && before_.empty()) before_ = weights_.prefix_sums(m_);
    for (std::size_t j = 0, below = 0; j < n; ++j) {
      while (below < m_ && t.minus(j, x_, below) * inverse_ >= 0) ++below;
      steps_[j] = before(below);
    }
  }
  double before(std::size_t source) const { return weights_.data ? before_[source] : double(source); }

  // ---- which boxes meet ----

  template <class Target> static Meeting meeting(const Target& a, const Source& b, int level) {
    if (a.size() * b.size() <= kDirect) return Meeting::directly;
    if (level == 0) return Meeting::by_table;
    return a.is_divisible() && b.is_divisible() ? Meeting::as_halves : Meeting::directly;
  }

  // Marks the boxes of the narrowest level that are to be halved; whether there are any.
  template <class U> static bool halve_crowded(Tree<U>& targets, Tree<T>& sources) {
    const int level = sources.bottom();
    auto& boxes = targets.level(level);
    auto& others = sources.level(level);
    bool any = false;
    for_near(boxes, others, kNear, 0, boxes.size(), [&](std::size_t box, std::size_t first, std::size_t last) {
      for (std::size_t i = first; i < last; ++i) {
        if (meeting(boxes[box], others[i], level) != Meeting::as_halves) continue;
        boxes[box].split = others[i].split = any = true;
      }
    });
    return any;
  }

  // ---- moments ----

  double* moments(const Tree<T>& tree, int level, std::size_t box) {
    return moments_[std::size_t(tree.top() - level)].data() + box * kTerms;
  }

  void find_moments(const Tree<T>& tree, const Chebyshev& basis) {
    moments_.resize(std::size_t(tree.top() - tree.bottom() + 1));
    for (int level = tree.bottom(); level <= tree.top(); ++level) {
      const auto& boxes = tree.level(level);
      moments_[std::size_t(tree.top() - level)].assign(boxes.size() * kTerms, 0.0);
      team_.split_evenly(boxes.size(), [&](std::size_t begin, std::size_t end) {
        for (std::size_t i = begin; i < end; ++i) {
          const Source& box = boxes[i];
          double* const found = moments(tree, level, i);
          if (!box.split) {
            const double middle = tree.middle(level, box), scale = 2 / tree.width_of(level);
            softorder::find_moments(x_, weights_, box.begin, box.end, middle, scale, found);
            continue;
          }
          const auto& halves = tree.level(level - 1);
          for (std::size_t k = box.child; k < halves.size() && halves[k].parent == i; ++k) {
            basis.join(moments(tree, level - 1, k), halves[k].is_upper(), found);
          }
        }
      });
    }
  }

  // ---- sums ----

  template <bool kSloped, class U> void meet(const Tree<U>& targets, const Tree<T>& sources, Tables& tables) {
    Vector<double> above, here;
    for (int level = targets.top(); level >= targets.bottom(); --level) {
      const auto& boxes = targets.level(level);
      if (boxes.size() + sources.level(level).size() > 2) tables.make_far(level);
      if (level == 0) tables.make_near();
      here.assign(boxes.size() * kTerms, 0.0);
      team_.split_evenly(boxes.size(), [&](std::size_t begin, std::size_t end) {
        for_near(boxes, sources.level(level), 2 * kNear + 1, begin, end, [&](std::size_t box, std::size_t first, std::size_t last) {
          double* const polynomial = here.data() + box * kTerms;
          meet_box<kSloped>(targets, sources, level, box, first, last, tables, polynomial);
          if (!above.empty()) tables.basis().divide(above.data() + boxes[box].parent * kTerms, boxes[box].is_upper(), polynomial);
          if (!boxes[box].split) evaluate<kSloped>(targets, level, boxes[box], polynomial);
        });
      });
      above.swap(here);
    }
  }

  // What one box of targets gets from the sources of its level whose parents its own parent has not met.
  template <bool kSloped, class U>
  void meet_box(const Tree<U>& targets, const Tree<T>& sources, int level, std::size_t box, std::size_t first, std::size_t last,
                const Tables& tables, double* polynomial) {
    const auto& target = targets.level(level)[box];
    const auto& others = sources.level(level);
    const auto met = [&](const Source& source) {
      if (level == targets.top()) return false;
      const auto& a = targets.level(level + 1)[target.parent];
      const auto& b = sources.level(level + 1)[source.parent];
      return std::fabs(a.index - b.index) > kNear || meeting(a, b, level + 1) != Meeting::as_halves;
    };
    Gain gain;
    std::size_t from = 0, to = 0;  // the places that are to be summed directly
    const auto flush = [&] {
      if (from < to) add_terms<kSloped>(targets.places(), target, from, to, weights_, tables.kernel());
      from = to;
    };
    for (std::size_t i = first; i < last; ++i) {
      const Source& source = others[i];
      if (met(source)) continue;
      const double apart = target.index - source.index;
      const int distance = int(std::fabs(apart));
      if (distance > kNear) {
        gain.add(tables.far(level, distance), moments(sources, level, i), apart < 0);
        continue;
      }
      const Meeting how = meeting(target, source, level);
      if (how == Meeting::by_table) {
        gain.add(tables.near(distance), moments(sources, level, i), apart < 0);
        if (distance == 0 && tables.kernel().derivative == 0) step_half(target, source, moments(sources, level, i)[0]);
      } else if (how == Meeting::directly && source.tied) {
        const Weights all{moments(sources, level, i), source.begin};
        add_terms<kSloped>(targets.places(), target, source.begin, source.begin + 1, all, tables.kernel());
      } else if (how == Meeting::directly) {
        if (source.begin != to) flush(), from = source.begin;
        to = source.end;
      }
    }
    flush();
    gain.finish(tables.kernel().parity(), polynomial);
  }

  // A table of F less 1/2 in a box wants half of its weight as the step.
  template <class Target> void step_half(const Target& target, const Source& source, double weight) {
    const double step = before(source.begin) + 0.5 * weight;
    for (std::size_t j = target.begin; j < target.end; ++j) values_[j] += step - steps_[j];
  }

  // Adds the sources [from, to) to a box of targets.
  template <bool kSloped, class U, class Target>
  void add_terms(const Places<U>& t, const Target& target, std::size_t from, std::size_t to, const Weights& weights,
                 const Kernel& kernel) {
    if (!target.tied) return add_terms<kSloped>(t, target.begin, target.end, from, to, weights, kernel);
    const std::size_t j = target.begin;
    const double value = values_[j], slope = kSloped ? slopes_[j] : 0.0, bend = kSloped ? bends_[j] : 0.0;
    add_terms<kSloped>(t, j, j + 1, from, to, weights, kernel);
    for (std::size_t k = j + 1; k < target.end; ++k) {
      values_[k] += values_[j] - value;
      if (kSloped) slopes_[k] += slopes_[j] - slope, bends_[k] += bends_[j] - bend;
    }
  }

  template <bool kSloped, class U>
  void add_terms(const Places<U>& t, std::size_t begin, std::size_t end, std::size_t from, std::size_t to, const Weights& weights,
                 const Kernel& kernel) {
    for (std::size_t j = begin; j < end; ++j) {
      const double value = double(t.value[j]), rest = t.rest ? double(t.rest[j]) : 0.0;
      Term total;
      for (std::size_t i = from; i < to; i += kLanes<double>) {
        const std::size_t count = std::min(kLanes<double>, to - i), there = std::min(kLanes<double>, m_ - i);
        total.template add<kSloped>(-inverse_ * differences(x_, i, there, value, rest), weights.load(i, count), kernel);
      }
      keep<kSloped>(j, total);
    }
  }

  template <bool kSloped, class U>
  void all_pairs(const Places<U>& t, std::size_t begin, std::size_t end, const Kernel& kernel) {
    for (std::size_t j = begin; j < end; ++j) {
      Term total;
      short_.each(double(t.value[j]), t.rest ? double(t.rest[j]) : 0.0, [&](Pack<double> apart, Pack<double> w) {
        total.template add<kSloped>(-inverse_ * apart, w, kernel);
      });
      keep<kSloped>(j, total);
    }
  }

  struct Term {
    Pack<double> value{}, slope{}, bend{};

    template <bool kSloped> [[gnu::always_inline]] void add(Pack<double> u, Pack<double> w, const Kernel& kernel) {
      value += w * kernel(u);
      if (!kSloped) return;
      const Pack<double> h = w * Kernel::pi_pdf(u);
      slope += h, bend += h * Kernel::fall(u);
    }
  };

  template <bool kSloped> void keep(std::size_t j, const Term& total) {
    values_[j] += sum_lanes(total.value);
    if (!kSloped) return;
    slopes_[j] += std::numbers::inv_pi * sum_lanes(total.slope);
    bends_[j] += std::numbers::inv_pi * sum_lanes(total.bend);
  }

  template <bool kSloped, class U, class Target>
  void evaluate(const Tree<U>& tree, int level, const Target& box, const double* polynomial) {
    const double middle = tree.middle(level, box), scale = 2 / tree.width_of(level);
    double slopes[kTerms], bends[kTerms];
    if (kSloped) chebyshev_derivative(polynomial, scale * tau_, slopes), chebyshev_derivative(slopes, scale * tau_, bends);
    for (std::size_t j = box.begin; j < box.end; j += kLanes<double>) {
      const std::size_t count = std::min(kLanes<double>, box.end - j);
      const Pack<double> a = scale * differences(tree.places(), j, count, middle, 0.0), value = chebyshev_sum(polynomial, a);
      for (std::size_t k = 0; k < count; ++k) values_[j + k] += value[k];
      if (!kSloped) continue;
      const Pack<double> slope = chebyshev_sum(slopes, a), bend = chebyshev_sum(bends, a);
      for (std::size_t k = 0; k < count; ++k) slopes_[j + k] += slope[k], bends_[j + k] += bend[k];
    }
  }

  Places<T> x_;
  Weights weights_;
  std::size_t m_;
  double tau_, inverse_;
  Team team_;
  ShortRow short_;
  Vector<double> before_;                  // the weight of the first sources
  Vector<double> steps_, values_, slopes_, bends_;  // of the targets
  Vector<Vector<double>> moments_;         // [level][box][term], the widest first
};

template <class T, class Precision> void cauchy_fsum(const FsumRow<T>& row, CauchyTables<Precision>& tables, Team team) {
  Scratch<double> weights(row.weights ? row.m : 0);
  if (row.weights) std::copy(row.weights, row.weights + row.m, weights.get());
  CauchySources<T, Precision> sources(row.sources, row.weights ? weights.get() : nullptr, row.m, row.temperature, team);
  sources.sums(row.targets, row.n, CauchyKernel{row.derivative, row.moment}, tables,
               [&](std::size_t j, double step, double value) { row.out[j] = T(step + value); });
}

}  // namespace softorder
