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

// The rows of one thread, or one row of several. Rows that cannot be used where they are, are `staged`: a
// copy is solved, in which what does not take part is at -inf.
template <class F, class T> class Forward {
 public:
  Forward(const TopkForward& a, const Layout& layout, Team team)
      : a_(a), team_(team), scores_(a.scores, static_cast<FloatFormat>(a.format), layout, 0),
        p_(a.p, static_cast<FloatFormat>(a.format), layout, 1), mask_(a.mask, layout, 2),
        solver_scratch_(Solver<F, T>::scratch_size(a.n)), solver_(solver_scratch_.get(), team) {}

  void run(std::size_t begin, std::size_t end) {
    if (a_.n > 0 && a_.n <= Tile<F, T>::kMostScores && end - begin >= 4) return run_tiles(begin, end);
    const bool across = scores_.across() || (p_ && p_.across());
    const bool staged = mask_ || !scores_.dense() || (p_ && !p_.dense());
    const std::size_t together = across ? std::min(kTogether, end - begin) : 1;
    length_ = apart(a_.n);
    const Scratch<T> stage(staged ? together * length_ : 0), list(mask_ ? a_.n : 0);
    const Scratch<T> left(F::kShiftable && p_ && !p_.dense() && !across && !mask_ ? a_.n : 0);
    stage_ = staged ? stage.get() : nullptr, list_ = list.get();
    for (std::size_t first = begin; first < end; first += together) {
      const std::size_t count = std::min(together, end - first);
      take(first, count);
      for (std::size_t i = 0; i < count; ++i) {
        T* const p = !p_ || mask_ ? nullptr : p_.dense() ? p_.row(first + i) : across ? nullptr : left.get();
        const Answer<T> answer = solve(first + i, row(first, i), p);
        finish(first + i, row(first, i), answer, solver_.scale(), p);
      }
      give(first, count);
    }
  }

 private:
  void run_tiles(std::size_t begin, std::size_t end) {
    using Rows = Tile<F, T>;
    const bool staged = mask_ || !scores_.packed(a_.n) || (p_ && !p_.dense());
    length_ = a_.n;
    const Scratch<T> stage(staged ? Rows::kRows * a_.n : 0), list(mask_ ? a_.n : 0);
    stage_ = staged ? stage.get() : nullptr, list_ = list.get();
    Rows tile(a_.n, a_.p != nullptr);
    typename Rows::Row rows[Rows::kRows];
    for (std::size_t first = begin; first < end; first += Rows::kRows) {
      const std::size_t count = std::min(Rows::kRows, end - first);
      for (std::size_t i = 0; i < count; ++i) rows[i] = {k(first + i), temperature(first + i)};
      take(first, count);
      tile.solve(row(first, 0), rows, count);
      for (std::size_t i = 0; i < count; ++i) {
        const T* const x = row(first, i);
        finish(first + i, x, complete(first + i, x, rows[i]), tile.scale(i), nullptr);
      }
      give(first, count);
    }
  }

  double k(std::size_t row) const { return a_.k[row * a_.k_stride]; }
  double temperature(std::size_t row) const { return a_.temperature[row * a_.temperature_stride]; }

  // A row where it is, or its copy.
  const T* row(std::size_t first, std::size_t i) const {
    return stage_ ? stage_ + i * length_ : scores_.row(first + i);
  }

  void take(std::size_t first, std::size_t count) {
    if (!stage_) return;
    team_.split(a_.n, [&](std::size_t begin, std::size_t end, int) {
      scores_.read(first, count, begin, end, stage_, length_);
      if (!mask_) return;
      for (std::size_t i = 0; i < count; ++i) {
        mask_.fill(first + i, begin, end, stage_ + i * length_ + begin, -std::numeric_limits<T>::infinity());
      }
    });
  }

  // Where p lies across the memory, it is in the place of the copies.
  void give(std::size_t first, std::size_t count) {
    if (!p_ || !p_.across()) return;
    team_.split(a_.n, [&](std::size_t begin, std::size_t end, int) {
      p_.write(first, count, begin, end, stage_, length_);
    });
  }

  Answer<T> solve(std::size_t row, const T* x, T* p) {
    std::size_t n = a_.n;
    if (mask_) n = list(x), x = list_;
    const Threshold<T> b = solver_.solve(x, n, k(row), temperature(row), p);
    return {b, solver_.sweeps(), solver_.shift()};
  }

  // Every member of the team lists its part of the row, behind those before it.
  std::size_t list(const T* x) {
    const std::size_t n = a_.n;
    if (team_.size == 1) return list_participants(x, n, list_, n);
    std::size_t starts[Team::kMost + 1] = {};
    team_.split(n, [&](std::size_t begin, std::size_t end, int member) {
      starts[member + 1] = count_participants(x + begin, end - begin);
    });
    for (int member = 0; member < team_.size; ++member) starts[member + 1] += starts[member];
    team_.split(n, [&](std::size_t begin, std::size_t end, int member) {
      list_participants(x + begin, end - begin, list_ + starts[member], starts[member + 1] - starts[member]);
    });
    return starts[team_.size];
  }

  // What a tile has left to do.
  Answer<T> complete(std::size_t row, const T* x, const typename Tile<F, T>::Row& found) {
    using End = typename Tile<F, T>::End;
    if (found.end == End::solved) return {found.b, found.sweeps};
    if (found.end == End::open) {
      Answer<T> answer = solve(row, x, nullptr);
      answer.sweeps += found.sweeps;
      return answer;
    }
    const Threshold<T> b = solver_.balance(x, a_.n, k(row), found.temperature, found.b);
    return {b, found.sweeps + solver_.sweeps()};
  }

  // `p`: where the solver may have left what is to be shifted.
  void finish(std::size_t row, const T* x, const Answer<T>& answer, T scale, T* p) {
    static_cast<T*>(a_.centre)[row] = answer.b.centre;
    static_cast<T*>(a_.rest)[row] = answer.b.rest;
    if (a_.sweeps) a_.sweeps[row] = answer.sweeps;
    if (!p_) return;
    const bool shifts = answer.shift == answer.shift;
    T* const to = p_.dense() ? p_.row(row) : shifts ? p : const_cast<T*>(x);
    const bool whole = p_.dense() || p_.across();
    team_.split(a_.n, [&](std::size_t begin, std::size_t end, int) {
      in_chunks(whole, begin, end, [&](std::size_t at, std::size_t stop) {
        write_scores<F>(x + at, to + at, stop - at, answer, scale);
        if (!whole) p_.write(row, at, stop, to + at);
      });
    });
  }

  const TopkForward& a_;
  Team team_;
  Matrix<T> scores_, p_;
  Participants mask_;
  const Scratch<T> solver_scratch_;
  Solver<F, T> solver_;
  T *stage_ = nullptr, *list_ = nullptr;  // copies of rows, length_ apart; the scores that take part
  std::size_t length_ = 0;
};

}  // namespace softorder
