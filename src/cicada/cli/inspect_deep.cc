#include "cicada/cli/inspect_deep.h"

#include <algorithm>
#include <cmath>

#include "cicada/cli/gram_rank.h"
#include "cicada/tensor/dequantize.h"

namespace cicada::cli {
namespace {

using formats::ModelFile;
using formats::TensorInfo;

// Whole blocks of any type, and whole groups of a Gram matrix.
constexpr std::uint64_t kPieceElements = 256;
static_assert(kPieceElements % GramMatrix::kGroup == 0);

// A matrix of a file, decoded where it is asked for.
class Matrix {
 public:
  Matrix(const ModelFile& file, const TensorInfo& tensor)
      : dtype_(tensor.dtype),
        bytes_(file.tensor_bytes(tensor)),
        rows_(static_cast<std::size_t>(tensor.num_rows())),
        columns_(static_cast<std::size_t>(tensor.row_elements())) {}

  std::size_t rows() const { return rows_; }
  std::size_t columns() const { return columns_; }

  // Elements [column, column + out.size()) of a row; both ends on whole blocks.
  void read(std::size_t row, std::size_t column, std::span<float> out) const {
    const std::size_t at =
        row * tensor::row_bytes(dtype_, columns_) + tensor::row_bytes(dtype_, column);
    tensor::dequantize_row(dtype_, bytes_.subspan(at, tensor::row_bytes(dtype_, out.size())), out);
  }

 private:
  tensor::DType dtype_;
  std::span<const std::byte> bytes_;
  std::size_t rows_;
  std::size_t columns_;
};

std::size_t smaller_side(const TensorInfo& tensor) {
  return static_cast<std::size_t>(std::min(tensor.num_rows(), tensor.row_elements()));
}

bool is_rankable(const TensorInfo& tensor) {
  return tensor.shape.size() <= 2 && smaller_side(tensor) <= kMaxRankSide;
}

// Time is about proportional to these, in units of one decoded element.
double count_work(const TensorInfo& tensor) { return static_cast<double>(tensor.num_elements()); }
double rank_work(const TensorInfo& tensor) {
  const auto side = static_cast<double>(smaller_side(tensor));
  return is_rankable(tensor) ? side * count_work(tensor) / 8 + side * side * side / 2 : 0.0;
}

class Student {
 public:
  Student(const ModelFile& file, const StudyProgress& progress) : file_(file), progress_(progress) {
    for (const TensorInfo& tensor : file.tensors()) {
      total_work_ += count_work(tensor) + rank_work(tensor);
    }
  }

  Result<TensorStudy> study(const TensorInfo& tensor) {
    tensor_ = tensor.name;
    TensorStudy study;
    CICADA_TRY(count(tensor, study));
    done_work_ += count_work(tensor);
    if (!std::isfinite(study.norm)) {
      study.rank_note = "holds NaN or infinite values";
    } else if (tensor.shape.size() > 2) {
      study.rank_note = "has more than two dimensions";
    } else if (!is_rankable(tensor)) {
      study.rank_note = fmt::format("its smaller side is above {}", kMaxRankSide);
    } else if (study.norm == 0.0) {
      study.rank = 0;
    } else {
      CICADA_ASSIGN(study.rank, rank(tensor));
    }
    done_work_ += rank_work(tensor);
    file_.drop_pages(tensor);
    return study;
  }

 private:
  bool advance(double work_in_part) {
    const double share = (done_work_ + work_in_part) / std::max(total_work_, 1.0);
    return progress_(tensor_, std::min(share, 1.0));
  }

  static tl::unexpected<Error> stopped() {
    return fail(Code::kCancelled, "the inspection was stopped");
  }

  Result<void> count(const TensorInfo& tensor, TensorStudy& study) {
    const Matrix matrix(file_, tensor);
    std::vector<float> row(matrix.columns());
    double sum = 0.0;
    for (std::size_t r = 0; r < matrix.rows(); ++r) {
      matrix.read(r, 0, row);
      for (const float value : row) {
        if (value == 0.0F) ++study.zeros;
        sum += double{value} * double{value};
      }
      if (!advance(static_cast<double>(r) * static_cast<double>(row.size()))) return stopped();
    }
    study.norm = std::sqrt(sum);
    return {};
  }

  Result<std::size_t> rank(const TensorInfo& tensor) {
    const Matrix matrix(file_, tensor);
    GramMatrix gram(smaller_side(tensor));
    CICADA_TRY(matrix.rows() >= matrix.columns() ? add_rows(matrix, gram)
                                                 : add_columns(matrix, gram));
    const double work = static_cast<double>(gram.side()) * count_work(tensor) / 8;
    return std::move(gram).rank([&] { return advance(work); });
  }

  // Rows are the vectors: many short ones.
  Result<void> add_rows(const Matrix& matrix, GramMatrix& gram) {
    const std::size_t side = matrix.columns();
    std::vector<float> row(side);
    std::vector<double> panel(GramMatrix::kGroup * side);
    for (std::size_t begin = 0; begin < matrix.rows(); begin += GramMatrix::kGroup) {
      std::fill(panel.begin(), panel.end(), 0.0);
      const std::size_t count = std::min(GramMatrix::kGroup, matrix.rows() - begin);
      for (std::size_t i = 0; i < count; ++i) {
        matrix.read(begin + i, 0, row);
        std::copy(row.begin(), row.end(), panel.begin() + static_cast<std::ptrdiff_t>(i * side));
      }
      gram.add(panel);
      if (!advance(static_cast<double>(begin * side) * static_cast<double>(side) / 8)) {
        return stopped();
      }
    }
    return {};
  }

  // Columns are the vectors: a strip of them is gathered from all rows at a time.
  Result<void> add_columns(const Matrix& matrix, GramMatrix& gram) {
    const std::size_t side = matrix.rows();
    std::vector<float> strip(kPieceElements);
    std::vector<double> panel(kPieceElements * side);
    for (std::size_t begin = 0; begin < matrix.columns(); begin += kPieceElements) {
      strip.resize(std::min<std::size_t>(kPieceElements, matrix.columns() - begin));
      std::fill(panel.begin(), panel.end(), 0.0);
      for (std::size_t row = 0; row < side; ++row) {
        matrix.read(row, begin, strip);
        for (std::size_t i = 0; i < strip.size(); ++i) panel[i * side + row] = double{strip[i]};
      }
      gram.add(panel);
      if (!advance(static_cast<double>(begin * side) * static_cast<double>(side) / 8)) {
        return stopped();
      }
    }
    return {};
  }

  const ModelFile& file_;
  const StudyProgress& progress_;
  std::string_view tensor_;
  double done_work_ = 0.0;
  double total_work_ = 0.0;
};

}  // namespace

Result<std::vector<TensorStudy>> study_tensors(const ModelFile& file,
                                               const StudyProgress& progress) {
  std::vector<TensorStudy> studies;
  Student student(file, progress);
  for (const TensorInfo& tensor : file.tensors()) {
    CICADA_ASSIGN(TensorStudy study, student.study(tensor));
    studies.push_back(std::move(study));
  }
  return studies;
}

}  // namespace cicada::cli
