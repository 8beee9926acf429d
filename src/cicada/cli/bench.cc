// `cicada bench`: llama-bench's protocol. Prefill of p tokens and decode of n tokens, both after d
// tokens, for b sequences at once; random ids; medians of r repetitions after one to warm up.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <optional>

#include "cicada/cli/answer.h"
#include "cicada/cli/bench_machine.h"
#include "cicada/cli/bench_prefix.h"
#include "cicada/cli/numbers.h"
#include "cicada/cli/output.h"
#include "cicada/engine/sampler.h"
#include "cicada/json/writer.h"
#include "cicada/platform/interrupt.h"
#include "cicada/platform/resources.h"
#include "cicada/platform/terminal.h"

namespace cicada::cli {
namespace {

struct BenchArguments {
  ModelArguments model;
  std::uint32_t prefill = 512;
  std::uint32_t decode = 128;
  std::uint32_t depth = 0;
  std::uint32_t batch = 1;
  std::uint32_t repeats = 5;
  KvArguments kv;
  PrefixBenchArguments prefix;
  bool machine = false;
  bool json = false;
};

// Bytes of memory by what they are for.
struct MemorySum {
  std::uint64_t weights = 0;
  std::uint64_t kv = 0;
  std::uint64_t work = 0;
  std::uint64_t program = 0;  // itself, and what loading leaves behind

  std::uint64_t all() const { return weights + kv + work + program; }
};

// What was resident when the model had been loaded, beside its weights, and room for the stacks,
// lists and code that only running touches.
std::uint64_t program_bytes(std::uint64_t loaded_bytes, const model::Weights& weights) {
  constexpr std::uint64_t kRunning = std::uint64_t{2} << 20;
  const std::uint64_t held = weights.packed_bytes() + weights.panel_bytes();
  return kRunning + (loaded_bytes > held ? loaded_bytes - held : 0);
}

// Tokens per second over the repetitions.
struct Rate {
  double median = 0.0;
  double min = 0.0;
  double max = 0.0;
};

Rate summarize(std::vector<double> rates) {
  if (rates.empty()) return {};
  std::sort(rates.begin(), rates.end());
  const std::size_t n = rates.size();
  const double median = n % 2 == 1 ? rates[n / 2] : (rates[n / 2 - 1] + rates[n / 2]) / 2;
  return {.median = median, .min = rates.front(), .max = rates.back()};
}

class Bench {
 public:
  static Result<Bench> create(const LoadedModel& loaded, const BenchArguments& arguments) {
    Bench bench(loaded, arguments);
    const std::size_t context =
        std::size_t{arguments.depth} + std::max(arguments.prefill, arguments.decode) + 1;
    const std::size_t max_rows = std::max<std::size_t>(
        arguments.batch, std::min<std::size_t>(context, engine::Generator::kPrefillChunk));
    CICADA_ASSIGN(bench.executor_, model::Executor::create(*loaded.model, *loaded.pool,
                                                           {.max_rows = max_rows,
                                                            .max_sequences = arguments.batch,
                                                            .max_context = context,
                                                            .max_logit_rows = arguments.batch}));
    const std::size_t pages = (context + kv::kPageTokens - 1) / kv::kPageTokens * arguments.batch;
    CICADA_ASSIGN(auto pool, kv::PagePool::create(loaded.model->kv_layout(), pages));
    bench.pages_ = std::make_unique<kv::PagePool>(std::move(pool));
    for (std::uint32_t b = 0; b < arguments.batch; ++b) {
      auto& sequence = bench.sequences_.emplace_back(std::make_unique<kv::Sequence>(*bench.pages_));
      CICADA_TRY(sequence->reserve(context));
      bench.pointers_.push_back(sequence.get());
    }
    bench.logits_.resize(arguments.batch * std::size_t{loaded.model->config().vocab});
    return bench;
  }

