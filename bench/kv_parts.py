"""What is measured: perplexity, problems of arithmetic, numbers hidden in a novel, speed. Every function gives rows of a table, made
of what a kv_runs.Runner measures or, when it runs nothing, of what it kept."""
import json
import os
import random

import engines
import kv_runs
import kv_stats
from compare import model_path, say, summary

WIKI = ("wikitext-2-raw", "wiki.test.raw")
NOVEL = ("gutenberg-1342", "pride_and_prejudice.txt")
PROBLEMS = ("gsm8k", "test.jsonl")

SMALL, LARGE = "smollm2", "qwen2.5-coder-1.5b"
CHUNKS = {SMALL: 20, "gemma3-270m": 20, LARGE: 8}
LONG_CTX, LONG_CHUNKS = 4096, 3
NOVEL_CHUNKS = {2048: 8, 4096: 4}

# Results are kept under the words of the prompt, so that other words are other results.
INSTRUCTION = "Reason step by step, briefly: one short sentence for each calculation. Then write the last line: Answer: <number>"
ANSWER_TOKENS = 320

NEEDLE = "\n\nThe secret number is {key}.\n\n"
QUESTION = "\n\nQuestion: What is the secret number?\nAnswer: The secret number is"
NEEDLE_TOKENS = (1000, 2000)
NEEDLES, NEEDLE_ANSWER_TOKENS, CHARACTERS_A_TOKEN = 20, 10, 4
DEPTHS = (0.05, 0.275, 0.5, 0.725, 0.95)
LEAST_FOUND = 0.8  # by the base, or the test says nothing

SPEED_DEPTH, SPEED_TOKENS = 7000, 64


def data_file(args, parts):
    path = os.path.join(args.data, *parts)
    if not os.path.exists(path):
        raise engines.BenchError(f"{path}: not there; --data is the folder that holds {parts[0]}")
    return os.path.abspath(path)


def name_of(model):
    return os.path.basename(model).removesuffix(".gguf")


def with_base(settings):
    """The base first, and once."""
    return [kv_runs.BASE] + [setting for setting in settings if setting.arguments != kv_runs.BASE.arguments]


def text_rows(runner, part, file, model, settings, chunks, ctx):
    """A row a setting: its loss on the text against the base, chunk by chunk."""
    rows, base, digest = [], None, kv_runs.digest(file)
    for setting in with_base(settings):
        say(f"{part}: {name_of(model)}, {os.path.basename(file)}, {ctx} tokens a chunk, {setting.name}")
        found = runner.measure(
            part, {"model": name_of(model), "text": digest, "ctx": ctx, "chunks": chunks}, setting,
            ["perplexity", "-m", model, "-f", file, "--ctx", str(ctx), "--chunks", str(chunks), *role_of(setting)],
            lambda data: {key: data[key] for key in ("nll", "perplexity", "tokens", "kv_bytes_per_token")})
        base = found if setting is kv_runs.BASE else base
        if found is None or base is None:
            continue
        if len(found["nll"]) != len(base["nll"]):
            raise engines.BenchError(f"{part}, {name_of(model)}: {setting.name} scored {len(found['nll'])} chunks, f16 {len(base['nll'])}")
        difference = kv_stats.paired(found["nll"], base["nll"])
        rows.append({"model": name_of(model), "setting": setting.name, "arguments": setting.spelled, "ctx": ctx,
                     "chunks": len(found["nll"]), "perplexity": found["perplexity"], "nll": difference,
                     "loss": kv_stats.percent(difference), "kv_bytes_per_token": found["kv_bytes_per_token"],
                     "share": found["kv_bytes_per_token"] / max(1, base["kv_bytes_per_token"]), **origin([found])})
    return rows


def role_of(setting):
    """Pages are chosen for decoded tokens only; bits of the base are the same in both roles on levels without tiles."""
    return ["--role", "decode"] if "pages:" in setting.spelled else []


def origin(results):
    """Where results come from."""
    return {key: sorted({result[key] for result in results}) for key in ("isa", "numerics_id", "date")}


def perplexity(runner, args):
    file, rows = data_file(args, WIKI), []
    for model in map(model_path, args.model):
        chunks = args.chunks or CHUNKS.get(name_of(model), 20)
        rows += text_rows(runner, "perplexity", file, model, args.widths, chunks, 512)
        if name_of(model) == SMALL:
            rows += text_rows(runner, "perplexity", file, model, args.widths, LONG_CHUNKS, LONG_CTX)
    return rows


def problems(file, count):
    """[(question, answer spelled as kv_stats.normal() does)] of the first so many."""
    found = []
    try:
        with open(file) as lines:
            for line in lines:
                problem = json.loads(line)
                found.append((problem["question"], kv_stats.normal(problem["answer"].rsplit("####", 1)[1])))
                if len(found) == count:
                    break
    except (ValueError, KeyError, IndexError, TypeError):
        raise engines.BenchError(f"{file}: line {len(found) + 1} is no problem with an answer after ####") from None
    return found


