// Tables for people: columns as wide as their widest cell.
// Threads: a value.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace cicada::cli {

enum class Align : std::uint8_t { kLeft, kRight };

struct Column {
  std::string_view title;
  Align align = Align::kLeft;
};

class Table {
 public:
  explicit Table(std::vector<Column> columns) : columns_(std::move(columns)) {}

  // One cell for each column (checked); cells are UTF-8 of characters one column wide.
  void add(std::vector<std::string> cells);

  bool is_empty() const { return rows_.empty(); }

  // The title line and the rows, each ended by a newline and without blanks at its end.
  std::string text() const;

 private:
  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

// "134,515,008".
std::string grouped(std::uint64_t number);

// "1 tensor", "2 tensors".
std::string counted(std::uint64_t number, std::string_view thing);

}  // namespace cicada::cli
