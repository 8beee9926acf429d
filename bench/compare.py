#!/usr/bin/env python3
"""Compares `cicada bench` with another engine on the same model file.

    bench/compare.py --peer PATH -m MODEL [-p 512] [-n 128] [-t 2] [-r 5] [--peer-args "-fa 1"]... [--json OUT]

PATH is a binary with llama-bench's interface. Ours and every setting of the peer take turns, one repetition each, so that
all see the same machine; of the peer's settings the best median counts, for each measure apart. Prints medians, spread,
ratios, and what the machine was and did. docs/benchmarks.md says how to read it.
"""
import argparse
import datetime
import json
import os
import shlex
import shutil
import statistics
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
MEASURES = ("prefill", "decode")


def fail(sentence):
    sys.exit(f"compare.py: {sentence}")


def model_path(model):
    """A path, or the name of a model that `cicada pull` fetched."""
    if os.path.exists(model):
        return model
    home = os.environ.get("CICADA_HOME") or os.path.expanduser("~/.cache/cicada")
    path = os.path.join(home, "models", model + ".gguf")
    if os.path.sep in model or not os.path.exists(path):
        fail(f"{model}: neither a file nor a fetched model (cicada pull {model})")
    return path


def run_json(command):
    try:
        done = subprocess.run(command, capture_output=True, text=True)
    except OSError as error:
        fail(f"{command[0]}: {error.strerror}")
    if done.returncode != 0:
        fail(f"{shlex.join(command)} ended with status {done.returncode}: {done.stderr.strip()[-300:]}")
    try:
        return json.loads(done.stdout)
    except ValueError:
        fail(f"{shlex.join(command)} printed no JSON: {done.stdout.strip()[:100]!r}")


def sizes(args):
    return ["-m", args.model, "-t", str(args.threads), "-p", str(args.prefill), "-n", str(args.decode), "-r", "1"]


def run_ours(args):
    data = run_json([args.cicada, "bench", *sizes(args), "--json"])
    return {**{measure: data[measure]["median"] for measure in MEASURES},
            **{key: data[key] for key in ("isa", "numerics_id", "rss_bytes", "gb_per_s")}}


def run_peer(args, setting):
    rows = run_json([args.peer, *sizes(args), "-o", "json", *shlex.split(setting)])
    result = {}
    for row in rows:
        # One row for prefill alone, one for decode alone; rows for both together are another measure.
        if row["n_prompt"] == args.prefill and row["n_gen"] == 0:
            result["prefill"] = row["avg_ts"]
        elif row["n_gen"] == args.decode and row["n_prompt"] == 0:
            result["decode"] = row["avg_ts"]
        result["build"] = row.get("build_commit", "unknown")
    missing = [measure for measure in wanted(args) if measure not in result]
    if missing:
        fail(f"{args.peer} {setting}: no row for {' and '.join(missing)}")
    return result


def wanted(args):
    return [measure for measure in MEASURES if getattr(args, measure) > 0]


def steal_ticks():
    """Time that the host gave to others, of all CPUs since boot, and all time."""
    with open("/proc/stat") as stat:
        ticks = [int(field) for field in stat.readline().split()[1:9]]
    return ticks[7], sum(ticks)


def cpu_name():
    with open("/proc/cpuinfo") as info:
        return next((line.split(":", 1)[1].strip() for line in info if line.startswith("model name")), "unknown")


def commit():
    def git(*arguments):
        return subprocess.run(["git", "-C", ROOT, *arguments], capture_output=True, text=True).stdout.strip()
    changed = "+changes" if git("status", "--porcelain", "--untracked-files=no") else ""
    return (git("rev-parse", "--short", "HEAD") or "unknown") + changed


def summary(values):
    return {"median": statistics.median(values), "min": min(values), "max": max(values), "runs": values}


def compare(measure, ours, peer_runs):
    """Ours beside the setting of the peer with the best median of this measure."""
    settings = {setting: summary([run[measure] for run in runs]) for setting, runs in peer_runs.items()}
    best = max(settings, key=lambda setting: settings[setting]["median"])
    own = summary([run[measure] for run in ours])
    return {"ours": own, "peer": settings[best], "peer_setting": best, "peer_settings": settings,
            "ratio": own["median"] / settings[best]["median"]}


def show(values):
    return f"{values['median']:9.1f} ({values['min']:.1f} to {values['max']:.1f})"


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--peer", required=True, help="a binary with llama-bench's interface")
    parser.add_argument("--peer-args", action="append",
                        help="one setting of the peer; again for more (default: none, and '-fa 1')")
    parser.add_argument("--cicada", default=os.path.join(ROOT, "build", "cicada"))
    parser.add_argument("-m", "--model", required=True, help="a file, or the name of a fetched model")
    parser.add_argument("-t", "--threads", type=int, default=2)
    parser.add_argument("-p", "--prefill", type=int, default=512)
    parser.add_argument("-n", "--decode", type=int, default=128)
    parser.add_argument("-r", "--repeats", type=int, default=5)
    parser.add_argument("--json", help="also write everything to this file")
    args = parser.parse_args()
    for program in (args.peer, args.cicada):
        if shutil.which(program) is None:
            fail(f"'{program}' is no program that can be run")
    args.model = model_path(args.model)
    if args.repeats < 1 or args.threads < 1 or min(args.prefill, args.decode) < 0 or not wanted(args):
        fail("-r and -t are at least 1, -p and -n at least 0 and not both 0")
    return args


def main():
    args = parse_arguments()
    ours = []
    peer_runs = {setting: [] for setting in args.peer_args or ["", "-fa 1"]}
    steal_before, time_before = steal_ticks()
    for _ in range(args.repeats):
        ours.append(run_ours(args))
        for setting, runs in peer_runs.items():
            runs.append(run_peer(args, setting))
    steal_after, time_after = steal_ticks()
    steal = (steal_after - steal_before) / max(1, time_after - time_before)
    result = {"model": os.path.basename(args.model), "cpu": cpu_name(), "cores": os.cpu_count(), "isa": ours[0]["isa"],
              "numerics_id": ours[0]["numerics_id"], "commit": commit(), "date": datetime.date.today().isoformat(),
              "peer_build": next(iter(peer_runs.values()))[0]["build"], "threads": args.threads,
              "repeats": args.repeats, "load_average": os.getloadavg()[0], "steal": steal,
              "rss_bytes": max(run["rss_bytes"] for run in ours),
              "gb_per_s": statistics.median(run["gb_per_s"] for run in ours)}
    print(f"{result['model']} on {result['cpu']}, {args.threads} of {result['cores']} cores, {result['isa']}, commit "
          f"{result['commit']}, peer {result['peer_build']}, {result['date']}; median of {args.repeats} (spread), "
          f"tokens/s; steal {100 * steal:.1f} %, load {result['load_average']:.1f}")
    for measure in wanted(args):
        result[measure] = compare(measure, ours, peer_runs)
        found = result[measure]
        print(f"  {measure:<8}{getattr(args, measure):>5}  ours {show(found['ours'])}  peer {show(found['peer'])} with "
              f"'{found['peer_setting']}'  ratio {found['ratio']:.2f}")
    if args.json:
        with open(args.json, "w") as out:
            json.dump(result, out, indent=1)


if __name__ == "__main__":
    main()
