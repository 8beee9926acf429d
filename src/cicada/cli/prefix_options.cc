#include "cicada/cli/prefix_options.h"

#include "cicada/cli/messages.h"
#include "cicada/cli/numbers.h"
#include "cicada/formats/content_id.h"

namespace cicada::cli {

void add_prefix_options(CLI::App& command, PrefixArguments& arguments) {
  command.add_option("--prefix-cache", arguments.folder,
                     "Folder in which beginnings of prompts outlive the process");
  command
      .add_option("--prefix-cache-mb", arguments.most_megabytes,
                  "Most megabytes in that folder (default 4096); the oldest go first")
      ->transform(whole_number(1, UINT32_MAX));
  command
      .add_option("--block-size", arguments.block_size,
                  "Tokens in a page of the KV cache: 16, 32 or 64 (default)")
      ->transform(whole_number(0, UINT32_MAX));
}

Result<engine::GeneratorOptions> generator_options(const PrefixArguments& arguments,
                                                   const LoadedModel& loaded, std::size_t context) {
  auto size = kv::check_page_tokens(arguments.block_size);
  if (!size) return fail(std::move(size).error().with_context("--block-size"));
  engine::GeneratorOptions options{.context = context, .page_tokens = arguments.block_size};
  if (arguments.folder.empty()) return options;
  CICADA_ASSIGN(std::string identity, formats::content_id(*loaded.file, *loaded.pool));
  options.prefix_store = kv::PrefixStoreOptions{.folder = arguments.folder,
                                                .model_identity = std::move(identity),
                                                .max_bytes = arguments.most_megabytes * 1000000,
                                                .log = complain};
  return options;
}

}  // namespace cicada::cli
