"""SmolLM2 against a float64 forward pass: kl_smollm2.py --program P --cicada C --work FOLDER

The oracle runs the real weights over the first two chunks of 512 tokens of wiki.test.raw in float64,
cache included: nothing is rounded. Each kernel level of this machine computes the same positions as a
prompt and one token at a time, and

  KL(exact || ours), mean over the 1024 positions, in nats
  positions whose likeliest token is another

may each be at most FACTOR times what an engine must have that rounds activations as docs/numerics.md
says, and nothing else. That engine is simulated: float64 again, but for inputs of products rounded to
STEPS integers in groups of 32, and keys and values to float16. The bound follows from the rule, not
from what the engine does, and it is narrow: the simulation with one fine site at 8 bits (the one
that matters least) must be out of it, in every run. --faults shows more of them.

Levels that the machine or the build lacks are printed as skipped.
"""

import argparse
import json
import os
import pathlib
import subprocess
import sys
import time

# run_python.sh allows one thread, for tiny matrices. These are large, and the test runs alone.
os.environ["OPENBLAS_NUM_THREADS"] = str(len(os.sched_getaffinity(0)))
import numpy as np  # noqa: E402

import bounds  # noqa: E402
import oracle  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
LEVELS = ("avx2", "avxvnni", "avx512vnni", "amx_emulated", "amx")  # scalar is too slow for this
CHUNK, CHUNKS = 512, 2
# Simulated engines that differ only in where roundings fall (126 or 125 steps for 127) have 1.07
# times the divergence; faults begin at 1.73 times.
FACTOR = 1.5
FINE, COARSE = 16256, 127
STEPS = {"attn_output": COARSE, "ffn_gate": COARSE, "ffn_up": COARSE}  # the rest is FINE
FAULT = ("8 bits for ffn_down, too", {**STEPS, "ffn_down": COARSE}, 32)
MORE_FAULTS = (
    ("8 bits for the head, too", {**STEPS, "token_embd": COARSE}, 32),
    ("8 bits for values, too", {**STEPS, "attn_v": COARSE}, 32),
    ("8 bits for q, k and v, too", {**STEPS, **dict.fromkeys(("attn_q", "attn_k", "attn_v"), COARSE)}, 32),
    ("8 bits everywhere", dict.fromkeys(("attn_q", "attn_k", "attn_v", "ffn_down", "token_embd", *STEPS), COARSE), 32),
    ("7 bits for ffn_gate", {**STEPS, "ffn_gate": 63}, 32),
    ("groups of 64", STEPS, 64),
)


class Rounded(oracle.Exact):
    """Float64 with the inputs of products rounded to integers, and a float16 cache."""

    def __init__(self, model, steps, group=32):
        super().__init__(kv_f16=True)
        self.site = {id(weight): name.split(".")[-2] for name, weight in model.weights.items()}
        self.steps, self.group = steps, group

    def linear(self, x, weight, weight_type):
        blocks = x.reshape(x.shape[0], -1, self.group)
        scale = np.max(np.abs(blocks), axis=-1, keepdims=True) / self.steps.get(self.site[id(weight)], FINE)
        integers = np.rint(np.divide(blocks, scale, out=np.zeros_like(blocks), where=scale > 0))
        return (integers * scale).reshape(x.shape) @ weight.T


class Score:
    """Mean divergence and differing likeliest tokens; chunk by chunk, logits being large."""

    def __init__(self):
        self.divergence, self.positions, self.differ = 0.0, 0, 0

    def add(self, exact, logits):
        ours = bounds.log_softmax(np.asarray(logits, np.float64))
        self.divergence += float(np.sum(np.exp(exact) * (exact - ours)))
        self.differ += int(np.count_nonzero(exact.argmax(axis=-1) != ours.argmax(axis=-1)))
        self.positions += exact.shape[0]
        return self

    @property
    def kl(self):
        return self.divergence / self.positions

    def within(self, bound):  # false for NaN
        return self.kl <= FACTOR * bound.kl and self.differ <= FACTOR * bound.differ

    def row(self, what):
        share = 100 * (1 - self.differ / self.positions)
        return f"{what:27s} KL {self.kl:.3e}  same likeliest token {share:6.2f} %"


