"""Real models against what is known of them. One case a run, so that ctest counts and shows each by itself:

    CICADA_PROGRAM=build/cicada python3 tests/models/test_models.py CASE

Models are those that `cicada pull` fetched, in $CICADA_HOME/models (default ~/.cache/cicada/models). The text is
wiki.test.raw in $CICADA_WIKITEXT, or else in ../shared/data beside the repository. A case that lacks one of them prints
which and ends with status 77, which ctest counts as skipped.
"""
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PROGRAM = os.environ["CICADA_PROGRAM"]
HOME = os.environ.get("CICADA_HOME") or os.path.expanduser("~/.cache/cicada")
WIKITEXT = os.environ.get("CICADA_WIKITEXT") or os.path.join(
    os.path.dirname(ROOT), "shared", "data", "wikitext-2-raw", "wiki.test.raw")
SKIPPED = 77
LEVELS = ("avx2", "avxvnni", "avx512vnni", "amx_emulated", "amx")  # scalar is too slow for this

# Chunks of 512, their exact perplexity (an independent forward pass with float32 activations, docs/testing.md), and the
# share by which ours may differ. Exact values belong to the text's own line ends, which are \r\n: with \n the first two
# chunks of SmolLM2 are 21.6835.
EXACT = {"smollm2": (20, 27.8422, 0.003), "gemma3-270m": (20, 18.6005, 0.002),
         "qwen2.5-coder-1.5b": (8, 15.2940, 0.002)}
EXACT_TWO_CHUNKS = 21.2799  # SmolLM2
# The same with so few chunks that every level can afford them. Few tokens leave the 8-bit sites more room to swing.
FEW = {"gemma3-270m": (2, 14.9711, 0.005), "qwen2.5-coder-1.5b": (1, 9.0660, 0.005)}


class Skip(Exception):
    """What the case needs and is not here."""


def require(holds, what):
    if not holds:
        sys.exit(f"failed: {what}")


def model(name):
    path = os.path.join(HOME, "models", name + ".gguf")
    if not os.path.exists(path):
        raise Skip(f"{path} is absent: cicada pull {name}")
    return path


def cicada(*arguments, level=None):
    env = {**os.environ, "CICADA_FORCE_ISA": level} if level else None
    done = subprocess.run([PROGRAM, *arguments], capture_output=True, text=True, timeout=1200, env=env)
    if level and f"kernel level {level} " in done.stderr and "; here it can be: " in done.stderr:
        raise Skip(done.stderr.strip())
    require(done.returncode == 0, f"cicada {' '.join(arguments)}: status {done.returncode}: {done.stderr}")
    return done.stdout


def score(path, chunks, *more, level=None):
    if not os.path.exists(WIKITEXT):
        raise Skip(f"{WIKITEXT} is absent: set CICADA_WIKITEXT")
    return json.loads(cicada("perplexity", "-m", path, "-f", WIKITEXT, "--chunks", str(chunks), "--json", *more,
                             level=level))


def check_near(what, value, expected, allowed):
    share = value / expected - 1
    print(f"{what}: {value:.4f}, {100 * share:+.3f} % from {expected:.4f}, {100 * allowed} % is allowed")
    require(abs(share) <= allowed, what)


def perplexity(name):
    chunks, exact, allowed = EXACT[name]
    check_near(name, score(model(name), chunks)["perplexity"], exact, allowed)


def perplexity_of_level(level):
    """SmolLM2 in both roles and in several cuts at one kernel level; the other models briefly."""
    path = model("smollm2")
    chunks, exact, allowed = EXACT["smollm2"]
    whole = score(path, chunks, level=level)
    require(whole["isa"] == level, f"{level} was used, not {whole['isa']}")
    check_near(f"{level}, prefill", whole["perplexity"], exact, allowed)
    for batch in ("1", "33", "256"):
        cut = score(path, 1, "-b", batch, level=level)["nll"]
        require(cut == whole["nll"][:1], f"{level}, -b {batch}: the same bits as with -b 512")
    # Every chunk: one token at a time takes 36 s with avx512vnni and 60 s with avx2 (2 cores, Zen 4).
    decoded = score(path, chunks, "--role", "decode", level=level)["perplexity"]
    check_near(f"{level}, decode", decoded, exact, allowed)
    # On tiles the roles round differently (docs/numerics.md).
    check_near(f"{level}, decode against prefill", decoded, whole["perplexity"], 0.003 if "amx" in level else 0.001)
    for name, (few, expected, limit) in FEW.items():
        check_near(f"{level}, {name}", score(model(name), few, level=level)["perplexity"], expected, limit)


