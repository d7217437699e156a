// F-sums of the logistic and of the normal density, Σ_i w_i G((t_j - x_i)/τ), in time that is linear in
// the number of sources and targets, however many of them are within a τ.
//
// The row is cut into boxes not wider than τ. Between a box of targets and one of sources, G is a
// polynomial in both places a, b in [-1, 1], Σ_kl A_kl T_k(a) T_l(b) with k, l < 16:
//   1. of every box of sources, the moments M_l = Σ_i w_i T_l(b_i);
//   2. for every box of targets, the polynomial Σ_k (Σ_boxes Σ_l A_kl M_l) T_k(a);
//   3. its value at every target.
// A depends on the distance of two boxes alone, so that a few tables serve all of them. Boxes that are
// far apart meet as boxes twice as wide: moments are joined on the way up and polynomials divided on the
// way down, both exactly.
//
// The error. G is analytic as far as |Im u| < π (logistic) or everywhere (normal). Interpolated at 16
// Chebyshev nodes in b in [-1, 1], where u moves by h/2 <= 1/2 (times 2^l, at distance >= 3·2^l, in
// level l), it misses less than 4 ρ^-16/(ρ - 1) of its maximum in the ellipse with half axes
// (ρ ± 1/ρ)/2: for the logistic ρ = 11 stays clear of the poles at ±2πi/h (their ellipse has ρ = 12.6)
// and gives 1e-17; the normal's 16th derivative is below √(16!) e^-u²/4, which gives
// √(16!)/(16! 2^31) e^-u²/4 = 1e-16 e^-u²/4. Both places are interpolated, which costs the Lebesgue
// constant 2.8. In wider boxes e^-u is interpolated in units of its decay: 2 I_16(2^(l-1)) e^-4·2^l, below
// 1e-16 for every l. So the error of a sum is below
//   1e-15 Σ_i |w_i| max |G(v)| over |v - u_i| <= 1,
// the rounding of the sum itself, and a hundred times that for f'', whose poles are steep.
//
// What is beyond the reach of G is left out: n e^-44 of the nearest term. A target in a wide gap, more
// than kAlone from every source, would feel that: its sum is taken directly, as far as terms matter
// beside its nearest source's. And so would the targets of a source in a gap, whose weight may be as
// large as G is small (the gradient of a root on a plateau): it is added to its targets one by one.
//
// A row with few sources per τ is summed directly as a whole, by the same function; and a short row is,
// too, with no term left out, so that every sum is as accurate as its terms.
#pragma once

#include <iterator>

#include "fsum/boxes.hpp"
#include "fsum/moments.hpp"
#include "fsum/short_row.hpp"
#include "fsum/smooth_law.hpp"
#include "team.hpp"

