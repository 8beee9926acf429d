#include "cicada/cli/table.h"

#include <fmt/format.h>

#include <algorithm>

#include "cicada/base/check.h"

namespace cicada::cli {
namespace {

constexpr std::string_view kGap = "  ";

// Characters: bytes that do not continue one.
std::size_t width(std::string_view text) {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xC0) != 0x80;
  }));
}

}  // namespace

void Table::add(std::vector<std::string> cells) {
  CICADA_CHECK(cells.size() == columns_.size(), "a row has a cell for each column");
  rows_.push_back(std::move(cells));
}

std::string Table::text() const {
  std::vector<std::size_t> widths;
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    std::size_t widest = width(columns_[i].title);
    for (const auto& row : rows_) widest = std::max(widest, width(row[i]));
    widths.push_back(widest);
  }
  std::string text;
  const auto add_line = [&](const auto& cell_of) {
    std::string line;
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      const std::string_view cell = cell_of(i);
      const std::string padding(widths[i] - width(cell), ' ');
      if (i > 0) line += kGap;
      line += columns_[i].align == Align::kRight ? padding : "";
      line += cell;
      line += columns_[i].align == Align::kLeft ? padding : "";
    }
    line.resize(line.find_last_not_of(' ') + 1);
    text += line + '\n';
  };
  add_line([this](std::size_t i) { return columns_[i].title; });
  for (const auto& row : rows_) {
    add_line([&row](std::size_t i) { return std::string_view(row[i]); });
  }
  return text;
}

std::string grouped(std::uint64_t number) {
  std::string digits = fmt::format("{}", number);
  for (std::size_t at = digits.size(); at > 3;) {
    at -= 3;
    digits.insert(at, ",");
  }
  return digits;
}

std::string counted(std::uint64_t number, std::string_view thing) {
  return fmt::format("{} {}{}", grouped(number), thing, number == 1 ? "" : "s");
}

}  // namespace cicada::cli
