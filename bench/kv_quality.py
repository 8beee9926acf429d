#!/usr/bin/env python3
"""What a KV cache in fewer bits costs in quality, against the cache in f16, pair by pair.

    bench/kv_quality.py [--cicada build/cicada] [--data ../shared/data] [--out out/kv-quality] [--kv "q8 q6 q4"]
                        [--setting "NAME=ARGUMENTS"]... [PART...]

Parts, all but depth by default: perplexity (wiki.test.raw), gsm8k (arithmetic problems), needle (a number hidden in a novel), policy
(loss on the novel at long contexts), depth (decode speed after many tokens), charts. Each result is kept in OUT at once, under the
program, the setting and all that was asked, and is not measured again; Ctrl-C loses the run in hand only. Tables go to
OUT/kv-quality.md and .json. docs/benchmarks.md says how to read them.
"""
import argparse
import json
import os
import shlex
import shutil
import sys

import engines
import host
import kv_chart
import kv_parts
import kv_report
import kv_runs
from compare import say

ALL_PARTS = [*kv_parts.PARTS, "charts"]
BY_DEFAULT = [part for part in ALL_PARTS if part != "depth"]
POLICIES = ["window 1024=--kv-policy window:1024,sinks:4"]
PICTURES = {"quality": "kv-quality.svg", "speed": "kv-speed.svg"}


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("part", nargs="*", metavar="PART", help=f"{', '.join(ALL_PARTS)}; all but depth by default")
    parser.add_argument("--cicada", default=os.path.join(host.ROOT, "build", "cicada"))
    parser.add_argument("--data", default=os.path.join(host.ROOT, "..", "shared", "data"), help="holds wikitext-2-raw, gsm8k, gutenberg-1342")
    parser.add_argument("--out", default=os.path.join(host.ROOT, "out", "kv-quality"))
    parser.add_argument("--kv", default="q8 q6 q4", help="what --kv of cicada takes, with blanks between: \"q8 q6 q8/q6\"")
    parser.add_argument("--setting", action="append", default=[], metavar="NAME=ARGUMENTS",
                        help=f"other arguments of cicada to measure in needle, policy and depth; by default \"{POLICIES[0]}\"")
    parser.add_argument("-m", "--model", action="append", help="of perplexity: a file or the name of a fetched model; the three known by default")
    parser.add_argument("--chunks", type=int, default=0, help="of perplexity; by default what the model's size allows")
    parser.add_argument("--problems", type=int, default=100, help="the first so many of GSM8K")
    parser.add_argument("-t", "--threads", type=int, help="1 where something else runs beside; results are the same")
    parser.add_argument("--label", help="keep results under this name instead of the program's digest: several builds count as one")
    parser.add_argument("--speed", action="store_true", help=f"policy: also decode speed after {kv_parts.SPEED_DEPTH} tokens; needs a quiet machine")
    parser.add_argument("--depths", default="0,1000,3000,7000", help="of depth")
    parser.add_argument("-r", "--repeats", type=int, default=5, help="turns of speed")
    parser.add_argument("--peers", metavar="FILE", help="lines of others for the chart: [{\"name\": ..., \"speeds\": {\"0\": [tokens/s, ...]}}]")
    parser.add_argument("--publish", action="store_true", help="put the charts into docs/images")
    return checked(parser.parse_intermixed_args())


