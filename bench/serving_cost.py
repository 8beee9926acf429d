#!/usr/bin/env python3
"""What parts of our server cost, measured in pairs.

    bench/serving_cost.py metrics [--pairs 20]     decode speed with metrics and without, servers side by side, in turns
    bench/serving_cost.py buffers [--answers 5]    first token and gaps for each setting of the stream's buffer

`metrics` prints the mean loss and its upper 95 % bound (paired, one-sided, by Student's t) and ends with status 3 when that
bound is not below 1 %.
"""
import argparse
import datetime
import math
import os
import statistics
import sys

import compare
import host
import load
import servers

PROMPT = "A long story about a lighthouse keeper and the sea. It begins on a winter morning, when"
BUFFERS = [("as tokens come (default)", None), ("0 bytes", 0), ("256 bytes", 256), ("1024 bytes", 1024), ("token", "token"),
           ("word", "word"), ("20ms", "20ms")]


def body(tokens, seed=0, **more):
    return {"prompt": f"{seed}. {PROMPT}", "max_tokens": tokens, "temperature": 0, "ignore_eos": True, **more}


def decode_rate(port, seed):
    reply = load.complete(port, body(300, seed))
    if reply.error:
        raise servers.ServerError(reply.error)
    return len(reply.gaps) / sum(reply.gaps)


def t_quantile_95(degrees):
    """One-sided 95 % of Student's t, to a thousandth from 5 degrees on (Cornish-Fisher)."""
    z = 1.6448536
    return (z + (z ** 3 + z) / (4 * degrees) + (5 * z ** 5 + 16 * z ** 3 + 3 * z) / (96 * degrees ** 2))


def metrics(args, model):
    losses = []
    with servers.ours(args.cicada, model, args.threads) as with_metrics, \
            servers.ours(args.cicada, model, args.threads, ["--no-metrics"]) as without:
        for server in (with_metrics, without):
            decode_rate(server.port, 0)
        for pair in range(args.pairs):
            order = [with_metrics, without] if pair % 2 == 0 else [without, with_metrics]
            rates = {server: decode_rate(server.port, pair) for server in order}
            losses.append(1 - rates[with_metrics] / rates[without])
            compare.say(f"pair {pair + 1} of {args.pairs}")
    compare.say("")
    mean = statistics.mean(losses)
    error = statistics.stdev(losses) / math.sqrt(len(losses))
    bound = mean + t_quantile_95(len(losses) - 1) * error
    print(f"decode with metrics is slower by {mean * 100:.2f} % ± {error * 100:.2f}; with 95 % confidence by less than "
          f"{bound * 100:.2f} % ({args.pairs} pairs)")
    return 0 if bound < 0.01 else 3


def buffers(args, model):
    print("| buffer_hint | first text p50 / p99, ms | gap p50 / p99, ms | frames |\n|---|---|---|---|")
    with servers.ours(args.cicada, model, args.threads) as server:
        decode_rate(server.port, 0)
        seen = {name: [] for name, _ in BUFFERS}
        for turn in range(args.answers):
            for name, hint in BUFFERS:
                more = {} if hint is None else {"buffer_hint": hint}
                seen[name].append(load.complete(server.port, body(200, turn, **more)))
    for name, replies in seen.items():
        firsts = [reply.first * 1e3 for reply in replies]
        gaps = [gap * 1e3 for reply in replies for gap in reply.gaps]
        print(f"| {name} | {load.percentile(firsts, .5):.0f} / {load.percentile(firsts, .99):.0f} | "
              f"{load.percentile(gaps, .5):.1f} / {load.percentile(gaps, .99):.1f} | "
              f"{statistics.mean(len(reply.times) for reply in replies):.0f} |")
    return 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", choices=["metrics", "buffers"])
    parser.add_argument("-m", "--model", default="smollm2")
    parser.add_argument("--cicada", default=os.path.join(host.ROOT, "build", "cicada"))
    parser.add_argument("-t", "--threads", type=int, default=os.cpu_count())
    parser.add_argument("--pairs", type=int, default=20)
    parser.add_argument("--answers", type=int, default=5)
    args = parser.parse_args()
    status = {"metrics": metrics, "buffers": buffers}[args.part](args, compare.model_path(args.model))
    print(f"{args.model}, {host.cpu_name()}, {args.threads} threads, commit {host.commit()}, "
          f"{datetime.date.today().isoformat()}")
    sys.exit(status)


if __name__ == "__main__":
    try:
        main()
    except servers.ServerError as error:
        sys.exit(f"serving_cost: {error}")
