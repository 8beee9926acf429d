#!/usr/bin/env python3
"""Cicada's server beside llama-server: the same file, machine and clients, in turns.

    bench/serving.py -m MODEL --peer PATH/llama-server [--text FILE] [-r 3] [-t 2] [--out FOLDER]

Workloads: 1, 4, 8 and 16 clients, each sending three prompts of 100 words for 128 tokens; 8 clients with a common beginning
of 800 words (an agent's instructions) for 64 tokens; an answer that runs while a prompt of 2,900 words is read. Clients are
closed loops of streams in this process, on the same cores. Writes serving.json and serving.svg to FOLDER (out/serving).
"""
import argparse
import datetime
import json
import os
import random
import statistics
import sys
import threading

import compare
import host
import load
import servers
import serving_chart

PEER_SETTINGS = "-fa on -c 32768 -np 16 -kvu"
DEFAULT_TEXT = os.path.join(host.ROOT, "..", "shared", "data", "gutenberg-1342")


def words_of(path):
    if os.path.isdir(path):
        path = next(os.path.join(path, name) for name in sorted(os.listdir(path)) if name.startswith("pg") or
                    (name.endswith(".txt") and "LICENSE" not in name))
    with open(path, errors="ignore") as file:
        return file.read().split()


class Prompts:
    """Texts that no request before had, the same for each engine."""

    def __init__(self, words, seed):
        self.words, self.random = words, random.Random(seed)

    def text(self, count):
        begin = self.random.randrange(len(self.words) - count)
        return " ".join(self.words[begin:begin + count])

    def body(self, words, tokens, prefix=""):
        return {"prompt": prefix + self.text(words), "max_tokens": tokens, "temperature": 0,
                "ignore_eos": True}


def summary(replies, seconds):
    failed = [reply.error for reply in replies if reply.error]
    if failed:
        raise servers.ServerError(f"{len(failed)} requests failed, the first: {failed[0]}")
    firsts = [reply.first for reply in replies]
    gaps = [gap for reply in replies for gap in reply.gaps]
    return {"tokens_per_second": sum(reply.tokens for reply in replies) / seconds,
            "first_p50": load.percentile(firsts, 0.5), "first_p99": load.percentile(firsts, 0.99),
            "gap_p50": load.percentile(gaps, 0.5), "gap_p99": load.percentile(gaps, 0.99), "gap_max": max(gaps)}


def clients(port, prompts, count, prefix_words=0, words=100, tokens=128, rounds=3):
    prefix = prompts.text(prefix_words) + "\n" if prefix_words else ""
    bodies = [[prompts.body(words, tokens, prefix) for _ in range(rounds)] for _ in range(count)]
    return summary(*load.closed_loop(port, bodies))


def beside_a_prompt(port, prompts):
    """The gaps of a running answer while another's long prompt is read, and without that."""
    idle = load.complete(port, prompts.body(50, 200))
    other = {}

    def start_other(count):
        if count == 20:
            other["thread"] = threading.Thread(
                target=lambda: other.update(reply=load.complete(port, prompts.body(2900, 4))))
            other["thread"].start()

    answer = load.complete(port, prompts.body(50, 2500), start_other)
    other["thread"].join()
    reply = other["reply"]
    if idle.error or answer.error or reply.error:
        raise servers.ServerError(idle.error or answer.error or reply.error)
    begin = answer.times[19]
    gaps = [b - a for a, b in zip(answer.times[19:], answer.times[20:]) if a < begin + reply.first]
    idle_gap = load.percentile(idle.gaps, 0.5)
    return {"idle_gap_p50": idle_gap, "idle_gap_p99": load.percentile(idle.gaps, 0.99), "gaps": len(gaps),
            "gap_p50": load.percentile(gaps, 0.5), "gap_p99": load.percentile(gaps, 0.99), "gap_max": max(gaps),
            "stretch_p99": load.percentile(gaps, 0.99) / idle_gap, "first_p99": reply.first,
            "covered": answer.times[-1] > begin + reply.first}


WORKLOADS = {
    "1 client": lambda port, prompts: clients(port, prompts, 1),
    "4 clients": lambda port, prompts: clients(port, prompts, 4),
    "8 clients": lambda port, prompts: clients(port, prompts, 8),
    "16 clients": lambda port, prompts: clients(port, prompts, 16),
    "8 clients, common prefix": lambda port, prompts: clients(port, prompts, 8, prefix_words=800, words=20, tokens=64),
    "beside a long prompt": beside_a_prompt,
}


def run_all(server, words, seed, names):
    results = {}
    with server:
        clients(server.port, Prompts(words, 1000 + seed), 1, rounds=1)  # warm
        for index, name in enumerate(names):
            compare.say(f"{server.name}: {name}")
            results[name] = WORKLOADS[name](server.port, Prompts(words, 100 * seed + index))
    results["peak_bytes"] = server.peak_bytes
    return results


def medians(runs, names):
    merged = {}
    for name in names:
        merged[name] = {field: statistics.median(run[name][field] for run in runs) for field in runs[0][name]}
    merged["peak_bytes"] = max(run["peak_bytes"] for run in runs)
    return merged


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-m", "--model", default="smollm2")
    parser.add_argument("--cicada", default=os.path.join(host.ROOT, "build", "cicada"))
    parser.add_argument("--peer", help="llama-server")
    parser.add_argument("--peer-settings", default=PEER_SETTINGS)
    parser.add_argument("--text", default=DEFAULT_TEXT)
    parser.add_argument("-r", "--repeats", type=int, default=3)
    parser.add_argument("-t", "--threads", type=int, default=2)
    parser.add_argument("--only", nargs="*", default=list(WORKLOADS))
    parser.add_argument("--publish", action="store_true", help="put the chart into docs/images")
    parser.add_argument("--out", default=os.path.join(host.ROOT, "out", "serving"))
    args = parser.parse_args()
    model, words = compare.model_path(args.model), words_of(args.text)
    runs = {"Cicada": []}
    for repeat in range(args.repeats):
        runs["Cicada"].append(run_all(servers.ours(args.cicada, model, args.threads), words, repeat, args.only))
        if args.peer:
            peer = servers.llama_server(args.peer, model, args.threads, args.peer_settings)
            runs.setdefault("llama-server", []).append(run_all(peer, words, repeat, args.only))
    result = {"model": args.model, "threads": args.threads, "repeats": args.repeats, "peer_settings": args.peer_settings,
              "host": {"cpu": host.cpu_name(), "commit": host.commit(), "date": datetime.date.today().isoformat()},
              "servers": {name: medians(list_of_runs, args.only) for name, list_of_runs in runs.items()}, "runs": runs}
    os.makedirs(args.out, exist_ok=True)
    with open(os.path.join(args.out, "serving.json"), "w") as file:
        json.dump(result, file, indent=1)
    images = [os.path.join(host.ROOT, "docs", "images")] if args.publish else []
    for folder in [args.out, *images]:
        with open(os.path.join(folder, "serving.svg"), "w") as file:
            file.write(serving_chart.svg(result))
    compare.say("")
    print(serving_chart.table(result))


if __name__ == "__main__":
    try:
        main()
    except servers.ServerError as error:
        sys.exit(f"serving: {error}")
