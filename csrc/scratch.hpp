// Scratch memory that is not initialised. Large pieces ask for huge pages: thousands of page faults
// would take longer than the sort that wants the memory.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <memory>
#include <new>

#if defined(__linux__)
#include <sys/mman.h>
#endif

namespace softorder::SOFTORDER_LEVEL {

template <class T> class Scratch {
 public:
  explicit Scratch(std::size_t count) {
    constexpr std::size_t huge = std::size_t(1) << 21;
    const std::size_t bytes = count * sizeof(T) + 64;
    const std::size_t alignment = bytes >= huge ? huge : 64;
    const std::size_t rounded = (bytes + alignment - 1) / alignment * alignment;
    data_ = static_cast<T*>(std::aligned_alloc(alignment, rounded));
    if (data_ == nullptr) throw std::bad_alloc();
#if defined(__linux__)
    if (alignment == huge) madvise(data_, rounded, MADV_HUGEPAGE);
#endif
  }
  ~Scratch() { std::free(data_); }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;

  T* get() const { return data_; }

 private:
  T* data_;
};

}  // namespace softorder::SOFTORDER_LEVEL