def gsm8k(runner, args):
    """A row a setting: right answers, and which the base had right and wrong. Problem by problem, so that what there is is paired."""
    asked, model = problems(data_file(args, PROBLEMS), args.problems), model_path(LARGE)
    settings = with_base(args.widths)
    right, results, refused = {setting: {} for setting in settings}, {setting: [] for setting in settings}, set()
    for index, (question, answer) in enumerate(asked):
        words = f"{question}\n\n{INSTRUCTION}"
        for setting in settings:
            if setting in refused:
                continue
            say(f"gsm8k: problem {index + 1} of {len(asked)}, {setting.name}: {sum(right[setting].values())} of {index} right")
            found = runner.measure("gsm8k", {"model": name_of(model), "prompt": words, "max_tokens": ANSWER_TOKENS}, setting,
                                   ["run", "-m", model, "-p", "-", "-n", str(ANSWER_TOKENS)],
                                   lambda data: {key: data[key] for key in ("text", "completion_tokens", "finish_reason")}, words)
            if found is not None:
                right[setting][index] = kv_stats.last_number(found["text"]) == answer
                results[setting].append(found)
            elif not runner.only_kept and not results[setting]:
                refused.add(setting)  # from the first problem on, so for all
    return [{"model": name_of(model), "setting": setting.name, "arguments": setting.spelled,
             **kv_stats.outcomes(right[setting], right[kv_runs.BASE]),
             "cut_short": sum(result["finish_reason"] == "length" for result in results[setting]),
             "mean_tokens": sum(result["completion_tokens"] for result in results[setting]) / len(results[setting]),
             **origin(results[setting])} for setting in settings if results[setting]]


def haystack(novel, tokens, index):
    """(prompt, key, depth) of one needle; the same for every setting and on every machine."""
    chance = random.Random(f"needle {tokens} {index}")
    key, depth = str(chance.randint(10000, 99999)), DEPTHS[index % len(DEPTHS)]
    length = tokens * CHARACTERS_A_TOKEN
    start = novel.index("\n\n", chance.randrange(max(1, len(novel) - 2 * length))) + 2
    text = novel[start:start + length]
    cut = text.find("\n\n", int(depth * length * 0.97))  # between paragraphs
    cut = len(text) if cut < 0 else cut
    return text[:cut] + NEEDLE.format(key=key) + text[cut:].lstrip() + QUESTION, key, depth


def needle(runner, args):
    """A row for each length and setting: how many keys were said, by depth."""
    model, file, rows = model_path(SMALL), data_file(args, NOVEL), []
    with open(file, encoding="utf-8", errors="replace") as text:
        novel = text.read().strip()
    for tokens in NEEDLE_TOKENS:
        for setting in with_base(args.widths + args.settings):
            results, by_depth = [], {str(depth): [0, 0] for depth in DEPTHS}
            for index in range(NEEDLES):
                say(f"needle: {setting.name}, {tokens} tokens, {index + 1} of {NEEDLES}")
                prompt, key, depth = haystack(novel, tokens, index)
                found = runner.measure("needle", {"model": name_of(model), "tokens": tokens, "prompt": kv_runs.digest_of(prompt)}, setting,
                                       ["run", "-m", model, "--raw", "-p", "-", "-n", str(NEEDLE_ANSWER_TOKENS)],
                                       lambda data: {key: data[key] for key in ("text", "prompt_tokens")}, prompt)
                if found is not None:
                    results.append(found)
                    by_depth[str(depth)][0] += key in found["text"]
                    by_depth[str(depth)][1] += 1
                elif not runner.only_kept and not results:
                    break  # refused for one, so for all
            if results:
                rows.append({"model": name_of(model), "setting": setting.name, "arguments": setting.spelled, "tokens": tokens,
                             "found": sum(hit for hit, _ in by_depth.values()), "needles": len(results), "by_depth": by_depth,
                             "mean_tokens": sum(result["prompt_tokens"] for result in results) / len(results), **origin(results)})
    return rows


def policy(runner, args):
    """Loss on the novel at long contexts and, where asked for, speed after many tokens."""
    model, file, rows = model_path(SMALL), data_file(args, NOVEL), []
    for ctx, chunks in NOVEL_CHUNKS.items():
        rows += text_rows(runner, "policy", file, model, args.widths + args.settings, chunks, ctx)
    if args.speed and not runner.only_kept:
        speeds(runner, args, [SPEED_DEPTH])
    return rows


def depth(runner, args):
    """A row a setting: decode speed after so many tokens; runs take turns, so that a slow minute falls on all."""
    return speeds(runner, args, args.depths)


def speeds(runner, args, depths):
    model, settings, runs = model_path(SMALL), with_base(args.widths + args.settings), {}
    for turn in range(args.repeats):
        for tokens in depths:
            for setting in settings:
                say(f"speed: turn {turn + 1} of {args.repeats}, {setting.name} after {tokens} tokens")
                found = runner.measure("depth", {"model": name_of(model), "depth": tokens, "turn": turn}, setting,
                                       ["bench", "-m", model, "-d", str(tokens), "-n", str(SPEED_TOKENS), "-p", "0", "-r", "1"],
                                       lambda data: {"speed": data["decode"]["median"], "kv_bytes_per_token": data["kv_bytes_per_token"]})
                if found is not None:
                    runs.setdefault(setting, {}).setdefault(tokens, []).append(found)
    return [{"model": name_of(model), "setting": setting.name, "arguments": setting.spelled,
             "speeds": {str(tokens): summary([found["speed"] for found in results]) for tokens, results in by_depth.items()},
             **origin([found for results in by_depth.values() for found in results])} for setting, by_depth in runs.items()]


PARTS = {"perplexity": perplexity, "gsm8k": gsm8k, "needle": needle, "policy": policy, "depth": depth}
