// Memory for the time of a call. Whoever cannot have it throws a Failure that tells the size.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <vector>

#if defined(__linux__)
#include <sys/mman.h>
#endif

#include "failure.hpp"

namespace softorder {

// Not initialised. Large pieces ask for huge pages: thousands of page faults would take longer than the
// sort that wants the memory.
template <class T> class Scratch {
 public:
  explicit Scratch(std::size_t count) {
    if (count == 0) return;
    constexpr std::size_t huge = std::size_t(1) << 21;
    const std::size_t bytes = count * sizeof(T) + 64;
    const std::size_t alignment = bytes >= huge ? huge : 64;
    const std::size_t rounded = (bytes + alignment - 1) / alignment * alignment;
    data_ = static_cast<T*>(std::aligned_alloc(alignment, rounded));
    if (data_ == nullptr) throw out_of_memory(rounded);
#if defined(__linux__)
    if (alignment == huge) madvise(data_, rounded, MADV_HUGEPAGE);
#endif
  }
  ~Scratch() { std::free(data_); }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;

  T* get() const { return data_; }

 private:
  T* data_ = nullptr;
};

template <class T> struct Allocator {
  using value_type = T;
  Allocator() = default;
  template <class U> Allocator(const Allocator<U>&) {}
  T* allocate(std::size_t count) {
    void* const memory = std::malloc(count * sizeof(T));
    if (memory == nullptr) throw out_of_memory(count * sizeof(T));
    return static_cast<T*>(memory);
  }
  void deallocate(T* memory, std::size_t) { std::free(memory); }
  bool operator==(const Allocator&) const = default;
};

// Small things that are initialised.
template <class T> using Vector = std::vector<T, Allocator<T>>;

}  // namespace softorder
