// Between a model file's rows and the packed layout (layout.h). Nothing is rounded: unpacking gives
// exactly what tensor::dequantize_row gives.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "cicada/tensor/dtype.h"

namespace cicada::kernels {

// Packs groups [group_begin, group_end) of a matrix.
// Shapes:  file [rows, columns] as the file stores them; packed [packed_bytes(dtype, rows,
// columns)];
//          row_order [rows]: packed row r is the file's row row_order[r]; empty: the same order.
// Threads: callable for disjoint groups at once.
void pack_groups(tensor::DType dtype, std::span<const std::byte> file, std::size_t rows,
                 std::size_t columns, std::span<std::byte> packed,
                 std::span<const std::uint32_t> row_order, std::size_t group_begin,
                 std::size_t group_end);

// Decodes row `row` of a packed matrix. Shapes: out [columns].
void unpack_row(tensor::DType dtype, std::span<const std::byte> packed, std::size_t row,
                std::span<float> out);

}  // namespace cicada::kernels
