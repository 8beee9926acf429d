#!/usr/bin/env python3
"""Compares `cicada bench` with another engine's llama-bench on the same model file.

    bench/compare.py --peer PATH -m MODEL.gguf [-t 2] [-p 512] [-n 128] [-r 5] [--peer-args "-fa 1"]...

Runs alternate, one repetition each, so that both see the same machine; every setting of the peer is tried and the best
median of each measure is taken. Prints medians, spread and ratios, and what the machine was doing. docs/benchmarks.md says
how to read it.
"""
import argparse
import datetime
import json
import os
import shlex
import statistics
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def fail(sentence):
    sys.exit(f"compare.py: {sentence}")


def run_json(command):
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        fail(f"{command[0]} ended with status {done.returncode}: {done.stderr.strip()[-300:]}")
    return json.loads(done.stdout)


def ours(args):
    data = run_json([args.cicada, "bench", "-m", args.model, "-t", str(args.threads), "-p", str(args.prefill),
                     "-n", str(args.decode), "-r", "1", "--json"])
    return {"prefill": data["prefill"]["median"], "decode": data["decode"]["median"], "rss": data["rss_bytes"],
            "isa": data["isa"], "gb_per_s": data["gb_per_s"]}


def peers(args, extra):
    rows = run_json([args.peer, "-m", args.model, "-t", str(args.threads), "-p", str(args.prefill),
                     "-n", str(args.decode), "-r", "1", "-o", "json"] + shlex.split(extra))
    return {"prefill" if row["n_prompt"] > 0 else "decode": row["avg_ts"] for row in rows}


def steal_ticks():
    with open("/proc/stat") as stat:
        return int(stat.readline().split()[8])


def cpu_name():
    with open("/proc/cpuinfo") as info:
        return next((line.split(":", 1)[1].strip() for line in info if line.startswith("model name")), "unknown")


def commit():
    done = subprocess.run(["git", "-C", ROOT, "rev-parse", "--short", "HEAD"], capture_output=True, text=True)
    return done.stdout.strip() or "unknown"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--peer", required=True, help="a binary with llama-bench's interface")
    parser.add_argument("--peer-args", action="append", help="one setting of the peer; may be given more than once")
    parser.add_argument("--cicada", default=os.path.join(ROOT, "build", "cicada"))
    parser.add_argument("-m", "--model", required=True)
    parser.add_argument("-t", "--threads", type=int, default=2)
    parser.add_argument("-p", "--prefill", type=int, default=512)
    parser.add_argument("-n", "--decode", type=int, default=128)
    parser.add_argument("-r", "--repeats", type=int, default=5)
    parser.add_argument("--json", help="also write the result to this file")
    args = parser.parse_args()
    for path in (args.peer, args.cicada, args.model):
        if not os.path.exists(path):
            fail(f"{path}: no such file")
    settings = args.peer_args or ["", "-fa 1"]
    own = []
    other = {setting: [] for setting in settings}
    steal = steal_ticks()
    for _ in range(args.repeats):
        own.append(ours(args))
        for setting in settings:
            other[setting].append(peers(args, setting))
    result = {"cpu": cpu_name(), "cores": os.cpu_count(), "threads": args.threads, "commit": commit(),
              "date": datetime.date.today().isoformat(), "model": os.path.basename(args.model),
              "isa": own[0]["isa"], "rss_bytes": max(run["rss"] for run in own),
              "steal_ticks": steal_ticks() - steal, "repeats": args.repeats}
    print(f"{result['model']} on {result['cpu']}, {args.threads} threads, {result['isa']}, commit {result['commit']}, "
          f"{result['date']}, steal {result['steal_ticks']} ticks")
    for measure, tokens in (("prefill", args.prefill), ("decode", args.decode)):
        if tokens == 0:
            continue
        mine = [run[measure] for run in own]
        best = max(settings, key=lambda s: statistics.median(run[measure] for run in other[s]))
        theirs = [run[measure] for run in other[best]]
        ratio = statistics.median(mine) / statistics.median(theirs)
        result[measure] = {"ours": mine, "peer": theirs, "peer_setting": best, "ratio": ratio}
        print(f"  {measure:<8}{tokens:>5}  ours {statistics.median(mine):9.1f} ({min(mine):.1f} to {max(mine):.1f})  "
              f"peer {statistics.median(theirs):9.1f} ({min(theirs):.1f} to {max(theirs):.1f}, "
              f"{best or 'default'})  ratio {ratio:.2f}")
    if args.json:
        with open(args.json, "w") as out:
            json.dump(result, out, indent=1)


if __name__ == "__main__":
    main()
