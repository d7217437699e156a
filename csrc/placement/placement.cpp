// How surely every score has its place: -log of its share of that place in a soft permutation of which only
// the thresholds are found, and its gradients. Between sort and result everything is in double.
//
// With A = f(above)/P and B = f(below)/P for a score between the thresholds t and t', and upstream g,
//   dL = Σ_i g_i (A_i (dx_i - dt') - B_i (dx_i - dt))/τ + (heat),    Σ_l f(u_l) (dt - dx_l - u_l dτ) = 0
// so that a threshold passes Σ g (B - A)/τ of the scores beside it on to all of them, as the value of a soft
// sort does.
#include "kernels.hpp"

#include "in_range.hpp"
#include "order/densities.hpp"
#include "placement/share.hpp"
#include "placement/smooth_share.hpp"
#include "ragged.hpp"
#include "sort/sorted_row.hpp"

namespace softorder {
namespace {

template <class Order> struct ShareOf;
template <> struct ShareOf<LaplaceOrder<double>> { using Type = LaplaceShare; };
template <> struct ShareOf<UniformOrder<double>> { using Type = UniformShare; };
template <class Law, class T> struct ShareOf<SmoothOrder<Law, T>> { using Type = SmoothShare<Law>; };

// Makes orders of rows, with what they keep from row to row.
template <class Order> struct Orders {
  Order of(const double* x, std::size_t m, double temperature, Team team) { return {x, m, temperature, team}; }
};
template <class Law, class T> struct Orders<SmoothOrder<Law, T>> {
  using Order = SmoothOrder<Law, T>;
  typename Order::Tables tables;
  Order of(const double* x, std::size_t m, double temperature, Team team) { return {x, m, temperature, team, tables}; }
};

template <class T> T* row_of(const void* matrix, const Placement& a, std::size_t row) {
  return static_cast<T*>(const_cast<void*>(matrix)) + begin_of(a, row);
}

// The thresholds that a few scores want to be between, by their levels; or what else there is to say of a loss.
struct Wishes {
  static constexpr double kOpen = -1;  // what no loss is
  std::int32_t low[Distances::kMost], high[Distances::kMost];  // 0 where a loss is settled
  double loss[Distances::kMost];
};

// Memory for one row at a time.
struct Buffers {
  explicit Buffers(std::size_t n) : x(n), rest(n), slope(n), centres(n + 1), rests(n + 1), segment(n) {}
  Scratch<double> x, rest, slope, centres, rests;
  Scratch<std::int32_t> segment;
};

template <class T, class Order> class PlacedRow {
 public:
  PlacedRow(const Placement& a, std::size_t i, Team team, const Buffers& buffers, Orders<Order>& orders)
      : a_(a),
        team_(team),
        orders_(orders),
        row_(row_of<T>(a.values, a, i), a.order + begin_of(a, i), length_of(a, i)),
        factor_(row_.finite == 0 ? 1 : factor_for(row_.finite_values()[0], row_.finite_values()[row_.finite - 1])),
        tau_(scaled_temperature(a.temperature[i * a.temperature_stride], factor_)),
        scores_(row_of<T>(a.scores, a, i)),
        first_(a.first + begin_of(a, i)),
        last_(a.last + begin_of(a, i)),
        x_(buffers.x.get()),
        centres_(buffers.centres.get()),
        rests_(buffers.rests.get()),
        roots_{nullptr, a.segment ? a.segment + begin_of(a, i) : buffers.segment.get(),
               a.rest ? a.rest + begin_of(a, i) : buffers.rest.get(),
               a.slope ? a.slope + begin_of(a, i) : buffers.slope.get()} {
    if (row_.spoiled || row_.finite == 0) return;
    for (std::size_t k = 0; k < row_.finite; ++k) x_[k] = factor_ * double(row_.finite_values()[k]);
    if (!known()) order().roots(levels(), roots_);
    const std::size_t m = row_.finite;
    centres_[0] = -kInfinity<double>, centres_[m] = kInfinity<double>;
    rests_[0] = rests_[m] = 0;
    for (std::size_t j = 0; j + 1 < m; ++j) {
      centres_[j + 1] = x_[Order::source_of(roots_, j)], rests_[j + 1] = roots_.rest[j];
    }
  }

  void losses(double* out) const {
    each_piece([&](std::size_t from, std::size_t count, const Distances& at, const Wishes& wishes) {
      double found[Distances::kMost + kLanes<double>];
      share_.losses(at, count, found);
#pragma omp simd
      for (std::size_t k = 0; k < count; ++k) {
        out[from + k] = wishes.loss[k] == Wishes::kOpen ? found[k] : wishes.loss[k];
      }
      return 0.0;
    });
  }

  // The gradient of the scores; returns that of τ if it is wanted.
  double gradients(const double* upstream, T* out, bool by_temperature) const {
    std::fill(out, out + row_.n, T(0));
    if (row_.spoiled || row_.finite == 0) return 0;
    Scratch<double> pulled(row_.n), above(row_.n), below(row_.n), pulls(row_.finite + 1);
    Scratch<std::int32_t> low(row_.n), high(row_.n);
    const double heat = each_piece([&](std::size_t from, std::size_t count, const Distances& at, const Wishes& wishes) {
      std::copy(wishes.low, wishes.low + count, low.get() + from);
      std::copy(wishes.high, wishes.high + count, high.get() + from);
      pull(upstream + from, count, at, wishes, above.get() + from, below.get() + from);
      return by_temperature ? heat_of(count, at, above.get() + from, below.get() + from) : 0.0;
    });
    gather(low.get(), high.get(), above.get(), below.get(), pulls.get());
    const double* const by_level = pulls.get() + 1;
    order().roots_vjp(levels(), row_.finite_order(), by_level, roots_, pulled.get());
    for (std::size_t i = 0; i < row_.n; ++i) {
      if (!std::isfinite(scores_[i])) continue;
      out[i] = T(pulled.get()[i] + inverse_ * (above.get()[i] - below.get()[i]));
    }
    if (!by_temperature) return 0;
    return inverse_ * (heat / tau_) + order().roots_by_temperature(levels(), by_level, roots_);
  }

 private:
  // Whether the forward pass has kept the roots.
  bool known() const { return a_.upstream && a_.segment && row_.finite > 1 && roots_.segment[0] >= 0; }
  Levels levels() const { return threshold_levels(row_.finite); }
  Order order() const { return orders_.of(x_, row_.finite, tau_, team_); }

  // Of the scores from `from` on. Most rows have finite scores and places that exist; returns whether these have.
  bool plain_wishes(std::size_t from, std::size_t count, Wishes& out) const {
    if (row_.spoiled || row_.finite != row_.n) return false;
    const std::int64_t n = std::int64_t(row_.n), *const firsts = first_ + from, *const lasts = last_ + from;
    const bool descending = a_.descending;
    int odd = 0;
#pragma omp simd reduction(| : odd)
    for (std::size_t k = 0; k < count; ++k) {
      const std::int64_t first = descending ? n - 1 - lasts[k] : firsts[k];
      const std::int64_t behind = (descending ? n - 1 - firsts[k] : lasts[k]) + 1;
      odd |= (firsts[k] < 0) | (first < 0) | (behind <= first) | (behind > n);
      out.low[k] = std::int32_t(first), out.high[k] = std::int32_t(behind), out.loss[k] = Wishes::kOpen;
    }
    return !odd;
  }

  void wishes_of(std::size_t from, std::size_t count, Wishes& out) const {
    if (plain_wishes(from, count, out)) return;
    for (std::size_t k = 0; k < count; ++k) {
      out.low[k] = out.high[k] = 0;
      out.loss[k] = wish(from + k, out.low[k], out.high[k]);
    }
  }

  // The loss of score i if it is settled; if not, the levels of its thresholds.
  double wish(std::size_t i, std::int32_t& low, std::int32_t& high) const {
    const T x = scores_[i];
    if (first_[i] < 0 || x == -kInfinity<T>) return 0;
    if (row_.spoiled) return kNan<double>;
    const std::int64_t present = std::int64_t(row_.present()), finite = std::int64_t(row_.finite);
    const std::int64_t first = a_.descending ? present - 1 - last_[i] : first_[i];
    const std::int64_t behind = (a_.descending ? present - 1 - first_[i] : last_[i]) + 1;
    if (x == kInfinity<T>) {  // shares the last places with its equals
      const std::int64_t within = std::min(behind, present) - std::max(first, finite);
      const double share = double(std::max<std::int64_t>(within, 0)) / double(present - finite);
      return std::fabs(std::log(share));
    }
    const bool there = first >= 0 && first < finite && behind > first && behind <= std::int64_t(row_.n);
    if (!there) return kInfinity<double>;
    low = std::int32_t(first), high = std::int32_t(std::min(behind, finite));
    return Wishes::kOpen;
  }

  // Calls work(from, count, distances, wishes) for pieces of the row, as its scores come; the sum of its results.
  template <class Work> double each_piece(Work work) const {
    return team_.sum<double>(row_.n, [&](std::size_t begin, std::size_t end, int) {
      Distances at;
      Wishes wishes;
      double total = 0;
      for (; begin < end; begin += Distances::kMost) {
        const std::size_t count = std::min(Distances::kMost, end - begin);
        wishes_of(begin, count, wishes);
        measure(begin, count, wishes, at);
        total += work(begin, count, at, wishes);
      }
      return total;
    });
  }

  // How far the thresholds are; 1, which harms nobody, where none are wanted.
  void measure(std::size_t from, std::size_t count, const Wishes& wishes, Distances& at) const {
    const T* const scores = scores_ + from;
    const double *const centres = centres_, *const rests = rests_, factor = factor_;
#pragma omp simd
    for (std::size_t k = 0; k < count; ++k) {
      const std::int32_t low = wishes.low[k], high = wishes.high[k];
      const double x = factor * double(scores[k]), from_low = centres[low], to_high = centres[high];
      const bool open = wishes.loss[k] == Wishes::kOpen;
      at.below[k] = open ? (x - from_low) - rests[low] : 1;
      at.above[k] = open ? (to_high - x) + rests[high] : 1;
      at.width[k] = open ? (to_high - from_low) + (rests[high] - rests[low]) : 1;
    }
    for (std::size_t k = count; k % kLanes<double>; ++k) at.below[k] = at.above[k] = at.width[k] = 1;
  }

  // g A and g B for a few scores, 0 where a loss is settled.
  void pull(const double* upstream, std::size_t count, const Distances& at, const Wishes& wishes, double* above,
            double* below) const {
    Rates rates;
    share_.rates(at, count, rates);
#pragma omp simd
    for (std::size_t k = 0; k < count; ++k) {
      const double g = wishes.loss[k] == Wishes::kOpen ? upstream[k] : 0;
      above[k] = g * rates.above[k], below[k] = g * rates.below[k];
    }
  }

  // Σ g (A d + B d') of these.
  static double heat_of(std::size_t count, const Distances& at, const double* above, const double* below) {
    double heat = 0;
    for (std::size_t k = 0; k < count; ++k) {
      if (above[k] != 0 && std::isfinite(at.above[k])) heat += above[k] * at.above[k];
      if (below[k] != 0 && std::isfinite(at.below[k])) heat += below[k] * at.below[k];
    }
    return heat;
  }

  // pulls[level] = Σ g (B - A)/τ of the scores beside that threshold.
  void gather(const std::int32_t* low, const std::int32_t* high, const double* above, const double* below,
              double* pulls) const {
    std::fill(pulls, pulls + row_.finite + 1, 0.0);
    for (std::size_t i = 0; i < row_.n; ++i) {
      pulls[low[i]] += inverse_ * below[i];
      pulls[high[i]] -= inverse_ * above[i];
    }
  }

  const Placement& a_;
  Team team_;
  Orders<Order>& orders_;
  SortedRow<T> row_;
  double factor_, tau_;  // scores and τ are multiplied by it
  // 1/τ in the units of the scores as they came: in the others a slope may be too large for the format.
  double inverse_{factor_ / tau_};
  const T* scores_;
  const std::int64_t *first_, *last_;
  double *x_, *centres_, *rests_;
  Roots<double> roots_;
  typename ShareOf<Order>::Type share_{tau_};
};

template <class T, class Order> void forward(const Placement& a) {
  for_rows_of(a, [&](std::size_t begin, std::size_t end, Team team) {
    const Buffers buffers(longest_of(a, begin, end));
    Scratch<Word> words(2 * longest_of(a, begin, end));
    Orders<Order> orders;
    for (std::size_t i = begin; i < end; ++i) {
      const std::size_t first = begin_of(a, i), n = length_of(a, i);
      sort_row<T>(row_of<T>(a.scores, a, i), n, row_of<T>(a.values, a, i), a.order + first, words.get(), team);
      PlacedRow<T, Order>(a, i, team, buffers, orders).losses(a.losses + first);
    }
  });
}

template <class T, class Order> void backward(const Placement& a) {
  for_rows_of(a, [&](std::size_t begin, std::size_t end, Team team) {
    const Buffers buffers(longest_of(a, begin, end));
    Orders<Order> orders;
    for (std::size_t i = begin; i < end; ++i) {
      const PlacedRow<T, Order> row(a, i, team, buffers, orders);
      const double heat = row.gradients(a.upstream + begin_of(a, i), row_of<T>(a.gradient, a, i), a.grad_temperature != nullptr);
      if (a.grad_temperature) a.grad_temperature[i] = heat;
    }
  });
}

}  // namespace

void placement_forward(const Placement& a) {
  with_thresholds(a.density, a.wide, [&]<class T, class Order>() { forward<T, Order>(a); });
}

void placement_backward(const Placement& a) {
  with_thresholds(a.density, a.wide, [&]<class T, class Order>() { backward<T, Order>(a); });
}

}  // namespace softorder