def checked(args):
    args.part = args.part or BY_DEFAULT
    for part in args.part:
        if part not in ALL_PARTS:
            raise engines.BenchError(f"'{part}' is no part; they are {', '.join(ALL_PARTS)}")
    program = shutil.which(args.cicada)
    if program is None:
        raise engines.BenchError(f"'{args.cicada}' is no program that can be run")
    args.cicada, args.data, args.out = os.path.abspath(program), os.path.abspath(args.data), os.path.abspath(args.out)
    args.model = args.model or list(kv_parts.CHUNKS)
    args.widths = [kv_runs.Setting(width, ("--kv", width)) for width in args.kv.split()]
    args.settings = [named(setting) for setting in args.setting or POLICIES]
    names = [setting.name for setting in kv_parts.with_base(args.widths + args.settings)]
    if len(set(names)) < len(names):
        raise engines.BenchError(f"two settings have one name: {', '.join(names)}")
    try:
        args.depths = [int(depth) for depth in args.depths.split(",") if depth]
    except ValueError:
        raise engines.BenchError("--depths is numbers like 0,1000") from None
    if args.chunks < 0 or args.problems < 1 or args.repeats < 1 or min(args.depths, default=-1) < 0 or (args.threads or 1) < 1:
        raise engines.BenchError("--chunks and --depths are at least 0, --problems, -r and -t at least 1")
    return args


def named(setting):
    name, _, arguments = setting.partition("=")
    try:
        words = tuple(shlex.split(arguments))
    except ValueError as error:
        raise engines.BenchError(f"--setting {setting}: {error}") from None
    if not name or not words:
        raise engines.BenchError(f"--setting {setting}: NAME=ARGUMENTS, as in window=--kv-policy window:1024")
    return kv_runs.Setting(name, words)


def gather(runner, args):
    """Tables of all that is kept for these settings; a part whose data are not here has no rows."""
    runner.only_kept = True
    result = {"program": runner.label, "host": host.Watch().report(), "failures": runner.failures}
    for name, part in kv_parts.PARTS.items():
        try:
            result[name] = part(runner, args)
        except engines.BenchError:
            result[name] = []
    say("")
    return result


def peer_lines(path):
    if path is None:
        return []
    try:
        with open(path) as content:
            return [{"name": peer["name"], "ours": False, "speeds": {str(int(depth)): kv_parts.summary(runs)
                                                                     for depth, runs in peer["speeds"].items()}}
                    for peer in json.load(content)]
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise engines.BenchError(f"{path}: not a list of {{name, speeds: {{depth: [tokens/s]}}}} ({error})") from None


def charts(result, args):
    origin = result["host"]
    note = f"{origin['cpu']}, commit {origin['commit']}, {origin['date']}"
    ours = [{"name": f"Cicada {row['setting']}", "ours": True, "speeds": row["speeds"]} for row in result["depth"]]
    pictures = {"quality": kv_chart.quality(result["perplexity"], note + "; wiki.test.raw in chunks of 512 tokens") if result["perplexity"] else None,
                "speed": kv_chart.speed(ours + peer_lines(args.peers), f"{note}; {kv_parts.SMALL}, medians, black: least to greatest")}
    for kind, picture in pictures.items():
        if picture is None:
            continue
        write(os.path.join(args.out, PICTURES[kind]), picture)
        if args.publish:
            write(os.path.join(host.ROOT, "docs", "images", PICTURES[kind]), picture)


def write(path, content):
    try:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as out:
            out.write(content)
    except OSError as error:
        raise engines.BenchError(f"{path}: {error.strerror}") from None


def report(runner, args):
    result = gather(runner, args)
    write(os.path.join(args.out, "kv-quality.json"), json.dumps(result, indent=1) + "\n")
    write(os.path.join(args.out, "kv-quality.md"), kv_report.text(result))
    print(kv_report.text(result), end="")
    if "charts" in args.part:
        charts(result, args)


def main():
    args = parse_arguments()
    runner = kv_runs.Runner(args.cicada, args.out, args.threads, args.label)
    try:
        for part in args.part:
            if part in kv_parts.PARTS:
                kv_parts.PARTS[part](runner, args)
    except KeyboardInterrupt:
        report(runner, args)
        raise
    report(runner, args)
    if runner.failures:
        raise engines.BenchError("; ".join(runner.failures))


if __name__ == "__main__":
    try:
        main()
    except engines.BenchError as error:
        say("")
        sys.exit(f"kv_quality.py: {error}")
    except KeyboardInterrupt:
        sys.exit("kv_quality.py: stopped; what was measured is kept, the same command goes on")
