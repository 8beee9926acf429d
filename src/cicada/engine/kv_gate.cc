#include "cicada/engine/kv_gate.h"

#include <algorithm>
#include <numeric>
#include <vector>

#include "cicada/engine/scorer.h"

namespace cicada::engine {
namespace {

// Tokens before the first whose logits count, and of the text at most.
constexpr std::size_t kFirst = 64;
constexpr std::size_t kMostTokens = 512;

}  // namespace

std::string_view kv_gate_text() {
  return R"(The harbour master kept two books. In the first he wrote what came in: eleven crates of lamp
oil on Monday, a cow that nobody had asked for, forty sacks of flour of which three were wet. In the second he
wrote what people said had come in, because in his experience the two were seldom the same, and the difference was
where the trouble started. When the auditor arrived in the spring of 1887 she asked to see both.

"You are the first to ask for the second one," he said.

"I am the first who was told about it," said the auditor. She put on her glasses and read for an hour, and the
only sound was the rain on the slates and, now and then, a page being turned. "Here," she said at last. "On the
ninth of March you have twelve barrels in one and ten in the other. Which is right?"

"Both. Ten were ours. Two had been ours the year before, and went out again the same night."

Of the 240 ships that called between 1880 and 1887, 96 carried timber, 84 grain and 60 mixed goods. A ship of
timber paid 14 crowns, one of grain 11, and mixed goods paid by weight, on average 17 crowns and a half. So timber
brought 1,344 crowns, grain 924, and the rest 1,050: together 3,318 crowns, or 474 for each of the seven years.
The accounts say 3,102. The difference, 216 crowns, is almost exactly what two barrels a month would have cost.

What she recommended, in her own order:

1. One book, with a column for what is claimed and a column for what is counted.
2. Every difference is explained on the day it is found, in the words of whoever found it.
3. Nobody counts what he has carried himself.

The clerk who copied her report later wrote the rule down in another language, for a machine that had not been
invented when the harbour was built:

def differences(claimed, counted):
    """Names whose count is not what was claimed, with both numbers."""
    names = sorted(set(claimed) | set(counted))
    return [(name, claimed.get(name, 0), counted.get(name, 0))
            for name in names
            if claimed.get(name, 0) != counted.get(name, 0)]

for name, said, found in differences({"oil": 12, "flour": 40}, {"oil": 10, "flour": 40}):
    print(f"{name}: {said} claimed, {found} counted")

It prints one line, and the line is the whole story of that winter.
)";
}

Result<KvLoss> measure_kv_loss(model::Model& model, platform::ThreadPool& pool,
                               const tokenizer::Tokenizer& tokenizer, const model::KvFormat& format,
                               const std::function<bool()>& is_cancelled) {
  std::vector<TokenId> ids = tokenizer.encode(kv_gate_text(), {.add_bos = tokenizer.wants_bos()});
  ids.resize(std::min(ids.size(), kMostTokens));
  const std::size_t first = std::min(kFirst, ids.size() / 2);
  const std::size_t vocab = model.config().vocab;
  std::vector<float> kept((ids.size() - first) * vocab);
  const auto run = [&](const model::KvFormat& kv, const Scorer::OnRow& on_row) -> Result<void> {
    model.use_kv(kv);
    CICADA_ASSIGN(Scorer scorer, Scorer::create(model, pool, {.context = ids.size()}));
    return scorer.run(ids, first, is_cancelled, on_row);
  };
  CICADA_TRY(run({}, [&](std::size_t position, std::span<const float> logits) {
    std::copy(logits.begin(), logits.end(),
              kept.begin() + static_cast<std::ptrdiff_t>((position - first) * vocab));
  }));
  std::vector<double> lost(ids.size() - first);
  CICADA_TRY(run(format, [&](std::size_t position, std::span<const float> logits) {
    const auto base = std::span<const float>(kept).subspan((position - first) * vocab, vocab);
    lost[position - first] = divergence(base, logits);
  }));
  return KvLoss{.divergence = std::accumulate(lost.begin(), lost.end(), 0.0) /
                              static_cast<double>(lost.size()),
                .tokens = lost.size()};
}

}  // namespace cicada::engine
