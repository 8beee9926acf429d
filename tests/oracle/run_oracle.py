"""The engine against the oracle: run_oracle.py --program P --work FOLDER [--level L] [GROUP ...]

Makes the models of the groups, runs `cicada_logits` on each at every kernel level of this machine,
as a prompt (role prefill) and as generated text (role decode), and compares the logits of every
position with the float64 oracle within the bound that bounds.py derives. Beside that, what must
hold bit for bit. Exit status 0 when all is well, 1 otherwise, 77 when there is no program to test.
"""

import argparse
import os
import pathlib
import subprocess
import sys

import numpy as np

import bounds
import make_models
import oracle

LEVEL_FLAGS = {  # flags of /proc/cpuinfo that a level needs
    "scalar": [],
    "avx2": ["avx2", "fma", "f16c"],
    "avxvnni": ["avx2", "fma", "f16c", "avx_vnni"],
    "avx512vnni": ["avx512f", "avx512bw", "avx512vl", "avx512dq", "avx512_vnni"],
    "amx_emulated": ["avx512f", "avx512bw", "avx512vl", "avx512dq", "avx512_vnni", "avx512_bf16"],
    "amx": ["avx512_vnni", "avx512_bf16", "amx_tile", "amx_int8", "amx_bf16"],
}
TILE_LEVELS = {"amx_emulated", "amx"}  # their prefill role takes activations in BF16
HEADING = (
    f"{'model':21s} {'level':12s} {'role':7s} {'max error':>10s} {'bound':>9s} {'rms error':>10s} "
    f"{'bound':>9s} {'KL':>9s} {'to int8 sim.':>12s}"
)


class Failed(Exception):
    pass


class Driver:
    def __init__(self, program, work, levels):
        self.program, self.work, self.levels = program, work, levels
        self.num_failures = 0

    def execute(self, model_path, ids, level, *options):
        ids_path, out = self.work / "ids.txt", self.work / "logits.f32"
        ids_path.write_text("\n".join(map(str, ids)) + "\n")
        out.unlink(missing_ok=True)
        command = [self.program, model_path, ids_path, out, *options]
        env = {**os.environ, "CICADA_FORCE_ISA": level}
        done = subprocess.run(
            command, capture_output=True, text=True, errors="replace", env=env, timeout=120
        )
        return done, out

    def logits(self, model_path, ids, level, *options):
        """float32 [ids, vocab]; Failed says what the program said."""
        done, out = self.execute(model_path, ids, level, *options)
        if done.returncode:
            said = (done.stderr.strip().splitlines() or ["nothing on standard error"])[-1]
            raise Failed(f"exit {done.returncode}: {said}")
        values = np.fromfile(out, np.float32)
        if values.size != len(ids) * make_models.vocabularies.SIZE:
            raise Failed(f"{values.size} logits for {len(ids)} positions")
        return values.reshape(len(ids), -1)

    def check(self, what, ok, detail=""):
        self.num_failures += not ok
        print(f"{what}: {'ok' if ok else 'FAILED'}{' ' if detail else ''}{detail}", flush=True)

    def same_bits(self, what, get_one, get_other):
        """Elided and not, or a file with zeros and one without: equal with -0 = +0."""
        try:
            one, other = get_one(), get_other()
        except Failed as failure:
            self.check(what, False, str(failure))
            return
        self.check(
            what, np.array_equal(one, other), f"({np.count_nonzero(one != other)} logits differ)"
        )

    def compare(self, name, model_path, spec):
        """All levels and roles on one file."""
        model, ids = oracle.load(model_path), make_models.ids_for(spec)
        if pathlib.Path(model_path).is_dir():
            model_path = pathlib.Path(model_path) / "model.safetensors"
        exact = oracle.forward(model, ids)
        runs = bounds.simulations(model, ids)
        bound_of_all = bounds.bound_from(exact, runs)
        tile_bound = bound_of_all
        if bounds.has_bf16(model) and not TILE_LEVELS.isdisjoint(self.levels):
            tile_bound = bounds.bound_from(exact, bounds.tile_simulations(model, ids))
        for level in self.levels:
            for role in ("prefill", "decode"):
                row = f"{name:21s} {level:12s} {role:7s}"
                in_tiles = level in TILE_LEVELS and role == "prefill"
                bound = tile_bound if in_tiles else bound_of_all
                try:
                    ours = self.logits(model_path, ids, level, "--role", role, "--threads", "2")
                except Failed as failure:
                    self.num_failures += 1
                    print(f"{row} FAILED: {failure}", flush=True)
                    continue
                found, to_sim = bounds.errors(exact, ours), bounds.errors(
                    runs[0].astype(np.float64), ours
                )
                ok = found.within(bound)
                self.num_failures += not ok
                print(
                    f"{row} {found.max:10.2e} {bound.max:9.2e} {found.rms:10.2e} {bound.rms:9.2e} "
                    f"{found.kl:9.1e} {to_sim.rms:12.2e}  {'ok' if ok else 'OUT OF BOUND'}",
                    flush=True,
                )

    def exactness(self, made):
        """Properties that hold bit for bit; `made` maps model names to (spec, path)."""

        def run(name, level, *options):
            spec, path = made[name]
            return lambda: self.logits(path, make_models.ids_for(spec), level, *options)

        for level in self.levels:
            for name in made:
                if "zero" in name or "partial" in name:
                    self.same_bits(
                        f"{name} {level}: elided = --no-elide",
                        run(name, level),
                        run(name, level, "--no-elide"),
                    )
            for kind in ("f32", "q8_0"):
                zero, none = f"cicada-zero-{kind}", f"cicada-none-{kind}"
                if zero in made:
                    self.same_bits(
                        f"{zero} {level}: = model without the layer",
                        run(zero, level),
                        run(none, level),
                    )
            if "cicada-r0-f32" in made:
                self.same_bits(
                    f"R = 0 {level}: = key absent",
                    run("cicada-r0-f32", level),
                    run("cicada-none-f32", level),
                )

    def refused(self, name, path, spec, word):
        """A corrupt file ends in status 1 or 2 and a sentence that names the fault."""
        done, _ = self.execute(path, make_models.ids_for(spec), self.levels[0])
        said = done.stderr.strip()
        ok = done.returncode in (1, 2) and word in said
        self.check(f"{name}: refused", ok, f"(exit {done.returncode}: {said[-200:]})")


