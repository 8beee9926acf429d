"""The oracle against llama.cpp on the tiny models: compare_llamacpp.py FOLDER [GROUP ...]

llama.cpp comes as the PyPI package `xllamacpp`.

Two independent implementations that read the same files: agreement shows that the oracle computes
what these architectures are, and that the files are what they claim to be. cicada-v1 is ours alone.
The bound is made as in bounds.py, from a simulation of llama.cpp's arithmetic (activations in its
own formats, table of gelu in float16, cache in float32). Log-softmax is compared: a common constant
is not visible.
"""

import pathlib
import subprocess
import sys

import numpy as np

import bounds
import make_models
import oracle
from arithmetic import LlamaCpp

HERE = pathlib.Path(__file__).parent


def compare(spec, folder):
    path = make_models.make(spec, folder)
    model, ids = oracle.load(path), make_models.ids_for(spec)
    exact = bounds.log_softmax(oracle.forward(model, ids, oracle.Exact(kv_f16=False)))
    runs = [bounds.log_softmax(run) for run in bounds.simulations(model, ids, LlamaCpp)]
    bound = bounds.bound_from(exact, runs)
    ids_path, out = path.with_suffix(".ids"), path.with_suffix(".llamacpp.npy")
    ids_path.write_text("\n".join(map(str, ids)))
    done = subprocess.run(
        [sys.executable, HERE / "llamacpp_logits.py", path, ids_path, out],
        capture_output=True,
        text=True,
    )
    if done.returncode:
        return (
            bound,
            f"exit {done.returncode}: {(done.stderr.strip().splitlines() or ['no message'])[-1]}",
        )
    return bound, bounds.errors(exact, np.load(out))


def main():
    folder, groups = pathlib.Path(sys.argv[1]), sys.argv[2:]
    print(
        f"{'model':20s} {'max error':>10s} {'bound':>10s} {'rms error':>10s} {'bound':>10s} "
        f"{'KL':>10s}"
    )
    bad = 0
    for spec in make_models.specs():
        if spec.arch == "cicada-v1" or (groups and spec.group not in groups):
            continue
        bound, found = compare(spec, folder)
        if isinstance(found, str):
            bad += 1
            print(f"{spec.name:20s} FAILED: {found}", flush=True)
            continue
        ok = found.within(bound)
        bad += not ok
        print(
            f"{spec.name:20s} {found.max:10.2e} {bound.max:10.2e} {found.rms:10.2e} "
            f"{bound.rms:10.2e} {found.kl:10.2e}  {'ok' if ok else 'OUT OF BOUND'}",
            flush=True,
        )
    print(f"{bad} failures" if bad else "oracle and llama.cpp agree")
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()
