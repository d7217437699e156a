// The gradients of p for the rows of a call.
#pragma once

#include "rows.hpp"
#include "scratch.hpp"
#include "simd/columns.hpp"
#include "team.hpp"
#include "threshold/far.hpp"
#include "threshold/topk.hpp"

namespace softorder {

constexpr std::size_t kShortRow = 64;

struct GradientSums {
  double pdf = 0, pdf_v = 0, pdf_u = 0, pdf_uv = 0;
  GradientSums& operator+=(const GradientSums& o) {
    pdf += o.pdf, pdf_v += o.pdf_v, pdf_u += o.pdf_u, pdf_uv += o.pdf_uv;
    return *this;
  }
};

// Some elements of a row: scores, what came from upstream (may be null), where f(u) goes, and bytes that name
// those that take part (may be null). S is T or a narrower format.
template <class T, class S = T> struct Stretch {
  const S *x, *v;
  T* d;
  const std::uint8_t* part;
  std::size_t n;
};

// Writes f(u_i) to d and sums it against 1 and v, and against u and uv where τ wants a gradient. Without
// kDense there is no v, and nothing is summed against it.
template <class F, class T, bool kByTemperature, bool kDense, bool kMasked, class S>
GradientSums sum_stretch(const Stretch<T, S>& row, Threshold<T> b, T scale) {
  const S *const x = row.x, *const v = row.v;
  T* const d = row.d;
  const std::uint8_t* const part = row.part;
  const std::size_t n = row.n;
  GradientSums total;
  const T unit = scale / F::kUnit;
  for (std::size_t begin = 0; begin < n; begin += kBlock) {
    Pack<T> pdf{}, pdf_v{}, pdf_u{}, pdf_uv{};
    for_packs_of<T>(x + begin, std::min(kBlock, n - begin), [&](Pack<T> scores, std::size_t i, std::size_t count) {
      const Pack<T> z = (scores - b.centre) - b.rest;
      Pack<T> f = pdf_at<F, T>(z, Pack<T>{} + scale);
      Mask<T> named{};
      if constexpr (kMasked) named = named_lanes<T>(part + begin + i, count), f = named ? f : Pack<T>{};
      store_part(d + begin + i, f, count);
      pdf += f;
      Pack<T> fu{};
      if constexpr (kByTemperature) fu = f == T(0) ? Pack<T>{} : f * (z * unit), pdf_u += fu;
      if constexpr (kDense) {
        const S* const from = v + begin + i;
        Pack<T> upstream = count == kLanes<T> ? load_as<T>(from) : load_some<T>(from, count);
        if constexpr (kMasked) upstream = named ? upstream : Pack<T>{};
        pdf_v += f * upstream;
        if constexpr (kByTemperature) pdf_uv += fu * upstream;
      }
    });
    total += {sum_lanes(pdf), sum_lanes(pdf_v)};
    if constexpr (kByTemperature) total += {0, 0, sum_lanes(pdf_u), sum_lanes(pdf_uv)};
  }
  return total;
}

template <class F, class T, bool kByTemperature>
GradientSums sum_gradients(const Stretch<T>& row, Threshold<T> b, T scale) {
  if (row.part) {
    return row.v ? sum_stretch<F, T, kByTemperature, true, true>(row, b, scale)
                 : sum_stretch<F, T, kByTemperature, false, true>(row, b, scale);
  }
  return row.v ? sum_stretch<F, T, kByTemperature, true, false>(row, b, scale)
               : sum_stretch<F, T, kByTemperature, false, false>(row, b, scale);
}

// The rows of one thread, or one row of several. Rows that lie across the memory are copied, several at a time;
// those of other formats are converted in registers, or read chunk by chunk.
template <class F, class T> class Backward {
 public:
  Backward(const TopkBackward& a, const Layout& layout, Team team)
      : a_(a), team_(team), layout_(layout), scores_(a.scores, static_cast<FloatFormat>(a.format), layout, 0),
        upstream_(a.index ? nullptr : a.upstream, static_cast<FloatFormat>(a.format), layout, 1),
        gradient_(a.grad_scores, static_cast<FloatFormat>(a.format), layout, 2), mask_(a.mask, layout, 3) {}

  void run(std::size_t begin, std::size_t end) {
    const bool across = scores_.across() || gradient_.across() || (upstream_ && upstream_.across());
    const std::size_t together = across ? std::min(kTogether, end - begin) : 1;
    length_ = apart(a_.n);
    const Scratch<T> x(across ? together * length_ : 0), v(across && upstream_ ? together * length_ : 0);
    const Scratch<T> own(!across && !gradient_.dense() ? a_.n : 0);
    if (across) stage_ = x.get(), upstream_stage_ = v.get();
    const bool gapless = scores_.gapless() && upstream_ && upstream_.gapless() && gradient_.gapless();
    const bool narrow = gapless && !gradient_.dense() && !mask_ && !a_.grad_temperature && a_.n > kShortRow;
    const bool side_by_side = a_.n <= kShortRow && !a_.grad_temperature && !a_.index;
    const bool packed = side_by_side && are_packed();
    for (std::size_t first = begin, count; first < end; first += count) {
      count = across ? std::min({together, layout_.neighbours(first), end - first})
                     : std::min(side_by_side ? kGroup : 1, end - first);
      if (across) take(first, count);
      for (std::size_t i = 0; side_by_side && i < count; i += kGroup) {
        const At at{first + i, i * length_};
        if (packed && count == kGroup && are_near(at.row)) {
          mask_ ? packed_rows<true>(at.row) : packed_rows<false>(at.row);
          continue;
        }
        mask_ ? short_rows<true>(at, std::min(kGroup, count - i)) : short_rows<false>(at, std::min(kGroup, count - i));
      }
      for (std::size_t i = 0; !side_by_side && i < count; ++i) {
        at_ = {first + i, i * length_};
        set_temperature(a_.temperature[at_.row * a_.temperature_stride]);
        if (narrow && !is_far(threshold())) {
          scores_.with_row(at_.row, [&](auto* x) { narrow_row(x, own.get()); });
          continue;
        }
        T* const out = gradient_.dense() ? gradient_.row(at_.row) : across ? stage_ + at_.staged : own.get();
        long_row(out);
      }
      if (across && !gradient_.dense()) give(first, count);
    }
  }

 private:
  // A row that is worked on: its number, and where its copies begin.
  struct At {
    std::size_t row, staged;
  };

  void take(std::size_t first, std::size_t count) {
    team_.split(a_.n, [&](std::size_t begin, std::size_t end, int) {
      scores_.read(first, count, begin, end, stage_, length_);
      if (upstream_) upstream_.read(first, count, begin, end, upstream_stage_, length_);
    });
  }

  void give(std::size_t first, std::size_t count) {
    team_.split(a_.n, [&](std::size_t begin, std::size_t end, int) {
      gradient_.write(first, count, begin, end, stage_, length_);
    });
  }

  // Some scores of the row, what came from upstream for them, or which of them take part; in the buffer unless
  // they can be used where they are.
  const T* scores(std::size_t begin, std::size_t end, T* buffer) const {
    if (stage_ || scores_.dense()) return whole(scores_, stage_) + begin;
    scores_.read(at_.row, begin, end, buffer);
    return buffer;
  }
  const T* upstream(std::size_t begin, std::size_t end, T* buffer) const {
    if (!upstream_) return nullptr;
    if (stage_ || upstream_.dense()) return whole(upstream_, upstream_stage_) + begin;
    upstream_.read(at_.row, begin, end, buffer);
    return buffer;
  }
  const std::uint8_t* participants(std::size_t begin, std::size_t end, std::uint8_t* buffer) const {
    return mask_ ? mask_.bytes(at_.row, begin, end, buffer) : nullptr;
  }
  const T* whole(const Matrix<T>& matrix, const T* stage) const {
    return stage ? stage + at_.staged : matrix.row(at_.row);
  }

  Threshold<T> threshold() const {
    return {static_cast<const T*>(a_.centre)[at_.row], static_cast<const T*>(a_.rest)[at_.row]};
  }

  void set_temperature(double temperature) {  // rows mostly share it
    if (temperature == temperature_) return;
    temperature_ = temperature, scale_ = scale_of<F, T>(temperature), inverse_ = T(1 / temperature);
  }

  // Where an upstream that is 0 elsewhere has its one element.
  struct One {
    std::size_t at;
    T weight, pdf;
  };

  One add_one(const T* out, GradientSums& sums) const {
    const Threshold<T> b = threshold();
    const auto at = static_cast<std::size_t>(a_.index[at_.row]);
    T buffer;
    const T pdf = out[at], weight = static_cast<const T*>(a_.upstream)[at_.row];
    const T u = distance_from(*scores(at, at + 1, &buffer), b, scale_ / F::kUnit);
    sums.pdf_v = double(pdf) * double(weight);
    sums.pdf_uv = pdf == T(0) ? 0 : sums.pdf_v * double(u);
    return {at, weight, pdf};
  }

  GradientSums sum_row(T* out) const {
    const auto sums_of = a_.grad_temperature ? sum_gradients<F, T, true> : sum_gradients<F, T, false>;
    const bool far = is_far(threshold());
    const Threshold<T> b = far ? quartered(threshold()) : threshold();
    const T scale = far ? quartered_scale(scale_) : scale_;
    return team_.template sum<GradientSums>(a_.n, [&](std::size_t begin, std::size_t end, int) {
      GradientSums total;
      const bool in_place = !far && (stage_ || (scores_.dense() && (!upstream_ || upstream_.dense())));
      in_chunks(in_place && (!mask_ || mask_.dense()), begin, end, [&](std::size_t at, std::size_t stop) {
        T x_buffer[kChunk], v_buffer[kChunk];
        std::uint8_t buffer[kChunk];
        const T *x = scores(at, stop, x_buffer), *const v = upstream(at, stop, v_buffer);
        if (far) quarter(x, stop - at, x_buffer), x = x_buffer;
        total += sums_of({x, v, out + at, participants(at, stop, buffer), stop - at}, b, scale);
      });
      return total;
    });
  }

  // The mean of v with the weights f(u), which is the gradient of k. Rows that are not ordinary are flat, and pass
  // no gradient on.
  struct Mean {
    bool flat;
    double mean;
  };

  Mean mean_of(const GradientSums& sums) const {
    const bool flat = sums.pdf == 0;
    const double mean = flat ? 0 : sums.pdf_v / sums.pdf;
    if (a_.grad_k) a_.grad_k[at_.row] = mean;
    return {flat, mean};
  }

  // A row of another format, all of it without gaps and every element with its upstream. f(u) goes to d.
  template <class S> void narrow_row(const S* x, T* d) const {
    const Threshold<T> b = threshold();
    const S* const v = upstream_.template row_of<S>(at_.row);
    S* const out = gradient_.template row_of<S>(at_.row);
    GradientSums sums;
    if (std::isfinite(b.centre)) {
      sums = team_.template sum<GradientSums>(a_.n, [&](std::size_t begin, std::size_t end, int) {
        const Stretch<T, S> part{x + begin, v + begin, d + begin, nullptr, end - begin};
        return sum_stretch<F, T, false, true, false>(part, b, scale_);
      });
    }
    const Mean found = mean_of(sums);
    const Pack<T> none{};
    team_.split(a_.n, [&](std::size_t begin, std::size_t end, int) {
      const T inverse = inverse_, mean = T(found.mean);
      for_packs_of<T>(v + begin, end - begin, [&](Pack<T> upstream, std::size_t i, std::size_t count) {
        const std::size_t at = begin + i;
        const Pack<T> f = found.flat ? none : count == kLanes<T> ? load(d + at) : load_part(d + at, count, T(0));
        const Pack<T> result = f > T(0) ? f * inverse * (upstream - mean) : none;
        if (count == kLanes<T>) store_as<T>(out + at, result);
        else store_some<T>(out + at, result, count);
      });
    });
  }

  void long_row(T* out) const {
    GradientSums sums;
    One one{};
    if (std::isfinite(threshold().centre)) {
      sums = sum_row(out);
      if (!upstream_) one = add_one(out, sums);
    }
    const Mean found = mean_of(sums);
    const bool flat = found.flat;
    const double mean = found.mean;
    if (a_.grad_temperature) {
      a_.grad_temperature[at_.row] = flat ? 0 : -(sums.pdf_uv - mean * sums.pdf_u) / temperature_;
    }
    const bool written = gradient_.dense() || stage_, at_once = flat || stage_ || !upstream_ || upstream_.dense();
    team_.split(a_.n, [&](std::size_t begin, std::size_t end, int) {
      in_chunks(written && at_once, begin, end, [&](std::size_t at, std::size_t stop) {
        if (flat) std::fill(out + at, out + stop, T(0));
        else finish(out, at, stop, T(mean));
        if (!upstream_ && !flat && at <= one.at && one.at < stop) {
          out[one.at] = one.pdf * inverse_ * (one.weight - T(mean));
        }
        if (!written) gradient_.write(at_.row, at, stop, out + at);
      });
    });
  }

  // From f(u) to the gradient.
  void finish(T* out, std::size_t begin, std::size_t end, T mean) const {
    T buffer[kChunk];
    const T inverse = inverse_;
    if (!upstream_) {
      const T factor = -inverse * mean;
#pragma omp simd
      for (std::size_t i = begin; i < end; ++i) out[i] *= factor;
      return;
    }
    const Pack<T> none{};
    T* const f = out + begin;
    for_packs(upstream(begin, end, buffer), end - begin, [&](Pack<T> v, std::size_t i, std::size_t count) {
      const Pack<T> here = load_first<T>(f + i, count, T(0));
      store_part(f + i, here > T(0) ? here * inverse * (v - mean) : none, count);  // v: anything where f(u) is 0
    });
  }

  // ---- short rows that want no gradient in τ, a pack of them at a time: where they are is found out first, so that
  // nothing is called while they are summed, and none of them waits for its own horizontal sums
  static constexpr std::size_t kGroup = kLanes<T>;

  struct ShortRow {
    const T *x, *v;
    const std::uint8_t* part;
    T* out;
    Threshold<T> b;
    T scale, inverse;
  };

  template <bool kMasked> void short_rows(At first, std::size_t count) {
    ShortRow rows[kGroup];
    T x[kGroup * kShortRow], v[kGroup * kShortRow];
    std::uint8_t parts[kMasked ? kGroup * kShortRow : 1];
    const bool in_place = !stage_ && scores_.dense() && upstream_.dense() && gradient_.dense();
    for (std::size_t i = 0; i < count; ++i) {
      const std::size_t own = i * kShortRow;
      at_ = {first.row + i, first.staged + i * length_};
      if (i == 0 || a_.temperature_stride) set_temperature(a_.temperature[at_.row * a_.temperature_stride]);
      ShortRow& row = rows[i];
      row.b = threshold(), row.scale = scale_, row.inverse = inverse_;
      if (in_place) {
        row.x = scores_.row(at_.row), row.v = upstream_.row(at_.row), row.out = gradient_.row(at_.row);
      } else {
        row.x = scores(0, a_.n, x + own), row.v = upstream(0, a_.n, v + own);
        row.out = gradient_.dense() ? gradient_.row(at_.row) : stage_ ? stage_ + at_.staged : x + own;
      }
      if (kMasked) row.part = participants(0, a_.n, parts + own);
      if (is_far(row.b)) row = far_row(row, x + own);
    }
    differentiate<kMasked>(rows, count, a_.grad_k ? a_.grad_k + first.row : nullptr);
    for (std::size_t i = 0; i < count && !gradient_.dense() && !stage_; ++i) {
      gradient_.write(first.row + i, 0, a_.n, rows[i].out);
    }
  }

  // In quarters; and, where the threshold is none, a row in which f(u) is 0 throughout.
  ShortRow far_row(ShortRow row, T* copy) const {
    if (std::isfinite(row.b.centre)) {
      quarter(row.x, a_.n, copy);
      row.b = quartered(row.b), row.scale = quartered_scale(row.scale);
    } else {
      std::fill(copy, copy + a_.n, -std::numeric_limits<T>::infinity());
      row.b = {0, 0}, row.scale = 1;
    }
    row.x = copy;
    return row;
  }

  // ---- the same where rows of whole packs are one behind another and share τ: next to nothing is done for a row alone
  bool are_packed() const {
    const std::size_t n = a_.n;
    return n % kLanes<T> == 0 && !a_.temperature_stride && scores_.packed(n) && upstream_.packed(n) &&
           gradient_.packed(n) && (!mask_ || mask_.packed(n));
  }

  // Whether a group of rows has thresholds that are finite and not far from 0.
  bool are_near(std::size_t row) const {
    const Pack<T> centre = load(static_cast<const T*>(a_.centre) + row);
    const Pack<T> rest = load(static_cast<const T*>(a_.rest) + row);
    return !any<T>(~((absolute<T>(centre) < kFarFrom<T>) & (absolute<T>(rest) < kFarFrom<T>)));
  }

  template <bool kMasked> void packed_rows(std::size_t first) {
    set_temperature(a_.temperature[0]);
    const std::size_t n = a_.n;
    const T *const x = scores_.row(first), *const v = upstream_.row(first), scale = scale_, inverse = inverse_;
    const T* const centre = static_cast<const T*>(a_.centre) + first;
    const T* const rest = static_cast<const T*>(a_.rest) + first;
    const std::uint8_t* const part = kMasked ? mask_.bytes(first, 0, n, nullptr) : nullptr;
    T* const out = gradient_.row(first);
    T f[kGroup * kShortRow];
    Pack<T> pdf[kGroup], pdf_v[kGroup];
    for (std::size_t row = 0; row < kGroup; ++row) {
      const T high = centre[row], low = rest[row];
      Pack<T> sum{}, sum_v{};
      for (std::size_t i = row * n; i < row * n + n; i += kLanes<T>) {
        Pack<T> here = pdf_at<F, T>((load(x + i) - high) - low, Pack<T>{} + scale), upstream = load(v + i);
        if constexpr (kMasked) {
          const Mask<T> named = named_lanes<T>(part + i);
          here = named ? here : Pack<T>{}, upstream = named ? upstream : Pack<T>{};
        }
        store(f + i, here);
        sum += here, sum_v += here * upstream;
      }
      pdf[row] = sum, pdf_v[row] = sum_v;
    }
    const Pack<T> total = sum_each<T>(pdf), total_v = sum_each<T>(pdf_v);
    const Pack<T> mean = total == T(0) ? Pack<T>{} : total_v / total;
    for (std::size_t row = 0; row < kGroup; ++row) {
      const T own = mean[row];
      for (std::size_t i = row * n; i < row * n + n; i += kLanes<T>) {
        const Pack<T> here = load(f + i);
        store(out + i, here > T(0) ? here * inverse * (load(v + i) - own) : Pack<T>{});
      }
      if (a_.grad_k) a_.grad_k[first + row] = total[row] == T(0) ? 0 : double(total_v[row]) / double(total[row]);
    }
  }

  template <bool kMasked> void differentiate(const ShortRow* rows, std::size_t count, double* by_k) const {
    const std::size_t n = a_.n;
    Pack<T> pdf[kGroup], pdf_v[kGroup];
    T f[kGroup * kShortRow];
    for (std::size_t row = count; row < kGroup; ++row) pdf[row] = pdf_v[row] = Pack<T>{};
    for (std::size_t row = 0; row < count; ++row) {
      const T *const v = rows[row].v, centre = rows[row].b.centre, rest = rows[row].b.rest, scale = rows[row].scale;
      T* const d = f + row * kShortRow;
      Pack<T> sum{}, sum_v{};
      for_packs(rows[row].x, n, [&](Pack<T> scores, std::size_t i, std::size_t lanes) {
        Pack<T> here = pdf_at<F, T>((scores - centre) - rest, Pack<T>{} + scale);
        Pack<T> upstream = load_first<T>(v + i, lanes, T(0));
        if constexpr (kMasked) {
          const Mask<T> named = named_lanes<T>(rows[row].part + i, lanes);
          here = named ? here : Pack<T>{}, upstream = named ? upstream : Pack<T>{};
        }
        store(d + i, here);
        sum += here, sum_v += here * upstream;
      });
      pdf[row] = sum, pdf_v[row] = sum_v;
    }
    const Pack<T> total = sum_each<T>(pdf), total_v = sum_each<T>(pdf_v);
    const Pack<T> mean = total == T(0) ? Pack<T>{} : total_v / total;
    for (std::size_t row = 0; row < count; ++row) {
      const T *const d = f + row * kShortRow, inverse = rows[row].inverse, own = mean[row];
      T* const out = rows[row].out;
      for_packs(rows[row].v, n, [&](Pack<T> upstream, std::size_t i, std::size_t lanes) {  // anything where f(u) is 0
        const Pack<T> here = load(d + i);
        store_part(out + i, here > T(0) ? here * inverse * (upstream - own) : Pack<T>{}, lanes);
      });
      if (by_k) by_k[row] = total[row] == T(0) ? 0 : double(total_v[row]) / double(total[row]);
    }
  }

  const TopkBackward& a_;
  Team team_;
  const Layout& layout_;
  Matrix<T> scores_, upstream_, gradient_;
  Participants mask_;
  At at_{};
  double temperature_ = std::numeric_limits<double>::quiet_NaN();
  T scale_{}, inverse_{};
  T *stage_ = nullptr, *upstream_stage_ = nullptr;  // copies of rows, length_ apart
  std::size_t length_ = 0;
};

}  // namespace softorder
