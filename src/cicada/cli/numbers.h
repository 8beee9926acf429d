// Numbers on the command line: what the option parser takes for one is checked first, since it
// reads an empty word as the default, 010 as eight and -1 as the largest number. Threads: pure
// functions.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>

namespace cicada::cli {

// Both of these rewrite the word for the parser, so they belong to transform(): check() would give
// them a copy.
//
// Digits for a number in [low, high].
CLI::Validator whole_number(std::uint64_t low, std::uint64_t high);

// A number of bytes from 1 on, as digits or with one letter behind them: k, m and g are 1000, 1000²
// and 1000³, K, M and G 1024, 1024² and 1024³.
CLI::Validator byte_size();

// A finite decimal number such as 0.7 or 1e-9; its range is the caller's business.
CLI::Validator decimal_number();

}  // namespace cicada::cli
