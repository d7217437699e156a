// What can go wrong in a kernel, and how it leaves a parallel region: an exception that nobody catches
// inside one would end the process.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace softorder {

// How a call ended: done, the number of bytes that could not be had, or one of these.
using Outcome = std::int64_t;
constexpr Outcome kDone = 0, kUnknownChoice = -1, kUnexpected = -2;

// The only exception that kernels throw.
struct Failure {
  Outcome outcome;
};

inline Failure out_of_memory(std::size_t bytes) { return {static_cast<Outcome>(bytes)}; }

// A number that stands for a choice (a density, a format) and is none of those known.
inline Failure unknown_choice() { return {kUnknownChoice}; }

// Runs work() and tells how it ended, whatever it throws.
template <class Work> Outcome outcome_of(Work work) noexcept {
  try {
    work();
    return kDone;
  } catch (const Failure& failure) {
    return failure.outcome;
  } catch (...) {
    return kUnexpected;
  }
}

// Keeps the first failure of several threads until they have met again.
class FirstFailure {
 public:
  template <class Work> void watch(Work work) noexcept {
    Outcome none = kDone;
    if (const Outcome outcome = outcome_of(work)) first_.compare_exchange_strong(none, outcome);
  }
  void rethrow() const {
    if (const Outcome outcome = first_) throw Failure{outcome};
  }

 private:
  std::atomic<Outcome> first_{kDone};
};

}  // namespace softorder
