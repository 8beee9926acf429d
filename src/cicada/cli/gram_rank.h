// The numerical rank of a matrix, from the Gram matrix of its smaller side.
//
// Singular values are square roots of the Gram matrix's eigenvalues. In double precision that
// leaves about half of the digits: rounding moves an eigenvalue by about 1e-13 of the largest, so a
// singular value shows from about 1e-6 of the largest on. The threshold is 1e-5, above that and
// above what storing a matrix as float32 does to a lower rank.
// Threads: one thread.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <vector>

#include "cicada/base/result.h"

namespace cicada::cli {

// Matrices whose smaller side is longer are not ranked: time grows with its cube.
inline constexpr std::size_t kMaxRankSide = 1024;

// Singular values at most this share of the largest count as zero.
inline constexpr double kRankTolerance = 1e-5;

// Asked now and then; false stops.
using KeepGoing = std::function<bool()>;

class GramMatrix {
 public:
  // Vectors are added in panels of whole groups of this many; zero vectors fill up the last one.
  static constexpr std::size_t kGroup = 8;

  explicit GramMatrix(std::size_t side) : side_(side), values_(side * side) {}

  std::size_t side() const { return side_; }

  // Adds v vᵀ for each vector of a panel. Shapes: panel [n, side], n a multiple of kGroup
  // (checked).
  void add(std::span<const double> panel);

  // The number of singular values of the matrix whose vectors were added that are above the
  // tolerance. Uses up the matrix. Precondition: every value added was finite.
  // Errors: kCancelled.
  Result<std::size_t> rank(const KeepGoing& keep_going) &&;

 private:
  std::size_t side_;
  std::vector<double> values_;  // [side, side]; add() keeps the part right of the diagonal
};

}  // namespace cicada::cli
