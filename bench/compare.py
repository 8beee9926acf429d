#!/usr/bin/env python3
"""Speed of Cicada beside other engines on the same model files, in the same run.

    bench/compare.py -m MODEL... --peer NAME=PATH... [-p 512] [-n 128] [--batches 8,16] [--answer 128] [-t 2] [-r 5] [--out FOLDER] [--readme]

PATH is a binary with llama-bench's interface; a llama-batched-bench beside it is asked for several sequences at once. Every
setting of a peer is tried once for each workload and its best goes on; then ours and the peers' take turns. Writes bench.json,
bench.html and speed.svg to FOLDER (out/bench) and prints the table; --readme puts table and picture into the README.
docs/benchmarks.md says how to read it.
"""
import argparse
import json
import os
import shutil
import statistics
import sys

import chart
import engines
import host
import report


def model_path(model):
    """A path, or the name of a model that `cicada pull` fetched."""
    if os.path.exists(model):
        return os.path.abspath(model)
    home = os.environ.get("CICADA_HOME") or os.path.expanduser("~/.cache/cicada")
    path = os.path.join(home, "models", model + ".gguf")
    if os.path.sep in model or not os.path.exists(path):
        raise engines.BenchError(f"{model}: neither a file nor a fetched model (cicada pull {model})")
    return path


def say(text):
    """Progress, on a terminal only."""
    if sys.stderr.isatty():
        print(f"\r{text[:110]}\x1b[K", end="", file=sys.stderr, flush=True)


def summary(values):
    return {"median": statistics.median(values), "min": min(values), "max": max(values), "runs": values}


def machine_limits(path, ours):
    """What the machine allows, and likwid's word on reading: measured now, or as an earlier bench.json has it."""
    if path is None:
        say("measuring the machine")
        return ours.limits(), host.likwid_gb_per_s(ours.threads)
    try:
        with open(path) as earlier:
            found = json.load(earlier)
        return found["limits"], found["likwid_read_gb_per_s"]
    except (OSError, ValueError, KeyError, TypeError):
        raise engines.BenchError(f"{path}: not the bench.json of an earlier run") from None


def workloads_of(args, limits, is_first=True):
    """Several sequences are asked of the first model only: they take long, and a small model shows most."""
    has_tiles = "bf16_tile_tops" in limits
    kinds = ([False, True] if has_tiles else [False]) if args.prefill else []
    prefill = [engines.Workload("prefill", args.prefill, panels=panels) for panels in kinds]
    counts = [1, *args.batches] if is_first else [1]
    decode = [engines.Workload("decode", args.decode, count) for count in counts] if args.decode else []
    answers = [engines.Workload("answer", args.answer, drafts=drafts) for drafts in (False, True)] if args.answer else []
    return prefill + decode + answers


def best_setting(peer, model, workload):
    """(the fastest setting, what each gave): one run of each; a setting that fails gave nothing."""
    tried, problem = {}, None
    for setting in peer.settings:
        try:
            tried[setting] = peer.measure(model, workload, setting)
        except engines.BenchError as error:
            tried[setting], problem = 0.0, error
    best = max(tried, key=tried.get)
    if tried[best] == 0.0:
        raise problem
    return best, tried


def limit_of(workload, data, limits):
    """Tokens per second that the machine allows: weights and keys read once a step for decode of one sequence, at the speed of
    reading that same run measured; the peak of products for everything else. Answers are not held to one."""
    if workload.kind == "answer":
        return None
    if workload.kind == "decode" and workload.sequences == 1:
        bytes_a_token = data["decode_weight_bytes"] + data["kv_bytes_per_token"] * workload.tokens / 2
        return max(1.0, data["read_gb_per_s"]["median"] * 1e9 / max(1, bytes_a_token))  # a model may be next to nothing
    ops = data["prefill_ops_per_token"] if workload.kind == "prefill" else data["decode_ops_per_token"]
    in_tiles = workload.kind == "prefill" and "bf16_tile_tops" in limits
    tops = limits["bf16_tile_tops" if in_tiles else "int8_tops"]["all"]
    return tops * 1e12 / max(1, ops)  # a model may be all zeros


