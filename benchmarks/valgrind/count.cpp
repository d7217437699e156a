// Replays recorded calls of kernels (recording.py has the format), each twice: once to warm up, once in
// the function `counted`, which is where valgrind is told to look.
//
//   count LIBRARY CALLS
#include <dlfcn.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "kernels.hpp"

using softorder::Entry;
using softorder::Library;

extern "C" __attribute__((noinline)) std::int64_t counted(const Entry* kernel, const void* arguments) {
  return kernel->call(arguments);
}

namespace {

struct Free {
  void operator()(void* memory) const { std::free(memory); }
};

// Aligned as torch aligns its tensors.
using Buffer = std::unique_ptr<char, Free>;
constexpr std::size_t kAligned = 64;

// Where it stands among the arguments, and what it points to.
struct Pointer {
  std::size_t place, buffer, offset;
};

class Reader {
 public:
  explicit Reader(const char* path) : file_(path, std::ios::binary) {}

  std::uint64_t number() {
    std::uint64_t value = 0;
    read(&value, sizeof value);
    return value;
  }
  std::string text() {
    std::string value(number(), '\0');
    read(value.data(), value.size());
    return value;
  }
  Buffer buffer() {
    const std::size_t size = number();
    Buffer memory(static_cast<char*>(std::aligned_alloc(kAligned, (size / kAligned + 1) * kAligned)));
    read(memory.get(), size);
    return memory;
  }

 private:
  void read(void* to, std::size_t size) {
    if (!file_.read(static_cast<char*>(to), static_cast<std::streamsize>(size))) {
      std::fprintf(stderr, "count: the file of calls ends too early\n");
      std::exit(2);
    }
  }

  std::ifstream file_;
};

const Library& library_at(const char* path) {
  void* opened = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  void* function = opened ? dlsym(opened, "softorder_library") : nullptr;
  if (!function) {
    std::fprintf(stderr, "count: %s\n", dlerror());
    std::exit(2);
  }
  return *reinterpret_cast<const Library* (*)()>(function)();
}

void replay(Reader& file, const std::map<std::string, const Entry*>& kernels) {
  const Entry* kernel = kernels.at(file.text());
  std::string arguments = file.text();
  std::vector<Pointer> pointers(file.number());
  for (auto& [place, buffer, offset] : pointers) {
    place = file.number();
    buffer = file.number();
    offset = file.number();
  }
  std::vector<Buffer> buffers(file.number());
  for (Buffer& buffer : buffers) buffer = file.buffer();
  for (const auto& [place, buffer, offset] : pointers) {
    const void* address = buffers.at(buffer).get() + offset;
    std::memcpy(arguments.data() + place, &address, sizeof address);
  }
  const std::int64_t first = kernel->call(arguments.data());
  const std::int64_t outcome = first ? first : counted(kernel, arguments.data());
  if (outcome) {
    std::fprintf(stderr, "count: %s ended with code %ld\n", kernel->name, static_cast<long>(outcome));
    std::exit(2);
  }
}

}  // namespace

int main(int count, char** words) {
  if (count != 3) {
    std::fprintf(stderr, "usage: count LIBRARY CALLS\n");
    return 2;
  }
  const Library& library = library_at(words[1]);
  std::map<std::string, const Entry*> kernels;
  for (std::size_t i = 0; i < library.count; ++i) kernels[library.kernels[i].name] = library.kernels + i;
  Reader file(words[2]);
  for (auto left = file.number(); left > 0; --left) replay(file, kernels);
}
