// Threads: many rows are shared out among them; a single long row is cut into parts.
#pragma once

#include <algorithm>
#include <cstddef>
#if defined(__SANITIZE_THREAD__)
#include <thread>
#endif

#include "failure.hpp"
#include "simd/pack.hpp"

namespace softorder {

struct Team {
  static constexpr int kMost = 64;
  int size = 1;

  // Calls work(begin, end, member) on every part of [0, n), each in its own thread.
  template <class Work> void split(std::size_t n, Work work) const {
    each([&](int member) { work(bound(n, member), bound(n, member + 1), member); });
  }

  // The sum of work(begin, end, member) over all parts of [0, n).
  template <class Sum, class Work> Sum sum(std::size_t n, Work work) const {
    if (size == 1) return work(std::size_t{0}, n, 0);
    Sum parts[kMost];
    split(n, [&](std::size_t begin, std::size_t end, int member) { parts[member] = work(begin, end, member); });
    for (int member = 1; member < size; ++member) parts[0] += parts[member];
    return parts[0];
  }

  // Where a member's part of [0, n) begins: at a multiple of 64, so that no cache line is shared.
  std::size_t bound(std::size_t n, int member) const {
    if (member == size) return n;
    return n / std::size_t(size) * std::size_t(member) / 64 * 64;
  }

  // Calls work(begin, end) on every part of [0, rows), each in its own thread.
  template <class Work> void split_evenly(std::size_t rows, Work work) const {
    const auto start = [=, this](int member) { return rows * std::size_t(member) / std::size_t(size); };
    each([&](int member) { work(start(member), start(member + 1)); });
  }

 private:
  // Calls work(member) for every member, each in its own thread; what one of them throws is thrown here.
  template <class Work> void each(Work work) const {
    if (size == 1) return work(0);
    FirstFailure failure;
    in_threads([&](int member) {
      const NoDenormals guard;
      failure.watch([&] { work(member); });
    });
    failure.rethrow();
  }

  template <class Work> void in_threads(Work work) const {
#if defined(__SANITIZE_THREAD__)  // it cannot see how OpenMP's threads wait for each other
    std::thread others[kMost];
    for (int member = 1; member < size; ++member) others[member] = std::thread(work, member);
    work(0);
    for (int member = 1; member < size; ++member) others[member].join();
#else
#pragma omp parallel for num_threads(size) schedule(static, 1)
    for (int member = 0; member < size; ++member) work(member);
#endif
  }
};

constexpr std::size_t kGrain = 16384;  // elements: the work that pays for a second thread

// How many threads so many elements pay for.
inline int useful_threads(std::size_t elements, int most) {
  const std::size_t parts = std::max<std::size_t>(1, elements / kGrain);
  return static_cast<int>(std::min<std::size_t>({parts, std::size_t(std::max(most, 1)), Team::kMost}));
}

// Calls work(first_row, last_row, team_for_one_row) for a matrix of rows × n: many rows are shared
// out, few long ones get all threads each.
template <class Work> void for_rows(std::size_t rows, std::size_t n, int threads, Work work) {
  const int all = useful_threads(rows * n, threads);
  if (rows < 2 * std::size_t(all)) return work(0, rows, Team{useful_threads(n, all)});
  Team{all}.split_evenly(rows, [&](std::size_t begin, std::size_t end) { work(begin, end, Team{1}); });
}

}  // namespace softorder
