// F-sums of the Laplace density in linear time: one sweep from the left and one from the right.
//
// A sweep carries the moments M_k = Σ w_i d^k e^-d of the sources that it has met, d = |p - x_i|/τ,
// as seen from its place p. To move on by d, M_0 becomes e^-d M_0, M_1 becomes e^-d (M_1 + d M_0) and
// so on: all that is ever multiplied are e^-d <= 1 of neighbours, so that nothing overflows and
// nothing is divided by what underflowed.
//
// Several threads share a long row: each first sums up its part as seen from the part's end, which
// gives every part the moments that it starts with.
#pragma once

#include <cmath>
#include <cstdint>

#include "fsum/places.hpp"
#include "scratch.hpp"
#include "team.hpp"

namespace softorder {

constexpr int kMostMoment = 3;
constexpr double kFar = 800;  // e^-d is 0 from here on

template <int K> struct Moments {
  double sum[K + 1] = {};

  void move(double d, double decay) {
    if constexpr (K >= 1) {
      d = std::min(d, kFar);
      if constexpr (K >= 3) sum[3] += d * (3 * sum[2] + d * (3 * sum[1] + d * sum[0]));
      if constexpr (K >= 2) sum[2] += d * (2 * sum[1] + d * sum[0]);
      sum[1] += d * sum[0];
    }
    for (double& s : sum) s *= decay;
  }
  void add(const Moments& other) {
    for (int k = 0; k <= K; ++k) sum[k] += other.sum[k];
  }
};

// One direction. Sources are counted in the order in which the sweep meets them.
template <class T, int K, bool kBackward> class LaplaceSweep {
 public:
  explicit LaplaceSweep(const FsumRow<T>& row)
      : row_(row), ties_(row.derivative == 2), side_(side_of(row)), inverse_(1 / row.temperature) {}

  void run(Team team) {
    if (row_.m == 0) return;
    Moments<K> start[Team::kMost];
    double weight[Team::kMost] = {};
    std::size_t first[Team::kMost + 1];
    find_starts(team, start, weight);
    for (int member = 0; member < team.size; ++member) {
      first[member] = member == 0 ? 0 : first_target(team.bound(row_.m, member));
    }
    first[team.size] = row_.n;
    team.split(row_.m, [&](std::size_t begin, std::size_t end, int member) {
      part(begin, end, first[member], first[member + 1], start[member], weight[member]);
    });
  }

 private:
  static constexpr std::size_t kBlock = 512;
  static constexpr std::size_t kRoom = kBlock + kLanes<double>;

  // The sign and the half of F's tail: F = 1 - e^-u/2 and e^u/2, f = e^-|u|/2, f' = -+e^-|u|/2.
  static double side_of(const FsumRow<T>& row) {
    if (kBackward) return row.moment % 2 ? -0.5 : 0.5;
    return row.derivative % 2 ? 0.5 : -0.5;
  }
  std::size_t source(std::size_t i) const { return kBackward ? row_.m - 1 - i : i; }
  std::size_t target(std::size_t j) const { return kBackward ? row_.n - 1 - j : j; }
  double weight(std::size_t i) const { return row_.weight(source(i)); }

  // How far the i-th source is ahead of the j-th.
  double ahead(std::size_t i, std::size_t j) const {
    const double difference = row_.sources.minus(source(i), row_.sources, source(j));
    return kBackward ? -difference : difference;
  }
  // How far the j-th target is ahead of the i-th source.
  double beyond(std::size_t j, std::size_t i) const {
    const double difference = row_.targets.minus(target(j), row_.sources, source(i));
    return kBackward ? -difference : difference;
  }
  // Whether the j-th target is behind the i-th source, which then counts for it. A source at the
  // target counts once, for the sweep from the left; or for both, whose f' then cancel.
  bool counts(std::size_t i, std::size_t j) const {
    if (row_.at_sources() && !ties_) return kBackward ? i < j : i <= j;
    const double distance = beyond(j, i);
    return kBackward && !ties_ ? distance > 0 : distance >= 0;
  }
  std::size_t first_target(std::size_t i) const {
    return partition_point(row_.n, [&](std::size_t j) { return !counts(i, j); });
  }

  // The moments of everything before each part, seen from the last source before it.
  void find_starts(Team team, Moments<K>* start, double* weight) const {
    if (team.size == 1) return;
    Moments<K> own[Team::kMost];
    double total[Team::kMost];
    team.split(row_.m, [&](std::size_t begin, std::size_t end, int member) {
      own[member] = seen_from_end(begin, end, total[member]);
    });
    for (int member = 1; member < team.size; ++member) {
      const std::size_t begin = team.bound(row_.m, member - 1), end = team.bound(row_.m, member);
      start[member] = start[member - 1];
      weight[member] = weight[member - 1];
      if (begin == end) continue;
      const double d = begin == 0 ? 0 : ahead(end - 1, begin - 1) * inverse_;
      start[member].move(d, std::exp(-d));
      start[member].add(own[member - 1]);
      weight[member] += total[member - 1];
    }
  }

  Moments<K> seen_from_end(std::size_t begin, std::size_t end, double& weights) const {
    Moments<K> total;
    weights = 0;
    double distance[kRoom], decay[kRoom];
    for (std::size_t from = begin; from < end; from += kBlock) {
      const std::size_t count = std::min(kBlock, end - from);
      for (std::size_t i = 0; i < count; ++i) distance[i] = decay[i] = ahead(end - 1, from + i);
      decays(decay, count, row_.temperature);
      for (std::size_t i = 0; i < count; ++i) {
        const double w = weight(from + i), d = std::min(distance[i] * inverse_, kFar);
        double term = w * decay[i];
        weights += w;
        for (int k = 0; k <= K; ++k, term *= d) total.sum[k] += term;
      }
    }
    return total;
  }

  // The moments behind a block, directly: a chain of a million factors near 1 would add up the
  // rounding of every one of them.
  Moments<K> seen_from_last(std::size_t from, std::size_t count, Moments<K> before) const {
    double weights;
    const double d = from == 0 ? 0 : ahead(from + count - 1, from - 1) * inverse_;
    before.move(d, std::exp(-d));
    before.add(seen_from_end(from, from + count, weights));
    return before;
  }

  struct Block {
    double distance[kRoom], decay[kRoom];
    Moments<K> moments[kBlock];
    double weight[kBlock];  // of the sources up to this one
    Moments<K> before[kBlock];
  };

  // Sources [begin, end) and targets [target, last), which are behind `begin` or before everything.
  void part(std::size_t begin, std::size_t end, std::size_t target, std::size_t last, Moments<K> moments,
            double weight) {
    Vector<Block> memory(1);
    Block* const block = memory.data();
    for (; begin == 0 && target < last && !counts(0, target); ++target) answer_none(target);
    for (std::size_t from = begin; from < end; from += kBlock) {
      const std::size_t count = std::min(kBlock, end - from), next = from + count;
      const Moments<K> anchored = seen_from_last(from, count, moments);
      scan(*block, from, count, moments, weight);
      moments = anchored;
      if (row_.at_sources() && !ties_) {
        answer_sources(*block, from, count);
      } else {
        const std::size_t upto =
            next == end ? last : target + partition_point(last - target, [&](std::size_t j) {
              return !counts(next, target + j);
            });
        answer(*block, from, count, target, upto);
        target = upto;
      }
    }
  }

  void scan(Block& block, std::size_t from, std::size_t count, Moments<K>& moments, double& weight) const {
    for (std::size_t i = 0; i < count; ++i) {
      const double d = from + i == 0 ? 0 : ahead(from + i, from + i - 1);
      block.distance[i] = block.decay[i] = d;
    }
    decays(block.decay, count, row_.temperature);
    for (std::size_t i = 0; i < count; ++i) {
      const double w = this->weight(from + i);
      moments.move(block.distance[i] * inverse_, block.decay[i]);
      block.before[i] = moments;
      moments.sum[0] += w;
      weight += w;
      block.moments[i] = moments;
      block.weight[i] = weight;
    }
  }

  void answer_sources(const Block& block, std::size_t from, std::size_t count) const {
    for (std::size_t i = 0; i < count; ++i) {
      const Moments<K>& moments = kBackward ? block.before[i] : block.moments[i];
      write(target(from + i), moments.sum[K], block.weight[i]);
    }
  }

  // The targets [begin, end), each behind some of the sources [from, from + count) but not all of
  // those that follow.
  void answer(const Block& block, std::size_t from, std::size_t count, std::size_t begin, std::size_t end) const {
    double distance[kRoom], decay[kRoom];
    std::uint32_t place[kBlock];
    std::size_t i = 0;
    for (; begin < end; begin += kBlock) {
      const std::size_t size = std::min(kBlock, end - begin);
      for (std::size_t j = 0; j < size; ++j) {
        while (i + 1 < count && counts(from + i + 1, begin + j)) ++i;
        place[j] = static_cast<std::uint32_t>(i);
        distance[j] = decay[j] = std::max(beyond(begin + j, from + i), 0.0);
      }
      decays(decay, size, row_.temperature);
      for (std::size_t j = 0; j < size; ++j) {
        Moments<K> moments = block.moments[place[j]];
        moments.move(distance[j] * inverse_, decay[j]);
        write(target(begin + j), moments.sum[K], block.weight[place[j]]);
      }
    }
  }

  void answer_none(std::size_t j) const {
    if (!kBackward) row_.out[target(j)] = 0;
  }

  void write(std::size_t place, double moment, double weight) const {
    if (kBackward) {
      row_.out[place] = T(double(row_.out[place]) + side_ * moment);
    } else {
      row_.out[place] = T((row_.derivative == 0 ? weight : 0.0) + side_ * moment);
    }
  }

  const FsumRow<T>& row_;
  bool ties_;
  double side_, inverse_;
};

template <class T, int K> void laplace_fsum_of(const FsumRow<T>& row, Team team) {
  LaplaceSweep<T, K, false>(row).run(team);
  LaplaceSweep<T, K, true>(row).run(team);
}

template <class T> void laplace_fsum(const FsumRow<T>& row, Team team) {
  if (row.m == 0) return std::fill(row.out, row.out + row.n, T(0));
  switch (row.moment) {
    case 0: return laplace_fsum_of<T, 0>(row, team);
    case 1: return laplace_fsum_of<T, 1>(row, team);
    case 2: return laplace_fsum_of<T, 2>(row, team);
    default: return laplace_fsum_of<T, 3>(row, team);
  }
}

}  // namespace softorder
