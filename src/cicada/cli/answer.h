// Answering a prompt on the terminal: what `run` and `chat` share.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "cicada/base/result.h"
#include "cicada/chat/chat_template.h"
#include "cicada/cli/common.h"
#include "cicada/cli/kv_option.h"
#include "cicada/cli/prefix_options.h"
#include "cicada/engine/generator.h"
#include "cicada/tokenizer/tokenizer.h"

namespace cicada::cli {

struct AnswerArguments {
  ModelArguments model;
  std::uint32_t context = 0;  // tokens; 0: the smaller of what the model was trained for and 4096
  std::uint32_t max_tokens = 0;  // 0: as many as the context has room
  KvArguments kv;
  PrefixArguments prefix;
  engine::SamplerOptions sampler;
  bool draft = true;
};

// Adds the model options and -c, -n, --kv and the sampling options.
void add_answer_options(CLI::App& command, AnswerArguments& arguments);

// A model with its tokenizer and a generator: answers one prompt after another.
struct Answerer {
  LoadedModel loaded;
  std::unique_ptr<tokenizer::Tokenizer> tokenizer;
  std::unique_ptr<engine::Generator> generator;
  engine::GenerateOptions options;

  // Errors: those of loading and of the options.
  static Result<Answerer> create(const AnswerArguments& arguments);
};

struct Answer {
  std::string text;
  engine::Generation generation;
};

// Generates and hands on text as soon as its characters are whole; false from on_text stops.
Result<Answer> answer(Answerer& answerer, const std::vector<TokenId>& prompt,
                      const std::function<bool(std::string_view)>& on_text);

// Rendering as of now, with the assistant's turn opened.
chat::RenderOptions render_options();

}  // namespace cicada::cli
