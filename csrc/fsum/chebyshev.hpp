// Sums of Chebyshev polynomials T_0 ... T_15, and what moves them from one stretch of a row to another.
#pragma once

#include <algorithm>
#include <cmath>
#include <numbers>

#include "scratch.hpp"
#include "simd/pack.hpp"

namespace softorder {

constexpr int kTerms = 16;
constexpr std::size_t kTermPacks = kTerms / kLanes<double>;

// y += factor · x
inline void add_scaled(double* y, double factor, const double* x) {
  for (std::size_t i = 0; i < kTerms; i += kLanes<double>) store(y + i, load(y + i) + factor * load(x + i));
}

// Σ_k c_k T_k(b), by Clenshaw's recurrence.
inline Pack<double> chebyshev_sum(const double* c, Pack<double> b) {
  const Pack<double> twice = b + b;
  Pack<double> last{}, before{};
  for (int k = kTerms - 1; k > 0; --k) {
    const Pack<double> next = twice * last + (c[k] - before);
    before = last, last = next;
  }
  return b * last + (c[0] - before);
}

// The coefficients of the derivative, times a factor: d_(k-1) = d_(k+1) + 2k c_k, and half of that for d_0.
inline void chebyshev_derivative(const double* c, double factor, double* d) {
  double above[2] = {};
  for (int k = kTerms - 1; k >= 0; --k) {
    d[k] = factor * (k == 0 ? 0.5 : 1.0) * above[1];
    const double next = above[0] + 2 * k * c[k];
    above[0] = above[1], above[1] = next;
  }
}

// y += Σ_k x_k · matrix[k]
inline void add_product(const double (&matrix)[kTerms][kTerms], const double* x, double* y) {
  Pack<double> even[kTermPacks], odd[kTermPacks] = {};
  for (std::size_t i = 0; i < kTermPacks; ++i) even[i] = load(y + i * kLanes<double>);
  for (int k = 0; k < kTerms; k += 2) {
    for (std::size_t i = 0; i < kTermPacks; ++i) {
      even[i] += x[k] * load(matrix[k] + i * kLanes<double>);
      odd[i] += x[k + 1] * load(matrix[k + 1] + i * kLanes<double>);
    }
  }
  for (std::size_t i = 0; i < kTermPacks; ++i) store(y + i * kLanes<double>, even[i] + odd[i]);
}

// The nodes, the matrix that takes values there to coefficients, and those that halve a stretch:
// T_l((b ± 1)/2) = Σ_k half[l][k] T_k(b), with the sign + for the upper half.
struct Chebyshev {
  double node[kTerms];
  double fit[kTerms][kTerms];  // [node][coefficient]

  Chebyshev() {
    for (int j = 0; j < kTerms; ++j) {
      node[j] = cosine(2 * j + 1);
      for (int k = 0; k < kTerms; ++k) fit[j][k] = (k == 0 ? 1.0 : 2.0) / kTerms * cosine(k * (2 * j + 1));
    }
    // T_(l+1) = (b + 1) T_l - T_(l-1) at (b + 1)/2, and b T_k = (T_(k+1) + T_|k-1|)/2: exact numbers
    double half[kTerms + 1][kTerms + 2] = {};
    half[0][0] = 1;
    half[1][0] = half[1][1] = 0.5;
    for (int l = 1; l < kTerms; ++l) {
      for (int k = 0; k <= l; ++k) {
        half[l + 1][k] += half[l][k] - half[l - 1][k];
        half[l + 1][k + 1] += 0.5 * half[l][k];
        half[l + 1][k == 0 ? 1 : k - 1] += 0.5 * half[l][k];
      }
    }
    for (int l = 0; l < kTerms; ++l) {
      for (int k = 0; k < kTerms; ++k) {
        join_[1][k][l] = divide_[1][l][k] = half[l][k];
        join_[0][k][l] = divide_[0][l][k] = (k + l) % 2 ? -half[l][k] : half[l][k];
      }
    }
  }

  // Sums over the upper or the lower half of a stretch, added to those over the stretch.
  void join(const double* part, bool upper, double* whole) const { add_product(join_[upper], part, whole); }
  // A polynomial on a stretch, added to one on its upper or lower half.
  void divide(const double* whole, bool upper, double* part) const { add_product(divide_[upper], whole, part); }

 private:
  // cos(i π/(2 kTerms)), whose argument would lose digits if it were large
  static double cosine(int i) {
    i %= 4 * kTerms;
    if (i > 2 * kTerms) i = 4 * kTerms - i;
    const double angle = std::numbers::pi / (2 * kTerms);
    return i > kTerms ? -std::cos((2 * kTerms - i) * angle) : i == kTerms ? 0 : std::cos(i * angle);
  }

  double join_[2][kTerms][kTerms], divide_[2][kTerms][kTerms];
};

// A kernel of two stretches, Σ_kl A_kl T_k(a) T_l(b), as an array [l][k]; kernel(u) is a function of
// packs, u = between + half·(a - b).
template <class Kernel>
void fit_kernel(const Chebyshev& basis, Kernel kernel, double between, double half, double* table) {
  double columns[kTerms][kTerms] = {};
  for (int l = 0; l < kTerms; ++l) {
    double values[kTerms];
    for (std::size_t k = 0; k < kTerms; k += kLanes<double>) {
      store(values + k, kernel(between + half * (load(basis.node + k) - basis.node[l])));
    }
    for (int k = 0; k < kTerms; ++k) add_scaled(columns[l], values[k], basis.fit[k]);
  }
  std::fill(table, table + kTerms * kTerms, 0.0);
  for (int l = 0; l < kTerms; ++l) {
    for (int node = 0; node < kTerms; ++node) {
      add_scaled(table + l * kTerms, basis.fit[node][l], columns[node]);
    }
  }
}

// What a polynomial gains from kernels and moments. G(-u) = ±G(u), so that one table serves both
// directions: the terms of even and of odd source coefficients are kept apart and signed at the end.
struct Gain {
  double even[2][kTerms] = {}, odd[2][kTerms] = {};

  void add(const double* table, const double* moments, bool mirrored) {
    Pack<double> e[kTermPacks], o[kTermPacks];
    for (std::size_t k = 0; k < kTermPacks; ++k) {
      e[k] = load(even[mirrored] + k * kLanes<double>);
      o[k] = load(odd[mirrored] + k * kLanes<double>);
    }
    for (int l = 0; l < kTerms; l += 2) {
      const double* column = table + l * kTerms;
      for (std::size_t k = 0; k < kTermPacks; ++k) {
        e[k] += load(column + k * kLanes<double>) * moments[l];
        o[k] += load(column + kTerms + k * kLanes<double>) * moments[l + 1];
      }
    }
    for (std::size_t k = 0; k < kTermPacks; ++k) {
      store(even[mirrored] + k * kLanes<double>, e[k]);
      store(odd[mirrored] + k * kLanes<double>, o[k]);
    }
  }

  void finish(double parity, double* polynomial) const {
    for (int k = 0; k < kTerms; ++k) {
      const double mirrored = (k % 2 ? -parity : parity) * (even[1][k] - odd[1][k]);
      polynomial[k] += (even[0][k] + odd[0][k]) + mirrored;
    }
  }
};

}  // namespace softorder
