// A sorted row cut into boxes that are halved where asked, and only there.
//
// A box of level l is 2^l widths wide, and the width has three bits (see boxes.hpp): the middle of a box is an
// exact number as long as its index is. The top level has the boxes -1 and 0, which hold the whole row.
#pragma once

#include "fsum/boxes.hpp"

namespace softorder {

template <class T> class Tree {
 public:
  // The places [begin, end) of a box. All of them may be the same: then they count as one.
  struct Box {
    double index;
    std::size_t begin, end;
    std::uint32_t parent, child;  // in the next wider and the next narrower level; child: the first
    bool tied, split;

    std::size_t count() const { return end - begin; }
    std::size_t size() const { return tied ? 1 : count(); }
    bool is_upper() const { return index != 2 * std::floor(0.5 * index); }
    // Whether its halves would have exact middles.
    bool is_divisible() const { return 2 * std::fabs(index) + 1 < kRemote; }
  };
  using Level = Vector<Box>;

  // The lowest level at which two boxes hold all places; negative where numbers have no room for that.
  static int top_of(const Places<T>& places, std::size_t count, double width) {
    if (count == 0) return 0;
    const Tree ends(places, width);
    const double most = std::max(std::fabs(ends.place(0)), std::fabs(ends.place(count - 1)));
    if (!(width >= 1e-290 && most < 1e290)) return -1;
    return std::max(0, std::ilogb(std::max(most, width)) - std::ilogb(width) + 1);
  }

  Tree(const Places<T>& places, double width) : places_(places), width_(width) {}

  void plant(std::size_t count, int top) {
    top_ = top;
    levels_.assign(1, {});
    const std::size_t negative = partition_point(count, [&](std::size_t i) { return place(i) < 0; });
    add(-1, 0, negative, 0);
    add(0, negative, count, 0);
  }

  // One more level, the halves of all boxes that are split.
  void grow() {
    levels_.emplace_back();
    Level& wide = levels_[levels_.size() - 2];
    const double half = width_of(bottom());
    for (std::size_t i = 0; i < wide.size(); ++i) {
      if (!wide[i].split) continue;
      wide[i].child = static_cast<std::uint32_t>(levels_.back().size());
      const double lower = 2 * wide[i].index, edge = (lower + 1) * half;
      const std::size_t begin = wide[i].begin, end = wide[i].end;
      const std::size_t middle = begin + partition_point(end - begin, [&](std::size_t j) { return place(begin + j) < edge; });
      add(lower, begin, middle, i);
      add(lower + 1, middle, end, i);
    }
  }

  int top() const { return top_; }
  int bottom() const { return top_ + 1 - static_cast<int>(levels_.size()); }
  Level& level(int level) { return levels_[std::size_t(top_ - level)]; }
  const Level& level(int level) const { return levels_[std::size_t(top_ - level)]; }
  const Places<T>& places() const { return places_; }
  double width_of(int level) const { return std::ldexp(width_, level); }
  double middle(int level, const Box& box) const { return (box.index + 0.5) * width_of(level); }

 private:
  double place(std::size_t i) const { return double(places_.value[i]) + (places_.rest ? double(places_.rest[i]) : 0.0); }

  void add(double index, std::size_t begin, std::size_t end, std::size_t parent) {
    if (begin == end) return;
    const bool tied = places_.minus(end - 1, places_, begin) == 0;
    levels_.back().push_back({index, begin, end, static_cast<std::uint32_t>(parent), 0, tied, false});
  }

  Places<T> places_;
  double width_;
  int top_ = 0;
  Vector<Level> levels_;  // the widest first
};

// Calls visit(target, first, last) for the targets [begin, end) of a level, with the sources whose indices are at
// most `most` away.
template <class Target, class Source, class Visit>
void for_near(const Target& targets, const Source& sources, double most, std::size_t begin, std::size_t end, Visit visit) {
  if (begin == end) return;
  std::size_t first = partition_point(sources.size(), [&](std::size_t i) { return sources[i].index < targets[begin].index - most; });
  std::size_t last = first;
  for (std::size_t box = begin; box < end; ++box) {
    while (first < sources.size() && sources[first].index < targets[box].index - most) ++first;
    last = std::max(first, last);
    while (last < sources.size() && sources[last].index <= targets[box].index + most) ++last;
    visit(box, first, last);
  }
}

}  // namespace softorder
