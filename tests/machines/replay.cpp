// Replays a file of recorded kernel calls (calls.py has its format) on this CPU, without Python:
//
//   replay FOLDER CALLS [--level LEVEL] [--expect-level LEVEL] [--margins]
//
// FOLDER holds the compiled libraries. As in kernels/_native.py, the widest one that the CPU can run
// is opened; --level asks for another, and --expect-level fails unless the CPU is of that level.
// --margins prints the largest error of every call, in units of what is allowed.
#include <dlfcn.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>
#include <map>
#include <set>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "kernels.hpp"

namespace {

using softorder::Entry;
using softorder::Library;

constexpr std::uint32_t kVersion = 1;
constexpr int kAlone = 255;
constexpr double kInfinity = std::numeric_limits<double>::infinity();

static_assert(std::endian::native == std::endian::little, "the file is little endian");

[[noreturn]] void fail(const std::string& reason) { throw std::runtime_error(reason); }

// ---- reading -------------------------------------------------------------------------------------

class Reader {
 public:
  explicit Reader(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    if (!file) fail("cannot read " + path);
    content_.assign(std::istreambuf_iterator<char>(file), {});
  }

  template <class T> T number() {
    T value;
    std::memcpy(&value, take(sizeof value), sizeof value);
    return value;
  }
  std::string text() {
    const auto size = number<std::uint32_t>();
    return {take(size), size};
  }
  std::vector<char> bytes(std::size_t size) {
    const char* start = take(size);
    return {start, start + size};
  }
  std::vector<double> doubles() {
    std::vector<double> values(number<std::uint64_t>());
    const std::size_t size = values.size() * sizeof(double);
    if (size) std::memcpy(values.data(), take(size), size);
    return values;
  }
  bool at_end() const { return place_ == content_.size(); }

 private:
  const char* take(std::size_t size) {
    if (size > content_.size() - place_) fail("the file of calls ends too early");
    place_ += size;
    return content_.data() + place_ - size;
  }

  std::vector<char> content_;
  std::size_t place_ = 0;
};

// ---- memory --------------------------------------------------------------------------------------

// Bytes between two guards: a kernel that writes beside its array is seen.
class Buffer {
 public:
  Buffer() = default;
  explicit Buffer(std::size_t size) : memory_(size + 2 * kGuard, kMark) {}
  explicit Buffer(const std::vector<char>& content) : Buffer(content.size()) {
    std::copy(content.begin(), content.end(), data());
  }
  char* data() { return memory_.data() + kGuard; }
  const char* data() const { return memory_.data() + kGuard; }
  std::size_t size() const { return memory_.size() - 2 * kGuard; }
  bool guarded() const {
    const auto marked = [](char byte) { return byte == kMark; };
    return std::all_of(memory_.begin(), memory_.begin() + kGuard, marked) &&
           std::all_of(memory_.end() - kGuard, memory_.end(), marked);
  }

