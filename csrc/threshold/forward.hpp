// Thresholds and p of the rows of a call.
#pragma once

#include "rows.hpp"
#include "scratch.hpp"
#include "threshold/solver.hpp"
#include "threshold/tile.hpp"
#include "threshold/topk.hpp"

namespace softorder {

// A row's threshold; a `shift` that is not NaN says that p holds what Solver::solve left there.
template <class T> struct Answer {
  Threshold<T> b;
  int sweeps;
  double shift = std::numeric_limits<double>::quiet_NaN();
};

// p of n scores, some of a row.
template <class F, class T> void write_scores(const T* x, T* p, std::size_t n, const Answer<T>& answer, T scale) {
  const Threshold<T> b = answer.b;
  if (answer.shift == answer.shift) return shift_topk(p, n, answer.shift);
  if (std::isfinite(b.centre)) return write_topk<F>(x, p, n, b, scale);
  if (b.centre != b.centre) return std::fill(p, p + n, b.centre);
  for_packs(x, n, [&](Pack<T> scores, std::size_t i, std::size_t count) {  // see without_root
    const Pack<T> none{};
    const Pack<T> z = scores == b.centre ? none - b.rest : scores - b.centre;
    const Pack<T> tail = values_at<F, T>(z, Pack<T>{} + scale).tail;
    const Pack<T> p_in = z * scale < F::kMiddle ? tail : T(1) - tail;
    const Pack<T> result = scores == -std::numeric_limits<T>::infinity() ? none : p_in;
    std::memcpy(p + i, &result, count * sizeof(T));
  });
}

// ---- the scores that take part: those that are not -inf
template <class T> inline Mask<T> takes_part(Pack<T> scores) {
  return ~(scores == -std::numeric_limits<T>::infinity());
}

template <class T> std::size_t count_participants(const T* x, std::size_t n) {
  Mask<T> some{};
  for_packs(x, n, [&](Pack<T> scores, std::size_t, std::size_t) { some -= takes_part<T>(scores); });
  return static_cast<std::size_t>(sum_lanes(some));
}

// Lists them; returns how many. What is behind `room` scores is not touched.
template <class T> std::size_t list_participants(const T* x, std::size_t n, T* list, std::size_t room) {
  std::size_t kept = 0;
  for_packs(x, n, [&](Pack<T> scores, std::size_t, std::size_t) {
    if (kept + kLanes<T> <= room) {
      kept += append<T>(list + kept, scores, takes_part<T>(scores));
    } else {
      T last[kLanes<T>];
      const std::size_t count = append<T>(last, scores, takes_part<T>(scores));
      std::copy_n(last, count, list + kept);
      kept += count;
    }
  });
  return kept;
}

// The rows of one thread, or one row of several. The solver wants a row that is dense and of T: others are
// `staged`, in a copy. A mask leaves it a list of the scores that take part, and the row is read chunk by chunk.
template <class F, class T> class Forward {
 public:
  Forward(const TopkForward& a, const Layout& layout, Team team)
      : a_(a), team_(team), layout_(layout), scores_(a.scores, static_cast<FloatFormat>(a.format), layout, 0),
        p_(a.p, static_cast<FloatFormat>(a.format), layout, 1), mask_(a.mask, layout, 2),
        solver_scratch_(Solver<F, T>::scratch_size(a.n)), solver_(solver_scratch_.get(), team) {}

  void run(std::size_t begin, std::size_t end) {
    if (a_.n > 0 && a_.n <= Tile<F, T>::kMostScores && end - begin >= 4) return run_tiles(begin, end);
    const bool across = scores_.across() || (p_ && p_.across());
    const bool staged = across || (!mask_ && !(scores_.dense() && (!p_ || p_.dense())));
    length_ = apart(a_.n);
    const Scratch<T> stage(staged ? (across ? std::min(kTogether, end - begin) : 1) * length_ : 0);
    const Scratch<T> participants(mask_ ? a_.n : 0), left(F::kShiftable && staged && p_ && !p_.dense() ? a_.n : 0);
    stage_ = staged ? stage.get() : nullptr, list_ = participants.get();
    for (std::size_t first = begin, count; first < end; first += count) {
      count = across ? std::min({kTogether, layout_.neighbours(first), end - first}) : 1;
      take(first, count);
      for (std::size_t i = 0; i < count; ++i) {
        at_ = {first + i, i * length_};
        T* const p = !p_ || mask_ ? nullptr : p_.dense() ? p_.row(at_.row) : left.get();
        const Answer<T> answer = solve(p);
        finish(answer, solver_.scale(), p);
      }
      give(first, count);
    }
  }

 private:
  void run_tiles(std::size_t begin, std::size_t end) {
    using Rows = Tile<F, T>;
    const bool staged = mask_ || !scores_.packed(a_.n) || (p_ && !p_.dense());
    length_ = a_.n;
    const Scratch<T> stage(staged ? Rows::kRows * a_.n : 0), participants(mask_ ? a_.n : 0);
    stage_ = staged ? stage.get() : nullptr, list_ = participants.get();
    Rows tile(a_.n, a_.p != nullptr);
    typename Rows::Row rows[Rows::kRows];
    for (std::size_t first = begin; first < end; first += Rows::kRows) {
      const std::size_t count = std::min(Rows::kRows, end - first);
      for (std::size_t i = 0; i < count; ++i) rows[i] = {k(first + i), temperature(first + i)};
      take(first, count);
      tile.solve(stage_ ? stage_ : scores_.row(first), rows, count);
      for (std::size_t i = 0; i < count; ++i) {
        at_ = {first + i, i * length_};
        finish(complete(rows[i]), tile.scale(i), nullptr);
      }
      give(first, count);
    }
  }

  double k(std::size_t row) const { return a_.k[row * a_.k_stride]; }
  double temperature(std::size_t row) const { return a_.temperature[row * a_.temperature_stride]; }

  // A row that is worked on: its number, and where its copy begins.
  struct At {
    std::size_t row, staged;
  };

  // Some scores of the row, where they are or in the buffer.
  const T* part(std::size_t begin, std::size_t end, T* buffer) const {
    if (in_place()) return whole() + begin;
    scores_.read(at_.row, begin, end, buffer);
    hide(at_.row, begin, end, buffer);
    return buffer;
  }
  bool in_place() const { return stage_ || !mask_; }
  T* whole() const { return stage_ ? stage_ + at_.staged : scores_.row(at_.row); }

  void hide(std::size_t row, std::size_t begin, std::size_t end, T* values) const {
    if (mask_) mask_.fill(row, begin, end, values, -std::numeric_limits<T>::infinity());
  }

  void take(std::size_t first, std::size_t count) {
    if (!stage_) return;
    team_.split(a_.n, [&](std::size_t begin, std::size_t end, int) {
      scores_.read(first, count, begin, end, stage_, length_);
      for (std::size_t i = 0; i < count; ++i) hide(first + i, begin, end, stage_ + i * length_ + begin);
    });
  }

  // Where p lies across the memory, it is in the place of the copies.
  void give(std::size_t first, std::size_t count) {
    if (!p_ || !p_.across()) return;
    team_.split(a_.n, [&](std::size_t begin, std::size_t end, int) {
      p_.write(first, count, begin, end, stage_, length_);
    });
  }

  Answer<T> solve(T* p) {
    const std::size_t n = mask_ ? list() : a_.n;
    const Threshold<T> b = solver_.solve(mask_ ? list_ : whole(), n, k(at_.row), temperature(at_.row), p);
    return {b, solver_.sweeps(), solver_.shift()};
  }

  // The scores of the row that take part. Every member of the team lists its own, behind those before it.
  std::size_t list() {
    std::size_t starts[Team::kMost + 1] = {};
    if (team_.size > 1) {
      in_parts([&](const T* x, std::size_t n, int member) { starts[member + 1] += count_participants(x, n); });
      for (int member = 0; member < team_.size; ++member) starts[member + 1] += starts[member];
    } else {
      starts[1] = a_.n;
    }
    std::size_t kept[Team::kMost] = {};
    in_parts([&](const T* x, std::size_t n, int member) {
      const std::size_t start = starts[member] + kept[member];
      kept[member] += list_participants(x, n, list_ + start, starts[member + 1] - start);
    });
    return starts[team_.size - 1] + kept[team_.size - 1];
  }

  // Calls work(scores, count, member) for one part of the row after the other.
  template <class Work> void in_parts(Work work) const {
    team_.split(a_.n, [&](std::size_t begin, std::size_t end, int member) {
      in_chunks(in_place(), begin, end, [&](std::size_t at, std::size_t stop) {
        T buffer[kChunk];
        work(part(at, stop, buffer), stop - at, member);
      });
    });
  }

  // What a tile has left to do.
  Answer<T> complete(const typename Tile<F, T>::Row& found) {
    using End = typename Tile<F, T>::End;
    if (found.end == End::solved) return {found.b, found.sweeps};
    if (found.end == End::open) {
      Answer<T> answer = solve(nullptr);
      answer.sweeps += found.sweeps;
      return answer;
    }
    const Threshold<T> b = solver_.balance(whole(), a_.n, k(at_.row), found.temperature, found.b);
    return {b, found.sweeps + solver_.sweeps()};
  }

  // `left`: where the solver may have left what is to be shifted.
  void finish(const Answer<T>& answer, T scale, const T* left) {
    if (a_.centre) {
      static_cast<T*>(a_.centre)[at_.row] = answer.b.centre;
      static_cast<T*>(a_.rest)[at_.row] = answer.b.rest;
    }
    if (a_.sweeps) a_.sweeps[at_.row] = answer.sweeps;
    if (!p_) return;
    T* const dense = p_.dense() ? p_.row(at_.row) : stage_ ? whole() : nullptr;
    const bool shifts = answer.shift == answer.shift, written = p_.dense() || p_.across();
    team_.split(a_.n, [&](std::size_t begin, std::size_t end, int) {
      in_chunks(written && in_place(), begin, end, [&](std::size_t at, std::size_t stop) {
        T buffer[kChunk];
        T* const p = dense ? dense + at : buffer;
        if (shifts && left != dense) std::copy(left + at, left + stop, p);
        write_scores<F>(shifts ? p : part(at, stop, buffer), p, stop - at, answer, scale);
        if (!written) p_.write(at_.row, at, stop, p);
      });
    });
  }

  const TopkForward& a_;
  Team team_;
  const Layout& layout_;
  Matrix<T> scores_, p_;
  Participants mask_;
  const Scratch<T> solver_scratch_;
  Solver<F, T> solver_;
  T *stage_ = nullptr, *list_ = nullptr;  // copies of rows, length_ apart; the scores that take part
  std::size_t length_ = 0;
  At at_{};
};

}  // namespace softorder
