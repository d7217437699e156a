// Thresholds and p of the rows of a call.
#pragma once

#include "ragged.hpp"
#include "rows.hpp"
#include "scratch.hpp"
#include "threshold/shift.hpp"
#include "threshold/solver.hpp"
#include "threshold/tile.hpp"
#include "threshold/topk.hpp"

namespace softorder {

// A row's threshold; a `shift` that is not NaN says that p follows from what Solver::solve has left.
template <class T> struct Answer {
  Threshold<T> b;
  int sweeps;
  double shift = std::numeric_limits<double>::quiet_NaN();
  Left<T> left = {};
  bool shifts() const { return shift == shift; }
};

// The same as write_topk for a far threshold.
template <class F, class T, class S> void write_far(const T* x, S* p, std::size_t n, Threshold<T> b, T scale) {
  T quarters[kChunk];
  in_chunks(false, 0, n, [&](std::size_t begin, std::size_t end) {
    quarter(x + begin, end - begin, quarters);
    write_topk<F>(quarters, p + begin, end - begin, quartered(b), quartered_scale(scale));
  });
}

// The same for a threshold that is not a finite number: see without_root.
template <class F, class T, class S> void write_special(const T* x, S* p, std::size_t n, Threshold<T> b, T scale) {
  for_packs(x, n, [&](Pack<T> scores, std::size_t i, std::size_t count) {
    const Pack<T> none{};
    const Pack<T> z = scores == b.centre ? none - b.rest : scores - b.centre;
    const Pack<T> tail = values_at<F, T>(z, Pack<T>{} + scale).tail;
    const Pack<T> p_in = z * scale < F::kMiddle ? tail : T(1) - tail;
    const Pack<T> result = scores == -std::numeric_limits<T>::infinity() ? none : p_in;
    store_first<T>(p + i, b.centre == b.centre ? result : none + b.centre, count);
  });
}

// p of n scores, those of a row from `at` on, in the format S.
template <class F, class T, class S>
void write_scores(const T* x, S* p, std::size_t n, const Answer<T>& answer, T scale, std::size_t at = 0) {
  const Threshold<T> b = answer.b;
  if (answer.shifts()) return shift_topk<F>(x, answer.left.at(at), p, n, b, scale, answer.shift);
  if (!std::isfinite(b.centre)) return write_special<F>(x, p, n, b, scale);
  return is_far(b) ? write_far<F>(x, p, n, b, scale) : write_topk<F>(x, p, n, b, scale);
}

// ---- the scores that take part: those whose byte is not 0
inline std::size_t count_participants(const std::uint8_t* part, std::size_t n) {
  return n - static_cast<std::size_t>(std::count(part, part + n, std::uint8_t{0}));
}

// Lists them; returns how many. What is behind `room` scores is not touched.
template <class T>
std::size_t list_participants(const T* x, const std::uint8_t* part, std::size_t n, T* list, std::size_t room) {
  std::size_t kept = 0, i = 0;
  for (; i + kLanes<T> <= n && kept + kLanes<T> <= room; i += kLanes<T>) {
    kept += append<T>(list + kept, load(x + i), named_lanes<T>(part + i));
  }
  for (; i < n; ++i) {
    if (part[i]) list[kept++] = x[i];
  }
  return kept;
}

// From a list of p to p in its places; the others are 0. Returns where the list goes on.
template <class T> const T* unlist(const T* list, const std::uint8_t* part, T* p, std::size_t n) {
  std::size_t i = 0;
  for (; i + kLanes<T> <= n; i += kLanes<T>) store(p + i, put_back<T>(list, named_lanes<T>(part + i)));
  if (i == n) return list;
  const Pack<T> last = put_back<T>(list, named_lanes<T>(part + i, n - i));
  std::memcpy(p + i, &last, (n - i) * sizeof(T));
  return list;
}

// The rows of one thread, or one row of several. The solver wants a row that is dense and of T: others are
// `staged`, in a copy. Of a row with a mask it gets a list of the scores that take part.
template <class F, class T> class Forward {
 public:
  // `longest`: of the rows to come.
  Forward(const TopkForward& a, const Layout& layout, Team team, std::size_t longest)
      : a_(a), team_(team), layout_(layout), scores_(a.scores, static_cast<FloatFormat>(a.format), layout, 0),
        p_(a.p, static_cast<FloatFormat>(a.format), layout, 1), mask_(a.mask, layout, 2),
        solver_scratch_(Solver<F, T>::scratch_size(longest)), solver_(solver_scratch_.get(), team) {}

  void run(std::size_t begin, std::size_t end) {
    if (a_.n > 0 && a_.n <= Tile<F, T>::kMostScores && end - begin >= 4) return run_tiles(begin, end);
    const bool across = scores_.across() || (p_ && p_.across());
    const bool staged = across || (!mask_ && !(scores_.dense() && (!p_ || p_.dense())));
    length_ = apart(a_.n);
    const Scratch<T> stage(staged ? (across ? std::min(kTogether, end - begin) : 1) * length_ : 0);
    const bool elsewhere = p_ && (mask_ || !p_.dense());  // what the solver leaves
    const Scratch<T> participants(mask_ ? a_.n : 0), left(kShifts && elsewhere ? a_.n : 0);
    stage_ = staged ? stage.get() : nullptr, list_ = participants.get();
    for (std::size_t first = begin, count; first < end; first += count) {
      count = across ? std::min({kTogether, layout_.neighbours(first), end - first}) : 1;
      if (across || !sums_on_the_way()) take(first, count, false);
      for (std::size_t i = 0; i < count; ++i) {
        at_ = {first + i, i * length_, a_.n};
        const Answer<T> answer = solve(elsewhere || !p_ ? left.get() : p_.row(at_.row));
        if (mask_) finish_list(answer);
        else finish(answer, solver_.scale());
      }
      give(first, count);
    }
  }

  // Rows of different lengths; short ones side by side, in the order of these.
  void run_ragged(std::size_t begin, std::size_t end) {
    constexpr std::size_t kinds = Tile<F, T>::kMostScores + 2;  // the last one: too long to be side by side
    const auto kind = [&](std::size_t row) { return std::min(length_of(a_, row), kinds - 1); };
    std::size_t starts[kinds + 1] = {};
    for (std::size_t row = begin; row < end; ++row) ++starts[kind(row) + 1];
    for (std::size_t i = 0; i < kinds; ++i) starts[i + 1] += starts[i];
    Vector<std::size_t> sorted(end - begin);
    const std::size_t first_short = starts[1], first_long = starts[kinds - 1];
    for (std::size_t row = begin; row < end; ++row) sorted[starts[kind(row)]++] = row;
    const std::size_t* const rows = sorted.data();
    run_alone(rows, first_short);
    run_together(rows + first_short, first_long - first_short);
    run_alone(rows + first_long, end - begin - first_long);
  }

 private:
  static constexpr bool kShifts = F::kShift != Shift::none;

  void run_together(const std::size_t* sorted, std::size_t count) {
    using Rows = Tile<F, T>;
    const Scratch<T> stage(count > 0 ? Rows::kRows * Rows::kMostScores : 0);
    stage_ = stage.get();
    Rows tile(Rows::kMostScores, a_.p != nullptr, true);  // behind a row there is -inf
    typename Rows::Row rows[Rows::kRows];
    for (; count > 0; sorted += Rows::kRows) {
      const std::size_t lanes = std::min(Rows::kRows, count), n = length_of(a_, sorted[lanes - 1]);
      for (std::size_t i = 0; i < lanes; ++i) {
        rows[i] = {k(sorted[i]), temperature(sorted[i])};
        T* const copy = stage_ + i * n;
        scores_.read(sorted[i], 0, length_of(a_, sorted[i]), copy);
        std::fill(copy + length_of(a_, sorted[i]), copy + n, -std::numeric_limits<T>::infinity());
      }
      tile.resize(n);
      tile.solve(stage_, rows, lanes);
      for (std::size_t i = 0; i < lanes; ++i) {
        at_ = {sorted[i], i * n, length_of(a_, sorted[i])};
        finish(complete(rows[i]), tile.scale(i));
      }
      count -= lanes;
    }
  }

  void run_alone(const std::size_t* rows, std::size_t count) {
    const bool staged = !(scores_.dense() && (!p_ || p_.dense()));
    std::size_t longest = 0;
    for (std::size_t i = 0; i < count; ++i) longest = std::max(longest, length_of(a_, rows[i]));
    const Scratch<T> stage(staged ? longest : 0);
    stage_ = staged ? stage.get() : nullptr;
    for (std::size_t i = 0; i < count; ++i) {
      at_ = {rows[i], 0, length_of(a_, rows[i])};
      if (staged) {
        team_.split(at_.n, [&](std::size_t begin, std::size_t end, int) {
          scores_.read(at_.row, begin, end, stage_ + begin);
        });
      }
      const Answer<T> answer = solve(p_ && p_.dense() ? p_.row(at_.row) : nullptr);
      finish(answer, solver_.scale());
    }
  }

  void run_tiles(std::size_t begin, std::size_t end) {
    using Rows = Tile<F, T>;
    const bool staged = mask_ || !scores_.packed(a_.n) || (p_ && !p_.dense());
    length_ = a_.n;
    const Scratch<T> stage(staged ? Rows::kRows * a_.n : 0), participants(mask_ ? a_.n : 0);
    stage_ = staged ? stage.get() : nullptr, list_ = participants.get();
    Rows tile(a_.n, a_.p != nullptr, bool(mask_));
    typename Rows::Row rows[Rows::kRows];
    const bool direct = p_ && p_.dense() && in_place() && team_.size == 1;
    for (std::size_t first = begin; first < end; first += Rows::kRows) {
      const std::size_t count = std::min(Rows::kRows, end - first);
      for (std::size_t i = 0; i < count; ++i) rows[i] = {k(first + i), temperature(first + i)};
      take(first, count, true);
      tile.solve(stage_ ? stage_ : scores_.row(first), rows, count);
      ShortRow ready[Rows::kRows];
      std::size_t together = 0;
      for (std::size_t i = 0; i < count; ++i) {
        at_ = {first + i, i * length_, a_.n};
        const Answer<T> answer = complete(rows[i]);
        if (!direct || rows[i].end != Rows::End::solved) {
          finish(answer, tile.scale(i));
          continue;
        }
        note(answer);
        ready[together++] = {whole(), p_.row(at_.row), answer.b, tile.scale(i)};
      }
      write_together(ready, together);
      give(first, count);
    }
  }

  // Rows that only wait for p: the numbers that F is made of are brought to registers once for all of them.
  struct ShortRow {
    const T* x;
    T* p;
    Threshold<T> b;
    T scale;
  };

  void write_together(const ShortRow* rows, std::size_t count) const {
    a_.n % kLanes<T> == 0 ? write_each<true>(rows, count) : write_each<false>(rows, count);
  }

  // kWhole: rows are whole packs, so that nothing but these is looked at between one row and the next.
  template <bool kWhole> void write_each(const ShortRow* rows, std::size_t count) const {
    const std::size_t n = a_.n;
    for (std::size_t i = 0; i < count; ++i) {
      const ShortRow row = rows[i];
      if constexpr (kWhole) {
        for (std::size_t at = 0; at < n; at += kLanes<T>) {
          store(row.p + at, topk_at<F>(load(row.x + at), row.b, row.scale));
        }
      } else {
        for_packs(row.x, n, [&](Pack<T> scores, std::size_t at, std::size_t lanes) {
          store_part(row.p + at, topk_at<F>(scores, row.b, row.scale), lanes);
        });
      }
    }
  }

  double k(std::size_t row) const { return a_.k[row * a_.k_stride]; }
  double temperature(std::size_t row) const { return a_.temperature[row * a_.temperature_stride]; }

  // A row that is worked on: its number, where its copy begins, and its length.
  struct At {
    std::size_t row, staged, n;
  };

  // Some scores of the row, where they are or in the buffer.
  const T* part(std::size_t begin, std::size_t end, T* buffer) const {
    if (in_place()) return whole() + begin;
    scores_.read(at_.row, begin, end, buffer);
    return buffer;
  }
  bool in_place() const { return stage_ || scores_.dense(); }
  [[gnu::always_inline]] T* whole() const { return stage_ ? stage_ + at_.staged : scores_.row(at_.row); }

  // Copies of rows; with -inf in the place of what the mask excludes, if that is to be hidden.
  void take(std::size_t first, std::size_t count, bool hidden) {
    if (!stage_) return;
    if (hidden && mask_ && length_ == a_.n && scores_.packed(a_.n) && mask_.packed(a_.n)) {  // as one stretch of memory
      return mask_.copy(first, 0, count * a_.n, scores_.row(first), stage_, -std::numeric_limits<T>::infinity());
    }
    team_.split(a_.n, [&](std::size_t begin, std::size_t end, int) {
      const bool at_once = hidden && mask_ && scores_.dense();
      if (!at_once) scores_.read(first, count, begin, end, stage_, length_);
      for (std::size_t i = 0; hidden && mask_ && i < count; ++i) {
        T* const to = stage_ + i * length_ + begin;
        const T* const from = at_once ? scores_.row(first + i) + begin : to;
        mask_.copy(first + i, begin, end, from, to, -std::numeric_limits<T>::infinity());
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

  // Whether a row is summed while it is copied.
  bool sums_on_the_way() const {
    const bool copied = stage_ && !mask_ && scores_.gapless() && !(p_ && p_.across());
    return copied && team_.size == 1 && a_.n > 0 && a_.n <= kSample;
  }

  // `p`: where the solver may leave what is to be shifted.
  Answer<T> solve(T* p) {
    Threshold<T> b;
    const double k = this->k(at_.row), temperature = this->temperature(at_.row);
    if (mask_) {
      const std::size_t count = list();
      b = solver_.solve(list_, count, k, temperature, p);
    } else if (sums_on_the_way()) {
      scores_.with_row(at_.row, [&](auto* from) {
        const RowSums<T> seen(from, at_.n, whole());
        b = solver_.solve(whole(), at_.n, k, temperature, p, &seen);
      });
    } else {
      b = solver_.solve(whole(), at_.n, k, temperature, p);
    }
    return {b, solver_.sweeps(), solver_.shift(), solver_.left()};
  }

  // The scores of the row that take part. Every member of the team lists its own, behind those before it.
  std::size_t list() {
    std::size_t kept[Team::kMost] = {};
    starts_[0] = 0, starts_[1] = at_.n;
    if (team_.size > 1) {
      in_parts(true, [&](const std::uint8_t* part, std::size_t at, std::size_t stop, int member) {
        kept[member] += count_participants(part, stop - at);
      });
      for (int member = 0; member < team_.size; ++member) {
        starts_[member + 1] = starts_[member] + kept[member], kept[member] = 0;
      }
    }
    in_parts(in_place(), [&](const std::uint8_t* bytes, std::size_t at, std::size_t stop, int member) {
      T buffer[kChunk];
      const std::size_t start = starts_[member] + kept[member], room = starts_[member + 1] - start;
      kept[member] += list_participants(part(at, stop, buffer), bytes, stop - at, list_ + start, room);
    });
    if (team_.size == 1) starts_[1] = kept[0];
    return starts_[team_.size];
  }

  // Calls work(bytes of the mask, begin, end, member) for one part of the row after the other: `whole`, those of
  // the members.
  template <class Work> void in_parts(bool whole, Work work) const {
    team_.split(at_.n, [&](std::size_t begin, std::size_t end, int member) {
      in_chunks(whole && mask_.dense(), begin, end, [&](std::size_t at, std::size_t stop) {
        std::uint8_t buffer[kChunk];
        work(mask_.bytes(at_.row, at, stop, buffer), at, stop, member);
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
    const Threshold<T> b = solver_.balance(whole(), at_.n, k(at_.row), found.temperature, found.b);
    return {b, found.sweeps + solver_.sweeps()};
  }

  void note(const Answer<T>& answer) const {
    if (a_.centre) {
      static_cast<T*>(a_.centre)[at_.row] = answer.b.centre;
      static_cast<T*>(a_.rest)[at_.row] = answer.b.rest;
    }
    if (a_.sweeps) a_.sweeps[at_.row] = answer.sweeps;
  }

  // p of a row that lies across the memory is written in the place of its copy.
  void finish(const Answer<T>& answer, T scale) {
    note(answer);
    if (!p_) return;
    team_.split(at_.n, [&](std::size_t begin, std::size_t end, int) {
      in_chunks(in_place() && (p_.across() || p_.gapless()), begin, end, [&](std::size_t at, std::size_t stop) {
        T buffer[kChunk];
        const T* const x = part(at, stop, buffer);
        const auto write = [&](auto* p) { write_scores<F>(x, p, stop - at, answer, scale, at); };
        if (p_.across()) return write(whole() + at);
        if (p_.gapless()) return p_.with_row(at_.row, [&](auto* p) { write(p + at); });
        write(buffer);
        p_.write(at_.row, at, stop, buffer);
      });
    });
  }

  // The same where only the scores of the list take part: from these, put back in their places, or, where they are
  // many and p is to be evaluated anyway, from the row.
  void finish_list(const Answer<T>& answer) {
    note(answer);
    if (!p_) return;
    const Threshold<T> b = answer.b;
    const bool plain = !answer.shifts() && std::isfinite(b.centre) && !is_far(b);
    const bool from_row = plain && 2 * starts_[team_.size] > at_.n;
    const T* next[Team::kMost];
    team_.split(at_.n, [&](std::size_t, std::size_t, int member) {
      T* const list = list_ + starts_[member];
      const std::size_t count = starts_[member + 1] - starts_[member];
      if (!from_row) write_scores<F>(list, list, count, answer, solver_.scale(), starts_[member]);
      next[member] = list;
    });
    T* const dense = p_.dense() ? p_.row(at_.row) : p_.across() ? whole() : nullptr;
    in_parts(dense && in_place(), [&](const std::uint8_t* bytes, std::size_t at, std::size_t stop, int member) {
      T buffer[kChunk];
      T* const p = dense ? dense + at : buffer;
      if (from_row) write_some<F>(part(at, stop, buffer), bytes, p, stop - at, b, solver_.scale());
      else next[member] = unlist(next[member], bytes, p, stop - at);
      if (b.centre != b.centre) std::fill(p, p + (stop - at), b.centre);  // all of a NaN row
      if (!dense) p_.write(at_.row, at, stop, p);
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
  std::size_t length_ = 0, starts_[Team::kMost + 1] = {};  // of copies; of the members' parts of the list
  At at_{};
};

}  // namespace softorder