def compare(ours, peers, model, workload, args, limits, watch):
    say(f"{os.path.basename(model)}, {workload.name}: trying settings")
    peers = peers if workload.has_peers else []
    chosen = {peer: best_setting(peer, model, workload) for peer in peers}
    own, data, runs, own_limits = [], None, {peer: [] for peer in peers}, []
    for turn in range(args.repeats):
        say(f"{os.path.basename(model)}, {workload.name}: turn {turn + 1} of {args.repeats}")
        speed, data = ours.measure(model, workload)
        own.append(speed)
        own_limits.append(limit_of(workload, data, limits))
        for peer in peers:
            runs[peer].append(peer.measure(model, workload, chosen[peer][0]))
        watch.look()
    has_limit = own_limits[0] is not None
    result = {"name": workload.name, "kind": workload.kind, "tokens": workload.tokens, "sequences": workload.sequences,
              "ours": summary(own), "limit": statistics.median(own_limits) if has_limit else None,
              "share_of_limit": statistics.median(speed / limit for speed, limit in zip(own, own_limits)) if has_limit else None,
              **{key: data.get(key) for key in ("gb_per_s", "prefill_tops", "rss_bytes", "isa", "numerics_id")}, "peers": []}
    for peer in peers:
        ratios = summary([mine / theirs for mine, theirs in zip(own, runs[peer])])
        ratios["median"] = statistics.median(own) / statistics.median(runs[peer])
        result["peers"].append({"name": peer.name, "build": peer.build, "setting": chosen[peer][0], "tried": chosen[peer][1],
                                "speed": summary(runs[peer]), "ratio": ratios})
    return result


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--peer", action="append", default=[], metavar="NAME=PATH", help="a binary with llama-bench's interface")
    parser.add_argument("--cicada", default=os.path.join(host.ROOT, "build", "cicada"))
    parser.add_argument("-m", "--model", action="append", required=True, help="a file, or the name of a fetched model")
    parser.add_argument("-t", "--threads", type=int, default=2)
    parser.add_argument("-p", "--prefill", type=int, default=512)
    parser.add_argument("-n", "--decode", type=int, default=128)
    parser.add_argument("--batches", default="", help="also decode this many sequences of the first model at once, e.g. 8,16")
    parser.add_argument("--answer", type=int, default=0, help="also answer with this many tokens, without drafts and with them")
    parser.add_argument("-r", "--repeats", type=int, default=5)
    parser.add_argument("--limits", metavar="FILE", help="the machine's limits from this earlier bench.json")
    parser.add_argument("--out", default=os.path.join(host.ROOT, "out", "bench"))
    parser.add_argument("--readme", action="store_true", help="put table and picture into the README")
    args = parser.parse_args()
    args.model = [model_path(model) for model in args.model]
    try:
        args.batches = [int(count) for count in args.batches.split(",") if count]
        args.peer = [(name, path) for name, path in (peer.split("=", 1) for peer in args.peer)]
    except ValueError:
        raise engines.BenchError("--batches is numbers like 8,16, and --peer is NAME=PATH") from None
    for program in [args.cicada] + [path for _, path in args.peer]:
        if shutil.which(program) is None:
            raise engines.BenchError(f"'{program}' is no program that can be run")
    args.cicada = os.path.abspath(shutil.which(args.cicada))
    args.peer = [(name, os.path.abspath(shutil.which(path))) for name, path in args.peer]
    if args.repeats < 1 or args.threads < 1 or min(args.prefill, args.decode, args.answer, *args.batches, 0) < 0 or not workloads_of(args, {}):
        raise engines.BenchError("-r and -t are at least 1, -p, -n, --answer and --batches at least 0 and not all 0")
    return args


def main():
    args = parse_arguments()
    ours = engines.Cicada(args.cicada, args.threads)
    peers = [engines.Peer(name, path, args.threads) for name, path in args.peer]
    limits, likwid = machine_limits(args.limits, ours)
    result = {"limits": limits, "likwid_read_gb_per_s": likwid, "threads": args.threads, "repeats": args.repeats, "models": []}
    watch = host.Watch()
    for model in args.model:
        result["models"].append({"name": os.path.basename(model).removesuffix(".gguf"), "bytes": os.path.getsize(model),
                                 "workloads": [compare(ours, peers, model, workload, args, limits, watch)
                                               for workload in workloads_of(args, limits, model == args.model[0])]})
    result["host"] = watch.report()
    say("")
    print(report.text(result), end="")
    os.makedirs(args.out, exist_ok=True)
    for name, content in (("bench.json", json.dumps(result, indent=1)), ("speed.svg", chart.svg(result)),
                          ("bench.html", report.html(result))):
        with open(os.path.join(args.out, name), "w") as out:
            out.write(content)
    if args.readme:
        report.write_readme(result, host.ROOT)


if __name__ == "__main__":
    try:
        main()
    except engines.BenchError as error:
        sys.exit(f"compare.py: {error}")
    except KeyboardInterrupt:
        sys.exit("compare.py: stopped")
