// Rows of different lengths, one behind another: row i of every operand is [offsets[i], offsets[i + 1]).
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "scratch.hpp"
#include "team.hpp"

namespace softorder {

// The rows of a call, which are dense and n long where it has no offsets.
template <class Arguments> std::size_t begin_of(const Arguments& a, std::size_t row) {
  return a.offsets ? std::size_t(a.offsets[row]) : row * a.n;
}

template <class Arguments> std::size_t length_of(const Arguments& a, std::size_t row) {
  return a.offsets ? std::size_t(a.offsets[row + 1] - a.offsets[row]) : a.n;
}

template <class Arguments> std::size_t longest_of(const Arguments& a, std::size_t begin, std::size_t end) {
  if (!a.offsets) return a.n;
  std::size_t most = 0;
  for (; begin < end; ++begin) most = std::max(most, length_of(a, begin));
  return most;
}

// Such rows, shared out among threads: a row that is much of the whole gets all of them; the others come in
// pieces of about the same work, which are taken as threads become free.
class RaggedShares {
 public:
  RaggedShares(const std::int64_t* offsets, std::size_t rows, int threads)
      : offsets_(offsets), rows_(rows), total_(offsets[rows] - offsets[0] + kOwn * rows),
        team_{useful_threads(total_, threads)} {
    if (team_.size > 1) cut();
  }

  // Calls work(first_row, last_row, team_for_one_row).
  template <class Work> void each(Work work) const {
    if (team_.size == 1) return work(0, rows_, Team{1});
    for (const Piece& piece : long_rows_) {
      work(piece.begin, piece.end, Team{useful_threads(length(piece.begin), team_.size)});
    }
    std::atomic<std::size_t> next{0};
    team_.split_evenly(std::size_t(team_.size), [&](std::size_t, std::size_t) {
      for (std::size_t i; (i = next.fetch_add(1)) < pieces_.size();) work(pieces_[i].begin, pieces_[i].end, Team{1});
    });
  }

 private:
  static constexpr std::size_t kOwn = 32;  // what a row costs beside its scores, as so many of them

  struct Piece {
    std::size_t begin, end;
  };

  std::size_t length(std::size_t row) const { return std::size_t(offsets_[row + 1] - offsets_[row]); }

  void cut() {
    const std::size_t fair = total_ / std::size_t(team_.size), much = std::max(2 * kGrain, fair / 4);
    const std::size_t enough = std::max(kGrain / 4, fair / 8);
    std::size_t begin = 0, work = 0;
    const auto close = [&](std::size_t end) {
      if (end > begin) pieces_.push_back({begin, end});
      begin = end, work = 0;
    };
    for (std::size_t row = 0; row < rows_; ++row) {
      if (length(row) >= much) {
        close(row);
        long_rows_.push_back({row, row + 1});
        begin = row + 1;
      } else if ((work += length(row) + kOwn) >= enough) {
        close(row + 1);
      }
    }
    close(rows_);
  }

  const std::int64_t* offsets_;
  std::size_t rows_, total_;
  Team team_;
  Vector<Piece> pieces_, long_rows_;
};

// Calls work(first_row, last_row, team_for_one_row) until all rows of a call are done.
template <class Arguments, class Work> void for_rows_of(const Arguments& a, Work work) {
  if (!a.offsets) return for_rows(a.rows, a.n, a.threads, work);
  RaggedShares(a.offsets, a.rows, a.threads).each(work);
}

}  // namespace softorder
