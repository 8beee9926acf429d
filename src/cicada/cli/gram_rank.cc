#include "cicada/cli/gram_rank.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "cicada/base/check.h"

namespace cicada::cli {
namespace {

// A symmetric tridiagonal matrix: its diagonal, and what stands beside it.
struct Tridiagonal {
  std::vector<double> diagonal;  // [n]
  std::vector<double> beside;    // [n]; beside[i] joins i and i + 1, the last is 0
};

// Householder reduction of a full symmetric matrix [n, n], which is overwritten. Loops run along
// rows and carry no sums, so that the compiler can use vectors.
Result<Tridiagonal> tridiagonalise(std::span<double> a, std::size_t n,
                                   const KeepGoing& keep_going) {
  Tridiagonal result{std::vector<double>(n), std::vector<double>(n)};
  std::vector<double> v(n);
  std::vector<double> w(n);
  for (std::size_t k = 0; k + 1 < n; ++k) {
    if (!keep_going()) return fail(Code::kCancelled, "the inspection was stopped");
    const double* row = &a[k * n];
    double norm2 = 0.0;
    for (std::size_t i = k + 1; i < n; ++i) norm2 += row[i] * row[i];
    result.diagonal[k] = row[k];
    const double alpha = row[k + 1] > 0.0 ? -std::sqrt(norm2) : std::sqrt(norm2);
    result.beside[k] = alpha;
    std::copy(row + k + 1, row + n, v.begin() + static_cast<std::ptrdiff_t>(k) + 1);
    v[k + 1] -= alpha;
    double v_norm2 = 0.0;
    for (std::size_t i = k + 1; i < n; ++i) v_norm2 += v[i] * v[i];
    if (v_norm2 == 0.0) continue;
    // H = I - beta v vᵀ; H A H = A - v wᵀ - w vᵀ.
    const double beta = 2.0 / v_norm2;
    std::fill(w.begin(), w.end(), 0.0);
    for (std::size_t i = k + 1; i < n; ++i) {
      const double scale = beta * v[i];
      const double* from = &a[i * n];
      for (std::size_t j = k + 1; j < n; ++j) w[j] += scale * from[j];
    }
    double v_w = 0.0;
    for (std::size_t i = k + 1; i < n; ++i) v_w += v[i] * w[i];
    const double share = 0.5 * beta * v_w;
    for (std::size_t i = k + 1; i < n; ++i) w[i] -= share * v[i];
    for (std::size_t i = k + 1; i < n; ++i) {
      const double v_i = v[i];
      const double w_i = w[i];
      double* to = &a[i * n];
      for (std::size_t j = k + 1; j < n; ++j) to[j] -= v_i * w[j] + w_i * v[j];
    }
  }
  result.diagonal[n - 1] = a[n * n - 1];
  return result;
}

// Eigenvalues above x, by the signs of a Sturm sequence.
std::size_t count_above(const Tridiagonal& t, double x) {
  std::size_t count = 0;
  double q = 1.0;
  double beside2 = 0.0;
  for (std::size_t i = 0; i < t.diagonal.size(); ++i) {
    q = t.diagonal[i] - x - beside2 / q;
    if (q > 0.0) ++count;
    // A zero would divide the next one; as a tiny number it moves no eigenvalue visibly.
    if (q == 0.0) q = -std::numeric_limits<double>::min();
    beside2 = t.beside[i] * t.beside[i];
  }
  return count;
}

// The largest eigenvalue of a matrix without negative ones, to 1e-9 of itself.
double largest_eigenvalue(const Tridiagonal& t) {
  double high = 0.0;  // Gershgorin
  for (std::size_t i = 0; i < t.diagonal.size(); ++i) {
    const double before = i == 0 ? 0.0 : std::abs(t.beside[i - 1]);
    high = std::max(high, t.diagonal[i] + before + std::abs(t.beside[i]));
  }
  double low = 0.0;
  for (int step = 0; step < 64 && high - low > 1e-9 * high; ++step) {
    const double middle = 0.5 * (low + high);
    (count_above(t, middle) > 0 ? low : high) = middle;
  }
  return high;
}

}  // namespace

void GramMatrix::add(std::span<const double> panel) {
  CICADA_CHECK(panel.size() % (kGroup * side_) == 0, "a panel holds whole groups of vectors");
  for (std::size_t at = 0; at < panel.size(); at += kGroup * side_) {
    const double* v = &panel[at];
    for (std::size_t i = 0; i < side_; ++i) {
      double scale[kGroup];
      for (std::size_t g = 0; g < kGroup; ++g) scale[g] = v[g * side_ + i];
      double* row = &values_[i * side_];
      for (std::size_t j = i; j < side_; ++j) {
        double sum = row[j];
        for (std::size_t g = 0; g < kGroup; ++g) sum += scale[g] * v[g * side_ + j];
        row[j] = sum;
      }
    }
  }
}

Result<std::size_t> GramMatrix::rank(const KeepGoing& keep_going) && {
  for (std::size_t i = 0; i < side_; ++i) {
    for (std::size_t j = 0; j < i; ++j) values_[i * side_ + j] = values_[j * side_ + i];
  }
  CICADA_ASSIGN(const Tridiagonal t, tridiagonalise(values_, side_, keep_going));
  const double largest = largest_eigenvalue(t);
  if (largest <= 0.0) return std::size_t{0};
  return count_above(t, kRankTolerance * kRankTolerance * largest);
}

}  // namespace cicada::cli