  // Reads `count` tokens into sequence 0 from position `begin`; logits of the last.
  Result<void> read(std::size_t begin, std::size_t count, std::uint32_t sequence) {
    for (std::size_t at = 0; at < count;) {
      if (platform::interrupted()) return fail(Code::kCancelled, "stopped");
      const std::size_t end = std::min(count, at + executor_->limits().max_rows);
      rows_.clear();
      for (std::size_t i = at; i < end; ++i) {
        rows_.push_back({.token = next_token(),
                         .position = static_cast<std::int64_t>(begin + i),
                         .sequence = sequence,
                         .wants_logits = i + 1 == count});
      }
      const bool is_last = end == count;
      const auto vocab = std::size_t{loaded_->model->config().vocab};
      CICADA_TRY(executor_->run(rows_, pointers_,
                                is_last ? std::span(logits_).first(vocab) : std::span<float>()));
      at = end;
      if (on_tokens_) on_tokens_(sequence, at);
    }
    return {};
  }

  // Called after every chunk that is read, with the sequence and the tokens read into it.
  void on_tokens(std::function<void(std::uint32_t, std::size_t)> callback) {
    on_tokens_ = std::move(callback);
  }

  // What is held in memory, at most.
  MemorySum memory() const {
    const model::Weights& weights = loaded_->model->weights();
    return {.weights = weights.packed_bytes() + weights.panel_bytes(),
            .kv = pages_->num_pages() * pages_->layout().page_bytes(),
            .work = executor_->workspace_bytes() + logits_.size() * sizeof(float)};
  }

  // Appends `count` tokens to every sequence, one step for all at a time.
  Result<void> decode(std::size_t begin, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) {
      rows_.clear();
      for (std::uint32_t b = 0; b < arguments_->batch; ++b) {
        rows_.push_back({.token = next_token(),
                         .position = static_cast<std::int64_t>(begin + i),
                         .sequence = b,
                         .wants_logits = true,
                         .role = model::Role::kDecode});
      }
      CICADA_TRY(executor_->run(rows_, pointers_, logits_));
    }
    return {};
  }

  // Tokens per second of `work` that computes `tokens`.
  template <typename Work>
  static Result<double> timed(std::size_t tokens, const Work& work) {
    const auto start = std::chrono::steady_clock::now();
    CICADA_TRY(work());
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
    return static_cast<double>(tokens) / seconds.count();
  }

  std::size_t workspace_bytes() const { return executor_->workspace_bytes(); }

 private:
  Bench(const LoadedModel& loaded, const BenchArguments& arguments)
      : loaded_(&loaded), arguments_(&arguments) {}

  TokenId next_token() {
    const double u = engine::counter_uniform(0, 0, drawn_++);
    return TokenId(static_cast<std::int32_t>(u * loaded_->model->config().vocab));
  }