def machine_levels(only):
    try:
        cpu = pathlib.Path("/proc/cpuinfo").read_text().split()
    except OSError:
        cpu = []
    levels = []
    for level, flags in LEVEL_FLAGS.items():
        missing = [flag for flag in flags if flag not in cpu]
        if only and level != only:
            continue
        if missing:
            print(f"skipped: level {level}, this machine lacks {' '.join(missing)}")
        else:
            levels.append(level)
    return levels


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--program", required=True, help="the built cicada_logits")
    parser.add_argument("--work", required=True, help="folder for models and outputs")
    parser.add_argument("--level", choices=list(LEVEL_FLAGS))
    parser.add_argument("groups", nargs="*")
    args = parser.parse_args()
    program = pathlib.Path(args.program)
    if not program.is_file():
        print(f"skipped: cicada_logits ({args.program or 'not in this build'}) is not built")
        sys.exit(77)
    work = pathlib.Path(args.work)
    driver = Driver(program, work, machine_levels(args.level))
    print(HEADING)
    made = {}
    for spec in make_models.specs():
        if args.groups and spec.group not in args.groups:
            continue
        path = make_models.make(spec, work)
        if spec.rel_pos_missing:
            driver.refused(spec.name, path, spec, "rel_pos_proj")
            continue
        made[spec.name] = spec, path
        driver.compare(spec.name, path, spec)
        if spec.name == "llama-f32":
            driver.compare("llama safetensors", work / "llama-hf", spec)
    driver.exactness(made)
    print(f"{driver.num_failures} failures" if driver.num_failures else "all within bounds")
    sys.exit(1 if driver.num_failures else 0)


if __name__ == "__main__":
    main()
