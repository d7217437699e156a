// Isotonic regression of one row by pooling adjacent violators, in linear time.
//
// The solution is constant on blocks of consecutive places, and descends strictly from block to
// block. A block that is not above the next one is merged with it, in any order, until there is none.
// Here the newest block first takes in the places behind it that it is not above, then the block
// before it; every place is taken in once, and every block merged once.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "scratch.hpp"
#include "team.hpp"

namespace softorder {

// What a block of the regression of s - w knows: its mean.
struct Mean {
  double sum, value;

  static Mean of(double s, double w) { return {s - w, s - w}; }
  void add(const Mean& next, double count) {
    sum += next.sum;
    value = sum / count;
  }
};

// log Σ e^v as top + log(sum).
struct LogSum {
  double top, sum;

  void add(const LogSum& next) {
    const bool rises = next.top > top;
    const double high = rises ? next.top : top, low = rises ? top : next.top;
    if (low == -std::numeric_limits<double>::infinity()) {
      if (rises) *this = next;
      return;
    }
    const double ratio = std::exp(low - high);
    sum = rises ? sum * ratio + next.sum : sum + next.sum * ratio;
    top = high;
  }
};

// What a block of the entropic regression knows: log Σ e^s - log Σ e^w.
struct LogRatio {
  LogSum s, w;
  double value;

  static LogRatio of(double s, double w) { return {{s, 1}, {w, 1}, s - w}; }
  void add(const LogRatio& next, double) {
    s.add(next.s), w.add(next.w);
    value = (s.top - w.top) + std::log(s.sum / w.sum);
  }
};

// The blocks of one row after another. Of a block of several places it keeps what that knows; what a
// place alone knows is as quickly asked again, so that rows without ties take no memory.
template <class Level> class Pool {
 public:
  explicit Pool(std::size_t longest) : levels_(longest) {}

  // level(j) is what a block of place j alone knows. Writes the first places of the blocks to
  // starts, and m behind them where there is room for it: see each_block. Many places are shared out
  // among the team.
  template <class Place> void run(std::size_t m, Place level, std::int32_t* starts, Team team) {
    constexpr std::size_t kWorthwhile = 1 << 16;  // where a second thread pays
    if (m < kWorthwhile) team.size = 1;
    std::size_t count[Team::kMost] = {};
    team.split(m, [&](std::size_t begin, std::size_t end, int member) {
      Stack stack{starts + begin, levels_.get() + begin, 0};
      pool(stack, begin, end, level);
      count[member] = stack.count;
    });
    Stack stack{starts, levels_.get(), count[0]};
    for (int member = 1; member < team.size; ++member) {
      append(stack, team.bound(m, member), team.bound(m, member + 1), count[member], level);
    }
    if (stack.count < m) starts[stack.count] = static_cast<std::int32_t>(m);
  }

 private:
  struct Block {
    Level level;
    std::size_t start;
  };
  struct Stack {
    std::int32_t* starts;
    Level* levels;  // of blocks of several places
    std::size_t count;

    void push(const Block& block, std::size_t end) {
      starts[count] = static_cast<std::int32_t>(block.start);
      if (end - block.start > 1) levels[count] = block.level;
      ++count;
    }
    // The last block, which ends before `end`.
    template <class Place> Block last(std::size_t end, Place level) const {
      const std::size_t start = std::size_t(starts[count - 1]);
      return {end - start > 1 ? levels[count - 1] : level(start), start};
    }
  };

  // Pushes the blocks of the places [begin, end).
  template <class Place> static void pool(Stack& stack, std::size_t begin, std::size_t end, Place level) {
    double above = std::numeric_limits<double>::infinity();  // the value of the last block
    for (std::size_t j = begin; j < end;) {
      Block newest{level(j), j};
      ++j;
      for (;;) {
        for (; j < end; ++j) {
          const Level next = level(j);
          if (!(newest.level.value <= next.value)) break;
          newest.level.add(next, double(j + 1 - newest.start));
        }
        if (stack.count == 0 || !(above <= newest.level.value)) break;
        above = merge_back(stack, newest, j, level);
      }
      stack.push(newest, j);
      above = newest.level.value;
    }
  }

  // Merges the last block into the newest, which ends before `end`; the value of the one before.
  template <class Place> static double merge_back(Stack& stack, Block& newest, std::size_t end, Place level) {
    Block merged = stack.last(newest.start, level);
    --stack.count;
    merged.level.add(newest.level, double(end - merged.start));
    newest = merged;
    return stack.count > 0 ? stack.last(newest.start, level).level.value : 0;
  }

  // Appends the blocks of the next part of the row, the places [begin, end), which stand from place
  // `begin` of the stack on: never before where they go.
  template <class Place>
  static void append(Stack& stack, std::size_t begin, std::size_t end, std::size_t count, Place level) {
    const Stack part{stack.starts + begin, stack.levels + begin, count};
    for (std::size_t i = 0; i < count; ++i) {
      const std::size_t start = std::size_t(part.starts[i]);
      const std::size_t behind = i + 1 < count ? std::size_t(part.starts[i + 1]) : end;
      Block newest{behind - start > 1 ? part.levels[i] : level(start), start};
      while (stack.count > 0 && stack.last(newest.start, level).level.value <= newest.level.value) {
        merge_back(stack, newest, behind, level);
      }
      stack.push(newest, behind);
    }
  }

  Scratch<Level> levels_;
};

// Calls work(start, end) for the blocks of m places, from the first to the last.
template <class Work> void each_block(const std::int32_t* starts, std::size_t m, Work work) {
  for (std::size_t i = 0, start = 0; start < m; ++i) {
    const std::size_t end = i + 1 < m ? std::size_t(starts[i + 1]) : m;
    work(start, end);
    start = end;
  }
}

}  // namespace softorder