  const LoadedModel* loaded_;
  const BenchArguments* arguments_;
  std::unique_ptr<model::Executor> executor_;
  std::unique_ptr<kv::PagePool> pages_;
  std::vector<std::unique_ptr<kv::Sequence>> sequences_;
  std::vector<kv::Sequence*> pointers_;
  std::function<void(std::uint32_t, std::size_t)> on_tokens_;
  std::vector<float> logits_;
  std::vector<model::Row> rows_;
  std::uint64_t drawn_ = 0;
};

struct BenchResult {
  Rate prefill;
  Rate decode;
  Rate read;                   // GB/s in which the weights are read, measured after each decode
  double read_share = 0.0;     // of that, what decode reached; median of the repetitions
  double depth_seconds = 0.0;  // of the tokens before
  MemorySum memory;
};

// Weights that a step of decode reads.
std::uint64_t decode_bytes(const model::Plan& plan) {
  std::uint64_t bytes = 0;
  for (const model::Step& step : plan.steps) bytes += step.weight_bytes();
  return bytes;
}

// Multiplications and additions, counted apart, that products need for a token.
struct ProductOps {
  std::uint64_t layers = 0;  // a token of a prompt
  std::uint64_t all = 0;     // with the head: a token of an answer
};

ProductOps product_ops(const model::Plan& plan) {
  ProductOps ops;
  for (const model::Step& step : plan.steps) {
    for (const model::Product& product : step.products) {
      const std::uint64_t count = 2 * std::uint64_t{product.w.rows} * product.w.columns;
      ops.all += count;
      if (step.kind != model::StepKind::kHead) ops.layers += count;
    }
  }
  return ops;
}

// GB of weights per second that steps of decode read.
double weight_speed(const model::Plan& plan, double tokens_per_second, std::uint32_t batch) {
  return tokens_per_second / batch * static_cast<double>(decode_bytes(plan)) / 1e9;
}

Result<BenchResult> measure(const LoadedModel& loaded, const BenchArguments& arguments) {
  CICADA_ASSIGN(Bench bench, Bench::create(loaded, arguments));
  platform::Progress progress(STDERR_FILENO);
  bench.on_tokens([&](std::uint32_t sequence, std::size_t tokens) {
    progress.update(fmt::format("read {} of {} tokens before, sequence {} of {}", tokens,
                                arguments.depth, sequence + 1, arguments.batch));
  });
  const auto start = std::chrono::steady_clock::now();
  for (std::uint32_t b = 0; arguments.depth > 0 && b < arguments.batch; ++b) {
    CICADA_TRY(bench.read(0, arguments.depth, b));
  }
  const std::chrono::duration<double> depth_time = std::chrono::steady_clock::now() - start;
  bench.on_tokens({});
  std::vector<double> prefill;
  std::vector<double> decode;
  std::vector<double> reads;
  std::vector<double> shares;
  for (std::uint32_t r = 0; r <= arguments.repeats; ++r) {
    if (platform::interrupted()) return fail(Code::kCancelled, "stopped");
    progress.update(fmt::format("repetition {} of {}", r, arguments.repeats));
    if (arguments.prefill > 0) {
      CICADA_ASSIGN(const double rate, Bench::timed(arguments.prefill, [&] {
                      return bench.read(arguments.depth, arguments.prefill, 0);
                    }));
      if (r > 0) prefill.push_back(rate);
    }
    if (arguments.decode > 0) {
      // The warm-up is short: one step touches every weight.
      const std::size_t steps =
          r == 0 ? std::min<std::uint32_t>(arguments.decode, 8) : arguments.decode;
      CICADA_ASSIGN(const double rate, Bench::timed(steps * arguments.batch, [&] {
                      return bench.decode(arguments.depth, steps);
                    }));
      if (r == 0) continue;
      decode.push_back(rate);
      reads.push_back(
          read_gb_per_s(*loaded.pool, loaded.model->level(), loaded.model->weights().packed()));
      if (reads.back() == 0.0) continue;  // a model of next to nothing
      shares.push_back(weight_speed(loaded.model->plan(), rate, arguments.batch) / reads.back());
    }
  }
  return BenchResult{.prefill = summarize(std::move(prefill)),
                     .decode = summarize(std::move(decode)),
                     .read = summarize(std::move(reads)),
                     .read_share = summarize(std::move(shares)).median,
                     .depth_seconds = arguments.depth > 0 ? depth_time.count() : 0.0,
                     .memory = bench.memory()};
}

void write_rate(json::Writer& writer, std::string_view name, const Rate& rate) {
  writer.key(name)
      .begin_object()
      .field("median", rate.median)
      .field("min", rate.min)
      .field("max", rate.max)
      .end_object();
}

// What is printed: the rates and what surrounds them.
struct BenchReport {
  BenchResult rates;
  std::uint64_t rss_bytes = 0;  // at the peak
  std::size_t kv_bytes_per_token = 0;
  std::uint64_t decode_bytes = 0;
  ProductOps ops;
  double gb_per_s = 0.0;  // of weights, while decoding
  double tops = 0.0;      // of the layers' products, while prefilling
  std::optional<MachineLimits> machine;

