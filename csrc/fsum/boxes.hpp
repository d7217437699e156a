// A sorted row cut into boxes: stretches of equal width, of which only those with places in them exist.
//
// The width is m·2^k with 4 <= m < 8, so that the middle of a box is an exact number and the distance
// of a place from it is as exact as the difference of two scores. Boxes of level l are 2^l times as wide.
// Outliers so remote that this fails are counted, and summed only among themselves.
#pragma once

#include <cmath>
#include <cstdint>
#include <utility>

#include "fsum/places.hpp"
#include "scratch.hpp"

namespace softorder {

// The widest such box that is not wider than `most`.
inline double box_width(double most) {
  int exponent;
  const double fraction = std::frexp(most, &exponent);
  return std::ldexp(std::floor(8 * fraction), exponent - 3);
}

// Indices from here on are of remote boxes, whose middles are not exact.
constexpr double kRemote = 0x1p48;

// Whether the boxes of a row are exact or remote, and the remote ones far from the others.
template <class T> bool fits_boxes(const Places<T>& places, std::size_t count, double width) {
  if (count == 0) return true;
  const double most = std::max(std::fabs(double(places.value[0])), std::fabs(double(places.value[count - 1])));
  if (!(width >= 1e-290 && most < 1e290 * std::min(width, 1.0))) return false;
  const auto below = [&](double edge) {
    return partition_point(count, [&](std::size_t i) { return double(places.value[i]) < edge; });
  };
  const double edge = kRemote * width;
  return most < edge || (below(edge) == below(2 * edge) && below(-edge) == below(-2 * edge));
}

struct Boxes {
  // Some of the places in one box: work for one thread.
  struct Run {
    std::size_t begin, end, box;
  };
  struct Level {
    Vector<double> index;          // of a box, counted from 0 on the real line; ascending
    Vector<std::uint32_t> parent;  // its place in the next level
  };
  static constexpr std::size_t kRun = 1024;

  double width = 0;
  Vector<Run> runs;
  Vector<Level> levels;

  Boxes() = default;
  template <class T> Boxes(const Places<T>& places, std::size_t count, double box, int depth) : width(box) {
    levels.resize(std::size_t(std::max(depth, 1)));
    cut(places, count);
    for (std::size_t level = 1; level < levels.size(); ++level) gather(levels[level - 1], levels[level]);
  }

  // Boxes with these indices at the narrowest level, for nobody's places.
  Boxes(Vector<double> index, double box, std::size_t depth) : width(box) {
    levels.resize(depth);
    levels[0].index = std::move(index);
    for (std::size_t level = 1; level < depth; ++level) gather(levels[level - 1], levels[level]);
  }

  std::size_t size(std::size_t level = 0) const { return levels[level].index.size(); }
  double middle(std::size_t box) const { return (levels[0].index[box] + 0.5) * width; }
  bool is_remote(std::size_t box) const { return std::fabs(levels[0].index[box]) >= kRemote; }

 private:
  template <class T> void cut(const Places<T>& places, std::size_t count) {
    Vector<double>& index = levels[0].index;
    const auto place = [&](std::size_t i) {
      return double(places.value[i]) + (places.rest ? double(places.rest[i]) : 0.0);
    };
    for (std::size_t begin = 0, end; begin < count; begin = end) {
      const double here = std::floor(place(begin) / width), edge = (here + 1) * width;
      std::size_t step = 1;
      while (step < kRun && begin + step < count && place(begin + step) < edge) step *= 2;
      const std::size_t most = std::min(begin + step, count), least = begin + step / 2 + 1;
      end = most <= least ? most : least + partition_point(most - least, [&](std::size_t i) { return place(least + i) < edge; });
      if (index.empty() || here > index.back()) index.push_back(here);
      runs.push_back({begin, end, index.size() - 1});
    }
  }

  static void gather(Level& fine, Level& coarse) {
    for (double index : fine.index) {
      const double above = std::floor(0.5 * index);
      if (coarse.index.empty() || above > coarse.index.back()) coarse.index.push_back(above);
      fine.parent.push_back(static_cast<std::uint32_t>(coarse.index.size() - 1));
    }
  }
};

// Calls visit(target box, first, last) with those boxes whose indices are at most `most` away.
template <class Visit>
void for_neighbours(const Vector<double>& targets, const Vector<double>& sources, double most, std::size_t begin,
                    std::size_t end, Visit visit) {
  std::size_t first = 0, last = 0;
  if (begin < end) {
    first = partition_point(sources.size(), [&](std::size_t i) { return sources[i] < targets[begin] - most; });
    last = first;
  }
  for (std::size_t box = begin; box < end; ++box) {
    while (first < sources.size() && sources[first] < targets[box] - most) ++first;
    last = std::max(first, last);
    while (last < sources.size() && sources[last] <= targets[box] + most) ++last;
    visit(box, first, last);
  }
}

}  // namespace softorder