def two_chunks():
    check_near("smollm2", score(model("smollm2"), 2)["perplexity"], EXACT_TWO_CHUNKS, 0.005)


def answer():
    result = json.loads(cicada("run", "-m", model("smollm2"), "--raw", "-p", "The capital of France is", "-n", "8",
                               "--json"))
    print(repr(result["text"]))
    require("Paris" in result["text"], "the answer names Paris")


# What a KV type may cost (percent of perplexity, against f16 on the same chunks; docs/kv.md).
KV_LIMITS = {"smollm2": {"q8": 0.1, "q6": 0.3}, "gemma3-270m": {"q8": 0.1, "q8/q6": 0.3},
             "qwen2.5-coder-1.5b": {"q8": 0.1, "q6": 0.3, "q4": 1.0}}


def kv(name):
    path = model(name)
    chunks = EXACT[name][0]
    for kind, allowed in KV_LIMITS[name].items():
        result = score(path, chunks, "--kv", kind, "--against", "f16")
        loss = 100 * math.expm1(result["nll_difference"])
        print(f"{name} {kind}: {loss:+.3f} % +/- {100 * result['nll_difference_stderr']:.3f} %, {allowed} % is allowed")
        require(loss <= allowed, f"{name} with --kv {kind}")


def long_context_bits():
    """Positions beyond 1024 lie in three key ranges, which are cut and folded in every way that the engine has."""
    path = model("smollm2")
    whole = score(path, 1, "--ctx", "1100", "-b", "1100")["nll"]
    for way in (("-b", "512"), ("-b", "33", "-t", "1")):
        require(score(path, 1, "--ctx", "1100", *way)["nll"] == whole, f"{way} gives the same as the whole at once")
    # Roles may differ in bits (docs/numerics.md), not in what they mean.
    decoded = score(path, 1, "--ctx", "1100", "--role", "decode")["nll"]
    check_near("negative log likelihood, decode against prefill", decoded[0], whole[0], 0.001)


def conversions():
    """Wider types hold the same weights. They take float32 activations, so they are nearer to the exact value than the
    quantised original is (0.15 % off with these two chunks), and it is the exact value that they are held to."""
    source = model("smollm2")
    values = {}
    with tempfile.TemporaryDirectory() as folder:
        for kind in ("f32", "f16"):
            path = os.path.join(folder, kind + ".gguf")
            cicada("convert", source, path, "--type", kind)
            values[kind] = score(path, 2)["perplexity"]
            check_near(kind, values[kind], EXACT_TWO_CHUNKS, 0.0005)
    check_near("f16 against f32", values["f16"], values["f32"], 0.0005)


def memory(name):
    path = model(name)
    result = json.loads(cicada("bench", "-m", path, "-r", "1", "--json"))
    used = result["rss_bytes"] - 512 * result["kv_bytes_per_token"]  # the positions that bench fills
    ratio = used / os.path.getsize(path)
    print(f"{name}: {used / 1e6:.1f} MB at most without KV, {ratio:.3f} of the file, 1.25 is allowed")
    require(ratio <= 1.25, f"memory of {name}")


def start_up():
    path = model("smollm2")
    seconds = []
    for _ in range(4):
        start = time.monotonic()
        cicada("run", "-m", path, "-p", "Hello", "-n", "1", "--json")
        seconds.append(time.monotonic() - start)
    median = statistics.median(seconds[1:])  # the first one warms the file's pages
    print(f"run -n 1: {median:.3f} s, median of 3, under 0.6 is allowed")
    require(median < 0.6, "start-up")


CASES = {"two-chunks": two_chunks, "answer": answer, "long-context-bits": long_context_bits, "conversions": conversions,
         "start-up": start_up}
for known in LEVELS:
    CASES["perplexity-" + known] = lambda level=known: perplexity_of_level(level)
for known in EXACT:
    CASES["perplexity-" + known] = lambda name=known: perplexity(name)
    CASES["memory-" + known] = lambda name=known: memory(name)
    CASES["kv-" + known] = lambda name=known: kv(name)


def main():
    if len(sys.argv) != 2 or sys.argv[1] not in CASES:
        sys.exit(f"test_models.py: give one case of {', '.join(sorted(CASES))}")
    try:
        CASES[sys.argv[1]]()
    except Skip as reason:
        print(f"skipped: {reason}")
        sys.exit(SKIPPED)


if __name__ == "__main__":
    main()