  double int8_share(const MachineLimits& limits) const { return tops / limits.int8_tops.all; }
};

BenchReport describe(const BenchResult& rates, const LoadedModel& loaded, std::uint32_t batch) {
  const model::Plan& plan = loaded.model->plan();
  const ProductOps ops = product_ops(plan);
  return {.rates = rates,
          .rss_bytes = platform::peak_resident_bytes(),
          .kv_bytes_per_token = loaded.model->kv_layout().bytes_per_token(),
          .decode_bytes = decode_bytes(plan),
          .ops = ops,
          .gb_per_s = weight_speed(plan, rates.decode.median, batch),
          .tops = rates.prefill.median * static_cast<double>(ops.layers) / 1e12};
}

std::string to_json(const BenchReport& report, const LoadedModel& loaded) {
  json::Writer writer;
  writer.begin_object();
  write_rate(writer, "prefill", report.rates.prefill);
  write_rate(writer, "decode", report.rates.decode);
  write_rate(writer, "read_gb_per_s", report.rates.read);
  writer.field("rss_bytes", report.rss_bytes)
      .field("kv_bytes_per_token", report.kv_bytes_per_token)
      .field("kv", model::kv_format_name(loaded.model->kv_format()))
      .field("weight_memory_bytes", report.rates.memory.weights)
      .field("kv_memory_bytes", report.rates.memory.kv)
      .field("work_memory_bytes", report.rates.memory.work)
      .field("program_memory_bytes", report.rates.memory.program)
      .field("memory_bytes", report.rates.memory.all())
      .field("depth_seconds", report.rates.depth_seconds)
      .field("gb_per_s", report.gb_per_s)
      .field("read_share", report.rates.read_share)
      .field("decode_weight_bytes", report.decode_bytes)
      .field("prefill_ops_per_token", report.ops.layers)
      .field("decode_ops_per_token", report.ops.all)
      .field("prefill_tops", report.tops)
      .field("threads", loaded.pool->size())
      .field("isa", platform::name(loaded.model->level()))
      .field("numerics_id", loaded.model->numerics_id());
  if (report.machine) {
    writer.field("int8_share", report.int8_share(*report.machine));
    writer.key("machine");
    write_json(*report.machine, writer);
  }
  return writer.end_object().take() + "\n";
}

std::string to_text(const BenchReport& report, const LoadedModel& loaded,
                    const BenchArguments& arguments) {
  const MemorySum& memory = report.rates.memory;
  std::string text =
      fmt::format("{} threads, {}, KV {} bytes a token, peak memory {}\n", loaded.pool->size(),
                  platform::name(loaded.model->level()), report.kv_bytes_per_token,
                  platform::format_bytes(report.rss_bytes));
  text += fmt::format("memory: weights {}, keys and values {}, work {}, program {}: at most {}\n",
                      platform::format_bytes(memory.weights), platform::format_bytes(memory.kv),
                      platform::format_bytes(memory.work), platform::format_bytes(memory.program),
                      platform::format_bytes(memory.all()));
  if (arguments.depth > 0) {
    const double tokens = static_cast<double>(arguments.depth) * arguments.batch;
    text += fmt::format("the {:.0f} tokens before took {:.1f} s: {:.1f} tokens/s\n", tokens,
                        report.rates.depth_seconds, tokens / report.rates.depth_seconds);
  }
  const auto add_line = [&](const char* name, std::uint32_t tokens, const Rate& rate) {
    text += fmt::format("{:<8} {:>5} tokens after {:>5}: {:>9.1f} tokens/s  ({:.1f} to {:.1f})\n",
                        name, tokens, arguments.depth, rate.median, rate.min, rate.max);
  };
  if (arguments.prefill > 0) add_line("prefill", arguments.prefill, report.rates.prefill);
  if (arguments.decode > 0) {
    add_line("decode", arguments.decode, report.rates.decode);
    text += fmt::format(
        "decode reads {} of weights a step: {:.1f} GB/s, {:.0f} % of the {:.1f} GB/s of reading\n",
        platform::format_bytes(report.decode_bytes), report.gb_per_s, 100 * report.rates.read_share,
        report.rates.read.median);
  }
  if (!report.machine) return text;
  text += fmt::format("prefill {:.0f} % of the peak of 8-bit products\n",
                      100 * report.int8_share(*report.machine));
  return text + to_text(*report.machine);
}

Result<int> run_bench_of_machine(const BenchArguments& arguments) {
  if (!arguments.machine) {
    return fail(Code::kInvalidArgument, "bench: -m (a model), --machine, or both are needed");
  }
  CICADA_ASSIGN(const platform::IsaLevel level, kernel_level());
  const auto pool = make_pool(arguments.model);
  CICADA_ASSIGN(const MachineLimits limits, measure_machine(*pool, level));
  json::Writer writer;
  writer.begin_object().key("machine");
  write_json(limits, writer);
  writer.end_object();
  Output output;
  output.write(arguments.json ? writer.take() + "\n" : to_text(limits));
  CICADA_TRY(output.finish());
  return kSuccess;
}

Result<int> run_bench_of_prefix(const BenchArguments& arguments, const LoadedModel& loaded) {
  PrefixBenchArguments prefix = arguments.prefix;
  prefix.repeats = arguments.repeats;
  CICADA_ASSIGN(const PrefixTimes times, measure_prefix(loaded, prefix));
  Output output;
  output.write(arguments.json ? to_json(times, prefix, loaded) : to_text(times, prefix));
  CICADA_TRY(output.finish());
  return kSuccess;
}

Result<int> run_bench(const BenchArguments& arguments) {
  if (arguments.prefill == 0 && arguments.decode == 0) {
    return fail(Code::kInvalidArgument, "bench: -p and -n are both 0, nothing would be measured");
  }
  if (arguments.model.model.empty()) return run_bench_of_machine(arguments);
  CICADA_TRY(check(arguments.kv));
  CICADA_ASSIGN(const LoadedModel loaded, load_model(arguments.model));
  const std::uint64_t program =
      program_bytes(platform::peak_resident_bytes(), loaded.model->weights());
  CICADA_TRY(use_kv(loaded, arguments.kv));
  if (arguments.prefix.prefix > 0) return run_bench_of_prefix(arguments, loaded);
  CICADA_ASSIGN(BenchResult rates, measure(loaded, arguments));
  rates.memory.program = program;
  BenchReport report = describe(rates, loaded, arguments.batch);
  if (arguments.machine) {
    CICADA_ASSIGN(report.machine, measure_machine(*loaded.pool, loaded.model->level()));
  }
  Output output;
  output.write(arguments.json ? to_json(report, loaded) : to_text(report, loaded, arguments));
  CICADA_TRY(output.finish());
  return kSuccess;
}

}  // namespace

