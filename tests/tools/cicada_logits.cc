// Writes the logits of every position of a token list: the engine as the float64 oracle sees it.
//
//   cicada_logits MODEL IDS.txt OUT.f32 [--threads N] [--chunk N] [--role prefill|decode] [--batch
//   B]
//                 [--no-elide]
//
// IDS.txt holds ids separated by white space; OUT.f32 gets [num_ids, vocab] float32. --chunk cuts
// the prompt, --role decode feeds one token at a time, --batch runs B sequences at once, each with
// the same ids cut differently, and writes those of the last. CICADA_FORCE_ISA selects the kernel
// level.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <vector>

#include "cicada/model/executor.h"
#include "cicada/platform/env.h"

namespace {

using namespace cicada;  // a test program of one file

struct Options {
  std::string model;
  std::string ids;
  std::string out;
  std::size_t threads = 1;
  std::size_t chunk = 64;
  std::string role = "prefill";
  std::size_t batch = 1;
  bool no_elide = false;
};

Result<std::vector<float>> logits_of(const Options& options, const std::vector<std::int32_t>& ids) {
  CICADA_ASSIGN(
      const auto level,
      platform::choose_isa_level(platform::detect_cpu_features(),
                                 platform::environment_variable("CICADA_FORCE_ISA").value_or("")));
  CICADA_ASSIGN(const formats::ModelFile file, formats::ModelFile::open(options.model));
  platform::ThreadPool pool(options.threads);
  model::ModelOptions model_options{.level = level, .load = {}};
  model_options.load.elide = !options.no_elide;
  CICADA_ASSIGN(const auto model, model::Model::load(file, pool, model_options));
  const std::size_t chunk = options.role == "decode" ? 1 : options.chunk;
  CICADA_ASSIGN(const auto executor,
                model::Executor::create(*model, pool,
                                        {.max_rows = (chunk + 1) * options.batch,
                                         .max_sequences = options.batch,
                                         .max_context = ids.size() + 1,
                                         .max_logit_rows = (chunk + 1) * options.batch}));
  const std::size_t pages = (ids.size() / kv::kPageTokens + 1) * options.batch;
  CICADA_ASSIGN(kv::PagePool pages_pool, kv::PagePool::create(model->kv_layout(), pages));
  std::vector<kv::Sequence> sequences;
  std::vector<kv::Sequence*> pointers;
  for (std::size_t b = 0; b < options.batch; ++b) sequences.emplace_back(pages_pool);
  for (kv::Sequence& sequence : sequences) {
    CICADA_TRY(sequence.reserve(ids.size()));
    pointers.push_back(&sequence);
  }
  const std::size_t vocab = model->config().vocab;
  std::vector<float> all(ids.size() * vocab);
  std::vector<std::size_t> done(options.batch, 0);
  std::size_t step = 0;
  while (done.back() < ids.size()) {
    std::vector<model::Row> rows;
    std::size_t own = 0;
    const std::size_t start = done.back();
    for (std::size_t b = 0; b < options.batch; ++b) {
      // Neighbours take chunks of other sizes, so that the batch is ragged.
      const bool is_last = b + 1 == options.batch;
      const std::size_t want = is_last ? chunk : (chunk > 1 ? 1 + (chunk + b + step) % chunk : 1);
      const std::size_t count = std::min(want, ids.size() - done[b]);
      for (std::size_t i = 0; i < count; ++i) {
        rows.push_back(
            {.token = TokenId(ids[done[b] + i]),
             .position = static_cast<std::int64_t>(done[b] + i),
             .sequence = static_cast<std::uint32_t>(b),
             .wants_logits = is_last,
             .role = options.role == "decode" ? model::Role::kDecode : model::Role::kPrefill});
      }
      done[b] += count;
      if (is_last) own = count;
    }
    CICADA_TRY(executor->run(rows, pointers, std::span(all).subspan(start * vocab, own * vocab)));
    ++step;
  }
  return all;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  CLI::App app{"Logits of every position"};
  app.add_option("model", options.model)->required();
  app.add_option("ids", options.ids)->required();
  app.add_option("out", options.out)->required();
  app.add_option("--threads", options.threads)->check(CLI::Range(1, 64));
  app.add_option("--chunk", options.chunk)->check(CLI::Range(1, 4096));
  app.add_option("--role", options.role)->check(CLI::IsMember({"prefill", "decode"}));
  app.add_option("--batch", options.batch)->check(CLI::Range(1, 64));
  app.add_flag("--no-elide", options.no_elide);
  CLI11_PARSE(app, argc, argv);
  std::ifstream in(options.ids);
  const std::vector<std::int32_t> ids{std::istream_iterator<std::int32_t>(in), {}};
  const auto logits = logits_of(options, ids);
  if (!logits) {
    std::fprintf(stderr, "cicada_logits: %s\n", logits.error().to_string().c_str());
    return 2;
  }
  std::ofstream out(options.out, std::ios::binary);
  out.write(reinterpret_cast<const char*>(logits->data()),
            static_cast<std::streamsize>(logits->size() * sizeof(float)));
  return out ? 0 : 1;
}