def skip(reason):
    print(f"skipped: {reason}")
    sys.exit(77)


def chunks_of_text(cicada, model):
    text = os.environ.get("CICADA_WIKITEXT") or ROOT.parent / "shared/data/wikitext-2-raw/wiki.test.raw"
    if not os.path.exists(text):
        skip(f"{text} is absent: set CICADA_WIKITEXT")
    with open(text, "rb") as file:
        start = file.read(CHUNKS * CHUNK * 16)
    done = subprocess.run([cicada, "tokenize", "-m", model, "--json"], input=start, capture_output=True, check=True)
    ids = json.loads(done.stdout)["tokens"]
    return [ids[at : at + CHUNK] for at in range(0, CHUNKS * CHUNK, CHUNK)]


def engine_logits(program, work, model_path, ids, level, role):
    """float32 [ids, vocab], or None with a line where the level is not to be had."""
    ids_path, out = work / "ids.txt", work / "logits.f32"
    ids_path.write_text("\n".join(map(str, ids)) + "\n")
    command = [program, model_path, ids_path, out, "--threads", str(min(64, len(os.sched_getaffinity(0))))]
    command += ["--chunk", str(CHUNK), "--role", role]
    env = {**os.environ, "CICADA_FORCE_ISA": level}
    done = subprocess.run(command, capture_output=True, text=True, env=env, timeout=600)
    if "; here it can be: " in done.stderr:
        print(f"{level}: skipped: {done.stderr.strip()}")
        return None
    if done.returncode:
        sys.exit(f"failed: {level} {role}: status {done.returncode}: {done.stderr}")
    logits = np.fromfile(out, np.float32).reshape(len(ids), -1)
    out.unlink()
    return logits


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--program", required=True, help="the built cicada_logits")
    parser.add_argument("--cicada", required=True, help="the built cicada")
    parser.add_argument("--work", required=True, help="folder for ids and logits")
    parser.add_argument("--faults", action="store_true", help="simulate every fault, not just the least")
    args = parser.parse_args()
    home = os.environ.get("CICADA_HOME") or os.path.expanduser("~/.cache/cicada")
    path = os.path.join(home, "models", "smollm2.gguf")
    if not os.path.exists(path):
        skip(f"{path} is absent: cicada pull smollm2")
    work = pathlib.Path(args.work)
    work.mkdir(parents=True, exist_ok=True)
    chunks = chunks_of_text(args.cicada, path)
    model = oracle.load(path)
    start = time.monotonic()
    exact = [bounds.log_softmax(oracle.forward(model, ids, oracle.Exact(kv_f16=False))) for ids in chunks]
    print(f"exact: {CHUNKS} chunks of {CHUNK} in {time.monotonic() - start:.0f} s", flush=True)

    def simulated(steps, group=32):
        score = Score()
        for ids, truth in zip(chunks, exact):
            score.add(truth, oracle.forward(model, ids, Rounded(model, steps, group)))
        return score

    bound = simulated(STEPS)
    print(bound.row("simulated") + f"  (allowed: {FACTOR} times this KL, and as many other tokens)")
    failures = 0
    for what, steps, group in (FAULT, *(MORE_FAULTS if args.faults else ())):
        score = simulated(steps, group)
        caught = not score.within(bound)
        failures += not caught
        print(score.row(what) + ("  caught" if caught else "  NOT CAUGHT"), flush=True)
    for level in LEVELS:
        for role in ("prefill", "decode"):
            score = Score()
            for ids, truth in zip(chunks, exact):
                logits = engine_logits(args.program, work, path, ids, level, role)
                if logits is None:
                    break
                score.add(truth, logits)
            if not score.positions:
                break  # the other role would only say so again
            ok = score.within(bound)
            failures += not ok
            print(score.row(f"{level} {role}") + ("  ok" if ok else "  OUT OF BOUND"), flush=True)
    sys.exit(f"{failures} failures" if failures else 0)


if __name__ == "__main__":
    main()