void add_bench(CLI::App& app, Action& action) {
  auto arguments = std::make_shared<BenchArguments>();
  CLI::App* command = app.add_subcommand("bench", "Speed of prefill and decode");
  add_model_options(*command, arguments->model);
  command->get_option("--model")->required(false);
  constexpr std::uint32_t kMost = 1U << 20;
  command->add_option("-p,--prefill", arguments->prefill, "Tokens to prefill (default 512)")
      ->transform(whole_number(0, kMost));
  command->add_option("-n,--decode", arguments->decode, "Tokens to decode (default 128)")
      ->transform(whole_number(0, kMost));
  command->add_option("-d,--depth", arguments->depth, "Tokens before both (default 0)")
      ->transform(whole_number(0, kMost));
  command->add_option("-b,--batch", arguments->batch, "Sequences decoded at once (default 1)")
      ->transform(whole_number(1, 512));
  command->add_option("-r,--repeats", arguments->repeats, "Repetitions (default 5)")
      ->transform(whole_number(1, 1000));
  add_kv_options(*command, arguments->kv, false);
  command
      ->add_option("--prefix", arguments->prefix.prefix,
                   "Measure instead the first token after this many tokens that are known")
      ->transform(whole_number(1, kMost));
  command->add_option("--tail", arguments->prefix.tail, "Tokens behind them (default 16)")
      ->transform(whole_number(1, kMost));
  command->add_flag("--machine", arguments->machine,
                    "Measure what the machine allows; -m is then not needed");
  command->add_flag("--json", arguments->json, "Print one JSON object");
  set_action(*command, action, arguments, run_bench);
}

}  // namespace cicada::cli