 private:
  static constexpr std::size_t kGuard = 128;
  static constexpr char kMark = '\x7f';  // as a float or double, no answer of any call
  std::vector<char> memory_;
};

// ---- numbers -------------------------------------------------------------------------------------

// In the order of FORMATS in calls.py.
enum Format : std::uint8_t { float16, bfloat16, float32, float64, int32, int64 };

std::size_t size_of(std::uint8_t format) {
  constexpr std::size_t kSizes[] = {2, 2, 4, 8, 4, 8};
  if (format >= std::size(kSizes)) fail("unknown format of numbers");
  return kSizes[format];
}

double from_half(std::uint16_t bits) {
  const int exponent = bits >> 10 & 31, fraction = bits & 1023;
  double value = std::ldexp(exponent ? 1024 + fraction : fraction, std::max(exponent, 1) - 25);
  if (exponent == 31) value = fraction ? std::nan("") : kInfinity;
  return bits >> 15 ? -value : value;
}

template <class T> T load(const char* from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

double number_at(const Buffer& buffer, std::uint8_t format, std::size_t i) {
  const char* from = buffer.data() + i * size_of(format);
  switch (format) {
    case float16: return from_half(load<std::uint16_t>(from));
    case bfloat16: return std::bit_cast<float>(std::uint32_t{load<std::uint16_t>(from)} << 16);
    case float32: return load<float>(from);
    case float64: return load<double>(from);
    case int32: return load<std::int32_t>(from);
    default: return static_cast<double>(load<std::int64_t>(from));
  }
}

// How far a number is from the right one, in units of what is allowed; above 1 is wrong.
double error_of(double found, double right, double tolerance) {
  if (tolerance == kInfinity) return 0;
  if (std::isnan(right)) return std::isnan(found) ? 0 : kInfinity;
  const bool same = found == right && std::signbit(found) == std::signbit(right);
  if (tolerance == 0 || std::isinf(right) || !std::isfinite(found)) return same ? 0 : kInfinity;
  return std::abs(found - right) / tolerance;
}

// ---- one call ------------------------------------------------------------------------------------

enum Tag : std::uint8_t { nothing, number, same_as, input, unchecked, expected };

struct Field {
  Tag tag = nothing;
  std::int64_t number = 0;
  std::uint8_t other = 0;  // same_as
  Buffer buffer;
  std::vector<char> before;  // input: what must not change
  std::uint8_t format = 0, partner = kAlone;
  std::vector<double> values, tolerances;
};

struct Call {
  std::string kernel, about, layout;
  std::vector<std::string> names;
  std::vector<Field> fields;
};

Field read_field(Reader& file) {
  Field field;
  field.tag = Tag{file.number<std::uint8_t>()};
  switch (field.tag) {
    case nothing: break;
    case number: field.number = file.number<std::int64_t>(); break;
    case same_as: field.other = file.number<std::uint8_t>(); break;
    case input:
      field.before = file.bytes(file.number<std::uint64_t>());
      field.buffer = Buffer(field.before);
      break;
    case unchecked: field.buffer = Buffer(file.number<std::uint64_t>()); break;
    case expected:
      field.format = file.number<std::uint8_t>();
      field.partner = file.number<std::uint8_t>();
      field.values = file.doubles();
      field.tolerances = file.doubles();
      field.buffer = Buffer(field.values.size() * size_of(field.format));
      break;
    default: fail("unknown tag of a field");
  }
  return field;
}

Call read_call(Reader& file) {
  Call call{file.text(), file.text(), file.text(), {}, {}};
  std::istringstream names(file.text());
  call.names.assign(std::istream_iterator<std::string>(names), {});
  if (call.names.size() != call.layout.size()) fail("not every field of " + call.kernel + " has a name");
  for (std::size_t i = 0; i < call.layout.size(); ++i) call.fields.push_back(read_field(file));
  return call;
}

// The struct of arguments, field by field, each aligned to its size, as the compiler lays it out.
class Arguments {
 public:
  template <class T> void add(T value) {
    bytes_.resize((bytes_.size() + sizeof value - 1) / sizeof value * sizeof value);
    const char* from = reinterpret_cast<const char*>(&value);
    bytes_.insert(bytes_.end(), from, from + sizeof value);
  }
  const std::vector<char>& finish() {
    bytes_.resize((bytes_.size() + sizeof(void*) - 1) / sizeof(void*) * sizeof(void*));
    return bytes_;
  }

 private:
  std::vector<char> bytes_;
};

std::vector<char> arguments_of(Call& call) {
  Arguments arguments;
  for (std::size_t i = 0; i < call.fields.size(); ++i) {
    Field& field = call.fields[i];
    switch (call.layout[i]) {
      case 'P': {
        Field& owner = field.tag == same_as ? call.fields.at(field.other) : field;
        arguments.add<void*>(owner.tag == nothing ? nullptr : owner.buffer.data());
        break;
      }
      case 'N': arguments.add(static_cast<std::size_t>(field.number)); break;
      case 'i': arguments.add(static_cast<std::int32_t>(field.number)); break;
      default: fail("unknown letter in the layout of " + call.kernel);
    }
  }
  return arguments.finish();
}

// What a call did wrong, and by how much.
struct Verdict {
  double worst = 0;
  std::string complaint;

  void blame(const std::string& reason) {
    worst = kInfinity;
    complaint = reason;
  }
};

double found_at(const Call& call, const Field& field, std::size_t i) {
  const double found = number_at(field.buffer, field.format, i);
  if (field.partner == kAlone || !std::isfinite(found)) return found;
  return found + number_at(call.fields.at(field.partner).buffer, field.format, i);
}

void compare(const Call& call, std::size_t place, Verdict& verdict) {
  const Field& field = call.fields[place];
  const std::size_t count = field.values.size(), rows = field.tolerances.size();
  for (std::size_t i = 0; i < count; ++i) {
    const double tolerance = field.tolerances.at(i / (count / rows));
    const double found = found_at(call, field, i), right = field.values[i];
    const double error = error_of(found, right, tolerance);
    if (error <= verdict.worst) continue;
    char text[160];
    std::snprintf(text, sizeof text, "[%zu] is %.17g instead of %.17g, %.3g times what is allowed", i, found, right,
                  error);
    verdict.worst = error;
    verdict.complaint = call.names[place] + text;
  }
}

Verdict run(const Entry& kernel, Call& call) {
  const std::vector<char> arguments = arguments_of(call);
  if (arguments.size() != kernel.argument_bytes) fail("another size of arguments for " + call.kernel);
  Verdict verdict;
  if (const softorder::Outcome outcome = kernel.call(arguments.data())) {
    verdict.blame("ended with code " + std::to_string(outcome));
    return verdict;
  }
  for (std::size_t i = 0; i < call.fields.size(); ++i) {
    const Field& field = call.fields[i];
    if (field.tag == expected) compare(call, i, verdict);
    if (field.tag < input) continue;
    if (!field.buffer.guarded()) verdict.blame("wrote beside " + call.names[i]);
    if (field.tag == input && !std::equal(field.before.begin(), field.before.end(), field.buffer.data()))
      verdict.blame("changed its input " + call.names[i]);
  }
  return verdict;
}

// ---- the libraries -------------------------------------------------------------------------------

constexpr std::string_view kLevels[] = {"baseline", "avx2", "avx512"};  // from the narrowest to the widest

std::filesystem::path path_of(const std::filesystem::path& folder, std::string_view name) {
  return folder / ("libsoftorder_" + std::string(name) + ".so");
}

template <class Function> Function* function_of(const std::filesystem::path& path, const char* name) {
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  void* function = library ? dlsym(library, name) : nullptr;
  if (!function) fail(dlerror());
  return reinterpret_cast<Function*>(function);
}

std::size_t index_of(std::string_view level) {
  const auto found = std::find(std::begin(kLevels), std::end(kLevels), level);
  if (found == std::end(kLevels)) fail("no SIMD level has the name " + std::string(level));
  return found - std::begin(kLevels);
}

// The widest level that the CPU can run and that was built.
std::string widest(const std::filesystem::path& folder, std::string_view machine) {
  for (std::size_t i = index_of(machine) + 1; i-- > 0;)
    if (exists(path_of(folder, kLevels[i]))) return std::string(kLevels[i]);
  fail("no libraries in " + folder.string());
}

struct Options {
  std::filesystem::path folder;
  std::string calls, level, expect_level;
  bool margins = false;
};

Options options_of(int count, char** words) {
  Options options;
  std::vector<std::string> places;
  for (int i = 1; i < count; ++i) {
    const std::string word = words[i];
    if (word == "--margins") options.margins = true;
    else if (word == "--level" && i + 1 < count) options.level = words[++i];
    else if (word == "--expect-level" && i + 1 < count) options.expect_level = words[++i];
    else places.push_back(word);
  }
  if (places.size() != 2)
    fail("usage: replay FOLDER CALLS [--level LEVEL] [--expect-level LEVEL] [--margins]");
  options.folder = places[0];
  options.calls = places[1];
  return options;
}

const Library& open_library(const Options& options) {
  const std::string machine = function_of<const char*()>(path_of(options.folder, "cpu"), "softorder_cpu_level")();
  const std::string level = options.level.empty() ? widest(options.folder, machine) : options.level;
  if (index_of(level) > index_of(machine)) fail("this CPU runs " + machine + " at the most, not " + level);
  const Library& library = *function_of<const Library*()>(path_of(options.folder, level), "softorder_library")();
  std::printf("library %s, registers of %d bytes; this CPU runs %s\n", library.level, library.pack_bytes,
              machine.c_str());
  if (library.level != level) fail("the library calls itself " + std::string(library.level));
  if (!options.expect_level.empty() && machine != options.expect_level)
    fail("this CPU was expected to run " + options.expect_level);
  return library;
}

// ---- all calls -----------------------------------------------------------------------------------

int replay(const Options& options) {
  const Library& library = open_library(options);
  std::map<std::string, const Entry*> kernels;
  for (std::size_t i = 0; i < library.count; ++i) kernels[library.kernels[i].name] = library.kernels + i;

  Reader file(options.calls);
  if (file.bytes(8) != std::vector<char>{'s', 'o', 'f', 't', 'o', 'r', 'd', 'r'}) fail("not a file of calls");
  if (file.number<std::uint32_t>() != kVersion) fail("the file of calls is of another version");
  if (file.number<std::int32_t>() != library.interface) fail("the calls are for another interface");

  std::set<std::string> called;
  int passed = 0, failed = 0;
  for (auto left = file.number<std::uint32_t>(); left > 0; --left) {
    Call call = read_call(file);
    if (!kernels.contains(call.kernel)) fail("the library has no kernel " + call.kernel);
    const Verdict verdict = run(*kernels.at(call.kernel), call);
    called.insert(call.kernel);
    ++(verdict.worst <= 1 ? passed : failed);
    if (options.margins) std::printf("%9.6f %s (%s)\n", verdict.worst, call.kernel.c_str(), call.about.c_str());
    if (verdict.worst > 1)
      std::printf("FAILED %s (%s): %s\n", call.kernel.c_str(), call.about.c_str(), verdict.complaint.c_str());
  }
  if (!file.at_end()) fail("the file of calls goes on behind its last call");
  if (called.size() != library.count)
    std::printf("only %zu of %zu kernels were called\n", called.size(), library.count);
  std::printf("%d passed, %d failed\n", passed, failed);
  return failed > 0 || called.size() != library.count;
}

}  // namespace

int main(int count, char** words) {
  try {
    return replay(options_of(count, words));
  } catch (const std::exception& error) {
    std::fprintf(stderr, "replay: %s\n", error.what());
    return 2;
  }
}