namespace softorder {

// The tables A for one kernel and one width of boxes (in τ); kept from row to row.
template <class Law> class SmoothTables {
 public:
  static constexpr int kNear = Smooth<Law>::kNear;

  // How many levels of boxes there are; those further apart than that do not feel each other.
  static int depth(const SmoothKernel<Law>& kernel, double width) {
    int levels = 0;
    while (std::ldexp(kNear * width, levels) < kernel.reach(Smooth<Law>::kAlone)) ++levels;
    return levels;
  }

  bool ready(const SmoothKernel<Law>& kernel, double width) const { return kernel == kernel_ && width == width_; }
  const SmoothKernel<Law>& kernel() const { return kernel_; }
  const Chebyshev& basis() const { return basis_; }
  int levels() const { return levels_; }

  void prepare(const SmoothKernel<Law>& kernel, double width) {
    if (ready(kernel, width)) return;
    kernel_ = kernel, width_ = width, levels_ = depth(kernel, width);
    memory_.resize(kSize * std::size_t(kNear + 1) * std::size_t(levels_ + 1));
    // All n sources share the errors of these tables: they are as good as they can be.
    const bool tails = kernel.derivative == 0;
    const auto inner = [&](Pack<double> u) { return tails ? rounded(u, 0.5) : kernel(u); };
    const auto beside = [&](Pack<double> u) { return tails ? rounded(u, 0) : kernel(u); };
    fit_kernel(basis_, inner, 0, 0.5 * width, memory_.data());
    for (int apart = 1; apart <= kNear; ++apart) {
      double* const to = memory_.data() + kSize * std::size_t(apart);
      apart <= 2 ? fit_kernel(basis_, beside, apart * width, 0.5 * width, to) : fit(0, apart, to);
    }
    for (int level = 0; level < levels_; ++level) {
      for (int apart = kNear + 1; apart <= 2 * kNear + 1; ++apart) fit(level, apart, far(level, apart));
    }
  }

  // Between boxes of a level, `apart` indices away from each other; null where nothing is felt.
  const double* table(int level, int apart) const {
    if (std::ldexp((apart - 1) * width_, level) > kernel_.reach(Smooth<Law>::kAlone)) return nullptr;
    return apart <= kNear ? memory_.data() + kSize * std::size_t(apart) : far(level, apart);
  }

 private:
  static constexpr std::size_t kSize = kTerms * kTerms;

  // F less its step; in one box (middle = 1/2), F less 1/2.
  static Pack<double> rounded(Pack<double> u, double middle) {
    for (std::size_t i = 0; i < kLanes<double>; ++i) {
      const double above = middle - Smooth<Law>::tail(std::fabs(u[i]));
      u[i] = u[i] < 0 ? -above : above;
    }
    return u;
  }

  std::size_t place(int level, int apart) const { return std::size_t((level + 1) * (kNear + 1) + (apart - kNear - 1)); }
  const double* far(int level, int apart) const { return memory_.data() + kSize * place(level, apart); }
  double* far(int level, int apart) { return memory_.data() + kSize * place(level, apart); }
  void fit(int level, int apart, double* to) const {
    const double wide = std::ldexp(width_, level);
    fit_kernel(basis_, kernel_, apart * wide, 0.5 * wide, to);
  }

  Chebyshev basis_;
  SmoothKernel<Law> kernel_;
  double width_ = 0;
  int levels_ = 0;
  Vector<double> memory_;
};

// The sources of a row, ready for sums at any targets.
template <class Law, class T> class SmoothSources {
 public:
  using Kernel = SmoothKernel<Law>;
  using Tables = SmoothTables<Law>;
  using RootTables = Tables;

  // `weights` may be null: ones.
  SmoothSources(const Places<T>& x, const double* weights, std::size_t m, double tau, Team team)
      : x_(x), weights_{weights}, m_(m), tau_(tau), inverse_(std::min(1 / tau, 1e300)), team_(team) {}

  // Calls write(j, step, value) for every target: its sum is step + value.
  template <class U, class Write>
  void sums(const Places<U>& t, std::size_t n, const Kernel& kernel, Tables& tables, Write write) {
    find<false>(t, n, kernel, tables, [&](std::size_t j, double step, double value, double, double) { write(j, step, value); });
  }

  // Calls write(j, step, value, slope, bend) for every target: FSum is step + value, and its first two derivatives by
  // t/τ are about slope and bend.
  template <class U, class Write> void sums_and_slopes(const Places<U>& t, std::size_t n, Tables& tables, Write write) {
    find<true>(t, n, Kernel{0, 0}, tables, write);
  }

  // Adds one source to all targets that feel it: add(j, value).
  template <class U, class Add>
  void scatter(std::size_t source, double weight, const Places<U>& t, std::size_t n, const Kernel& kernel, Add add) const {
    const std::size_t above = partition_point(n, [&](std::size_t j) { return t.minus(j, x_, source) < 0; });
    double nearest = std::numeric_limits<double>::infinity();
    if (above < n) nearest = t.minus(above, x_, source);
    if (above > 0) nearest = std::min(nearest, -t.minus(above - 1, x_, source));
    const double radius = kernel.reach(nearest * inverse_) * tau_;
    const double value = double(x_.value[source]), rest = x_.rest ? double(x_.rest[source]) : 0.0;
    for (std::size_t j = above; j < n && t.minus(j, x_, source) <= radius; j += kLanes<double>) {
      const std::size_t count = std::min(kLanes<double>, n - j);
      const Pack<double> terms = weight * kernel(differences(t, j, count, value, rest) * inverse_);
      for (std::size_t k = 0; k < count; ++k) add(j + k, terms[k]);
    }
    for (std::size_t end = above; end > 0 && -t.minus(end - 1, x_, source) <= radius;) {
      const std::size_t count = std::min(kLanes<double>, end);
      end -= count;
      const Pack<double> terms = weight * kernel(differences(t, end, count, value, rest) * inverse_);
      for (std::size_t k = 0; k < count; ++k) add(end + k, terms[k]);
    }
  }

  // Whether all pairs are summed.
  static bool is_few(std::size_t m, std::size_t n) { return n == 0 || m <= kFew / n; }

 private:
  static constexpr std::size_t kFew = 1 << 16;
  static constexpr int kAny = -1;  // a derivative that is known at run time

  template <bool kSloped, class U, class Write>
  void find(const Places<U>& t, std::size_t n, const Kernel& kernel, Tables& tables, Write write) {
    if (kernel.derivative == 0 && weights_.data && steps_.empty()) steps_ = weights_.prefix_sums(m_);
    const double width = box_width(Smooth<Law>::kBox * tau_);
    const bool few = is_few(m_, kSloped ? m_ : n);  // the last few roots of a long row are no short row
    if (!few && fits_boxes(x_, m_, width) && fits_boxes(t, n, width)) {
      const int depth = Tables::depth(kernel, width / tau_);
      if (boxes_.levels.size() < std::size_t(std::max(depth, 1))) {
        boxes_ = Boxes(x_, m_, width, depth);
        moments_.clear();
        known_ = {};
      }
      const Boxes targets(t, n, width, depth);
      const bool ready = tables.ready(kernel, width / tau_);
      if (by_boxes(targets, n, kernel, ready)) return through_boxes<kSloped>(t, targets, kernel, tables, write);
    }
    if (few && short_.empty() && m_ > 0) short_ = ShortRow(x_, weights_, m_);
    team_.split(n, [&](std::size_t begin, std::size_t end, int) {
      few ? all_pairs<kSloped>(t, begin, end, kernel, write) : directly<kSloped>(t, begin, end, kernel, write);
    });
  }

  // ---- one target after the other ----

  struct Term {
    Pack<double> value{}, slope{}, bend{};
  };

  double step(std::size_t below) const { return weights_.data ? steps_[below] : double(below); }

  // Calls visit(j, below) for every target; `below` sources are not above it.
  // By u, as the terms: a difference that underflows in units of τ is none.
  template <class U, class Visit> void for_targets(const Places<U>& t, std::size_t begin, std::size_t end, Visit visit) const {
    if (begin == end) return;
    std::size_t below = partition_point(m_, [&](std::size_t i) { return t.minus(begin, x_, i) * inverse_ >= 0; });
    for (std::size_t j = begin; j < end; ++j) {
      while (below < m_ && t.minus(j, x_, below) * inverse_ >= 0) ++below;
      visit(j, below);
    }
  }

  template <bool kSloped, class U, class Write>
  void all_pairs(const Places<U>& t, std::size_t begin, std::size_t end, const Kernel& kernel, Write write) const {
    switch (kernel.derivative) {
      case 0: return all_pairs<kSloped, 0>(t, begin, end, kernel, write);
      case 1: return all_pairs<false, 1>(t, begin, end, kernel, write);
      case 2: return all_pairs<false, 2>(t, begin, end, kernel, write);
      default: return all_pairs<false, 3>(t, begin, end, kernel, write);
    }
  }

  template <bool kSloped, int kDerivative, class U, class Write>
  void all_pairs(const Places<U>& t, std::size_t begin, std::size_t end, const Kernel& kernel, Write write) const {
    const auto visit = [&](std::size_t j, std::size_t below) {
      Term total;
      short_.each(double(t.value[j]), t.rest ? double(t.rest[j]) : 0.0, [&](Pack<double> apart, Pack<double> w) {
        add_terms<kSloped, kDerivative>(apart, w, kernel, total);
      });
      const double slope = kSloped ? sum_lanes(total.slope) : 0.0, bend = kSloped ? sum_lanes(total.bend) : 0.0;
      write(j, kDerivative == 0 ? step(below) : 0.0, sum_lanes(total.value), slope, bend);
    };
    if (kDerivative == 0) return for_targets(t, begin, end, visit);
    for (std::size_t j = begin; j < end; ++j) visit(j, 0);
  }

  template <bool kSloped, class U, class Write>
  void directly(const Places<U>& t, std::size_t begin, std::size_t end, const Kernel& kernel, Write write) const {
    for_targets(t, begin, end, [&](std::size_t j, std::size_t below) {
      const Term found = around<kSloped>(t, j, below, kernel);
      const double slope = kSloped ? sum_lanes(found.slope) : 0.0, bend = kSloped ? sum_lanes(found.bend) : 0.0;
      write(j, kernel.derivative == 0 ? step(below) : 0.0, sum_lanes(found.value), slope, bend);
    });
  }

  // Σ w_i G over the sources near a target, `below` of which are not above it.
  template <bool kSloped, class U>
  Term around(const Places<U>& t, std::size_t j, std::size_t below, const Kernel& kernel) const {
    double nearest = std::numeric_limits<double>::infinity();
    std::size_t left = below;
    while (kernel.moment > 0 && left > 0 && t.minus(j, x_, left - 1) == 0) --left;  // those add 0
    if (left > 0) nearest = t.minus(j, x_, left - 1);
    if (below < m_) nearest = std::min(nearest, -t.minus(j, x_, below));
    const double radius = kernel.reach(nearest * inverse_) * tau_;
    Term total;
    for (std::size_t i = below; i < m_ && -t.minus(j, x_, i) <= radius; i += kLanes<double>) {
      add_terms<kSloped>(t, j, i, std::min(kLanes<double>, m_ - i), kernel, total);
    }
    for (std::size_t end = below; end > 0 && t.minus(j, x_, end - 1) <= radius;) {
      const std::size_t count = std::min(kLanes<double>, end);
      end -= count;
      add_terms<kSloped>(t, j, end, count, kernel, total);
    }
    return total;
  }

  template <bool kSloped, class U>
  void add_terms(const Places<U>& t, std::size_t j, std::size_t from, std::size_t count, const Kernel& kernel, Term& total) const {
    const double value = double(t.value[j]), rest = t.rest ? double(t.rest[j]) : 0.0;
    add_terms<kSloped, kAny>(differences(x_, from, count, value, rest), weights_.load(from, count), kernel, total);
  }

  // A pack of them, given x_i - t.
  template <bool kSloped, int kDerivative>
  [[gnu::always_inline]] void add_terms(Pack<double> apart, Pack<double> w, const Kernel& kernel, Term& total) const {
    const Pack<double> most = Pack<double>{} + 1e9;
    const Pack<double> u = smaller<double>(larger<double>(-inverse_ * apart, -most), most);
    if constexpr (!kSloped) {
      if constexpr (kDerivative == kAny) total.value += w * kernel(u);
      else total.value += w * kernel.template of<kDerivative>(u);
    } else {
      const Values<double> v = Law::values(absolute<double>(u), Pack<double>{} + Law::kUnit);
      total.value += w * (u < 0 ? v.tail : -v.tail);
      total.slope += w * v.pdf, total.bend += w * (u < 0 ? v.drop : -v.drop);
    }
  }

  // ---- boxes ----

  // Whether boxes are quicker, counted in cycles per pack.
  bool by_boxes(const Boxes& targets, std::size_t n, const Kernel& kernel, bool ready) const {
    const double width = boxes_.width * inverse_, sources = double(boxes_.size());
    const double window = std::min(sources, 2 * kernel.reach(0) / width + 1);
    const double direct = double(n) * (double(m_) / sources * window * 60 / kLanes<double> + 250);
    const double met = std::min(sources, 4.0 * Tables::kNear + 4);
    const double tables = ready ? 0 : 3e4 * (Tables::kNear + 1) / kLanes<double>;
    const double boxes = double(targets.size()) * (met * 280 / kLanes<double> + 100) + double(m_ + n) * 100 / kLanes<double>;
    return boxes + tables + 100 * sources < direct;
  }

  double* moments(std::size_t level, std::size_t box) { return moments_[level].data() + box * kTerms; }

  void find_moments(const Chebyshev& basis) {
    moments_.resize(boxes_.levels.size());
    for (std::size_t level = 0; level < moments_.size(); ++level) moments_[level].assign(boxes_.size(level) * kTerms, 0.0);
    weight_.assign(boxes_.size() + 1, 0.0);
    Vector<double> partial(boxes_.runs.size() * kTerms);
    team_.split_evenly(boxes_.runs.size(), [&](std::size_t begin, std::size_t end) {
      for (std::size_t i = begin; i < end; ++i) run_moments(boxes_.runs[i], partial.data() + i * kTerms);
    });
    for (std::size_t i = 0; i < boxes_.runs.size(); ++i) {
      add_scaled(moments(0, boxes_.runs[i].box), 1, partial.data() + i * kTerms);
    }
    for (std::size_t box = 0; box < boxes_.size(); ++box) weight_[box + 1] = weight_[box] + moments(0, box)[0];
    for (std::size_t level = 0; level + 1 < moments_.size(); ++level) {
      const Boxes::Level& fine = boxes_.levels[level];
      for (std::size_t box = 0; box < fine.index.size(); ++box) {
        basis.join(moments(level, box), is_upper(fine.index[box]), moments(level + 1, fine.parent[box]));
      }
    }
  }

  static bool is_upper(double index) { return index != 2 * std::floor(0.5 * index); }

  void run_moments(const Boxes::Run& run, double* found) const {
    const double scale = boxes_.is_remote(run.box) ? 0 : 2 / boxes_.width;
    softorder::find_moments(x_, weights_, run.begin, run.end, boxes_.middle(run.box), scale, found);
  }

  // What boxes of targets get: polynomials, the weight below, and whether sources are so far that it is of no use.
  struct Met {
    Vector<double> index, polynomials, steps;
    Vector<unsigned char> alone;
  };

  Met meet(const Boxes& targets, const Tables& tables) {
    const std::size_t n = targets.size();
    Met met{targets.levels[0].index, Vector<double>(n * kTerms), Vector<double>(n), Vector<unsigned char>(n)};
    meet_far(targets, tables, met.polynomials);
    team_.split_evenly(n, [&](std::size_t begin, std::size_t end) {
      meet_near(targets, tables, begin, end, met.polynomials.data(), met.steps.data(), met.alone.data());
    });
    return met;
  }

  // The boxes of FSum that targets have been in, with those of these targets: roots are looked for where they were.
  const Met& meet_once(const Boxes& targets, const Tables& tables) {
    if (known_.index.empty()) return known_ = meet(targets, tables);
    const Vector<double>& wanted = targets.levels[0].index;
    Vector<double> missing;
    std::set_difference(wanted.begin(), wanted.end(), known_.index.begin(), known_.index.end(), std::back_inserter(missing));
    if (missing.empty()) return known_;
    const Met more = meet(Boxes(missing, targets.width, targets.levels.size()), tables), old = std::move(known_);
    known_ = {};
    for (std::size_t i = 0, k = 0; i < old.index.size() || k < more.index.size();) {
      const bool is_new = i == old.index.size() || (k < more.index.size() && more.index[k] < old.index[i]);
      add_box(is_new ? more : old, is_new ? k++ : i++);
    }
    return known_;
  }
  void add_box(const Met& from, std::size_t box) {
    known_.index.push_back(from.index[box]), known_.steps.push_back(from.steps[box]), known_.alone.push_back(from.alone[box]);
    const auto polynomial = from.polynomials.begin() + std::ptrdiff_t(box * kTerms);
    known_.polynomials.insert(known_.polynomials.end(), polynomial, polynomial + kTerms);
  }

  template <bool kSloped, class U, class Write>
  void through_boxes(const Places<U>& t, const Boxes& targets, const Kernel& kernel, Tables& tables, Write write) {
    tables.prepare(kernel, boxes_.width / tau_);
    if (moments_.empty()) find_moments(tables.basis());
    const Met own = kSloped ? Met{} : meet(targets, tables);
    const Met& met = kSloped ? meet_once(targets, tables) : own;
    team_.split_evenly(targets.runs.size(), [&](std::size_t begin, std::size_t end) {
      for (std::size_t i = begin; i < end; ++i) {
        const Boxes::Run& run = targets.runs[i];
        const double index = targets.levels[0].index[run.box];
        const std::size_t box = partition_point(met.index.size(), [&](std::size_t k) { return met.index[k] < index; });
        if (met.alone[box]) {
          directly<kSloped>(t, run.begin, run.end, kernel, write);
        } else {
          const double step = kernel.derivative == 0 ? met.steps[box] : 0.0;
          evaluate<kSloped>(t, targets, run, met.polynomials.data() + box * kTerms, step, write);
        }
      }
    });
  }

  // What every box gets from boxes that are not near, at all levels.
  void meet_far(const Boxes& targets, const Tables& tables, Vector<double>& polynomials) {
    Vector<double> above;
    for (std::size_t level = std::size_t(tables.levels()); level-- > 0;) {
      const Boxes::Level& boxes = targets.levels[level];
      const Vector<double>& sources = boxes_.levels[level].index;
      Vector<double> found(boxes.index.size() * kTerms);
      team_.split_evenly(boxes.index.size(), [&](std::size_t begin, std::size_t end) {
        for_neighbours(boxes.index, sources, 2 * Tables::kNear + 1, begin, end, [&](std::size_t box, std::size_t first, std::size_t last) {
          Gain gain;
          const double index = boxes.index[box], parent = std::floor(0.5 * index);
          for (std::size_t i = first; i < last; ++i) {
            const double apart = index - sources[i];
            if (std::fabs(apart) <= Tables::kNear || std::fabs(parent - std::floor(0.5 * sources[i])) > Tables::kNear) continue;
            const double* table = tables.table(int(level), int(std::fabs(apart)));
            if (table) gain.add(table, moments(level, i), apart < 0);
          }
          gain.finish(tables.kernel().parity(), found.data() + box * kTerms);
          if (!above.empty()) {
            tables.basis().divide(above.data() + boxes.parent[box] * kTerms, is_upper(index), found.data() + box * kTerms);
          }
        });
      });
      above.swap(found);
    }
    if (!above.empty()) polynomials.swap(above);
  }

  void meet_near(const Boxes& targets, const Tables& tables, std::size_t begin, std::size_t end, double* polynomials,
                 double* steps, unsigned char* alone) {
    const Vector<double>&index = targets.levels[0].index, &sources = boxes_.levels[0].index;
    for_neighbours(index, sources, Tables::kNear, begin, end, [&](std::size_t box, std::size_t first, std::size_t last) {
      Gain gain;
      std::size_t below = first;
      bool own = false;
      for (std::size_t i = first; i < last; ++i) {
        const double apart = index[box] - sources[i];
        below += apart > 0, own |= apart == 0;
        const double* table = tables.table(0, int(std::fabs(apart)));
        if (table) gain.add(table, moments(0, i), apart < 0);
      }
      gain.finish(tables.kernel().parity(), polynomials + box * kTerms);
      steps[box] = own ? 0.5 * (weight_[below] + weight_[below + 1]) : weight_[below];
      alone[box] = targets.is_remote(box) || (!own && !(below > 0 && is_near(index[box] - sources[below - 1])) &&
                   !(below < sources.size() && is_near(sources[below] - index[box])));
    });
  }

  bool is_near(double apart) const { return (apart + 1) * boxes_.width <= Smooth<Law>::kAlone * tau_; }

  template <bool kSloped, class U, class Write>
  void evaluate(const Places<U>& t, const Boxes& targets, const Boxes::Run& run, const double* polynomial, double step,
                Write write) const {
    const double middle = targets.middle(run.box), scale = 2 / targets.width;
    double slopes[kTerms], bends[kTerms];
    if (kSloped) chebyshev_derivative(polynomial, scale * tau_, slopes), chebyshev_derivative(slopes, scale * tau_, bends);
    for (std::size_t j = run.begin; j < run.end; j += kLanes<double>) {
      const std::size_t count = std::min(kLanes<double>, run.end - j);
      const Pack<double> a = scale * differences(t, j, count, middle, 0.0), value = chebyshev_sum(polynomial, a);
      const Pack<double> slope = kSloped ? chebyshev_sum(slopes, a) : value, bend = kSloped ? chebyshev_sum(bends, a) : value;
      for (std::size_t k = 0; k < count; ++k) write(j + k, step, value[k], slope[k], bend[k]);
    }
  }

  Places<T> x_;
  Weights weights_;
  std::size_t m_;
  double tau_, inverse_;
  Team team_;
  ShortRow short_;
  Vector<double> steps_;  // the weight of the first sources
  Boxes boxes_;
  Vector<Vector<double>> moments_;  // [level][box][term]
  Vector<double> weight_;           // of the boxes before each
  Met known_;
};

// Sources far from every target, whose weights may be huge: set aside. Only where F is not summed itself.
template <class T> Vector<std::size_t> take_gap_sources(const FsumRow<T>& row, double far, double* weights) {
  Vector<std::size_t> alone;
  if (row.at_sources() || row.n == 0) return alone;
  std::size_t above = 0;
  for (std::size_t i = 0; i < row.m; ++i) {
    while (above < row.n && row.targets.minus(above, row.sources, i) < 0) ++above;
    const bool near = (above < row.n && row.targets.minus(above, row.sources, i) <= far) ||
                      (above > 0 && -row.targets.minus(above - 1, row.sources, i) <= far);
    if (near) continue;
    alone.push_back(i);
    weights[i] = 0;
  }
  return alone;
}

template <class Law, class T> void smooth_fsum(const FsumRow<T>& row, SmoothTables<Law>& tables, Team team) {
  if (row.m == 0) return std::fill(row.out, row.out + row.n, T(0));
  const SmoothKernel<Law> kernel{row.derivative, row.moment};
  Scratch<double> weights(row.weights ? row.m : 0);
  Vector<std::size_t> alone;
  if (row.weights) {
    std::copy(row.weights, row.weights + row.m, weights.get());
    if (row.derivative > 0 && !SmoothSources<Law, T>::is_few(row.m, row.n)) alone = take_gap_sources(row, Smooth<Law>::kAlone * row.temperature, weights.get());
  }
  SmoothSources<Law, T> sources(row.sources, row.weights ? weights.get() : nullptr, row.m, row.temperature, team);
  sources.sums(row.targets, row.n, kernel, tables, [&](std::size_t j, double step, double value) { row.out[j] = T(step + value); });
  for (std::size_t i : alone) {
    const double weight = double(row.weights[i]);
    sources.scatter(i, weight, row.targets, row.n, kernel, [&](std::size_t j, double value) { row.out[j] = T(double(row.out[j]) + value); });
  }
}

}  // namespace softorder
