#!/usr/bin/env python3
"""Faults and long loads of a running server, against what an undisturbed run says.

    bench/drills.py kill [--kills 20] [--clients 1 8]     SIGKILL the engine at random tokens of running streams
    bench/drills.py leave [--requests 1000]               clients that go away at random moments
    bench/drills.py trace --csv FILE [--minutes 30]       arrivals and lengths in the proportions of a recorded trace

Prints what it saw, and ends with status 3 when a check fails. Needs nothing else to run on the machine for its times to mean much.
"""
import argparse
import csv
import datetime
import json
import os
import random
import signal
import socket
import sys
import threading
import time
import urllib.request

import compare
import host
import load
import servers


def body(seed, tokens, words=40, temperature=0.8):
    rng = random.Random(seed)
    prompt = f"Story {seed}: " + " ".join(rng.choice("the old sea town by a quiet river was home to many kind people who".split())
                                          for _ in range(words))
    return {"prompt": prompt, "max_tokens": tokens, "temperature": temperature, "seed": seed,
            "ignore_eos": True}


def metric(port, name):
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as reply:
        for line in reply.read().decode().splitlines():
            if line.startswith(name + "{") or line.startswith(name + " "):
                return float(line.rsplit(" ", 1)[1])
    raise servers.ServerError(f"/metrics has no {name}")


def together(port, bodies, on_text=None):
    """Streams all bodies at once; `on_text` hears of the first one's pieces."""
    replies = [None] * len(bodies)

    def run(index):
        replies[index] = load.complete(port, bodies[index], on_text if index == 0 else None)

    threads = [threading.Thread(target=run, args=(i,)) for i in range(len(bodies))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return replies


def kill(args, server):
    failures = 0
    for count in args.clients:
        # One client has long texts, several have short ones.
        tokens, words = (256, 400) if count == 1 else (128, 90)
        bodies = [body(100 * count + i, tokens, words) for i in range(count)]
        undisturbed = together(server.port, bodies)
        if any(reply.error for reply in undisturbed):
            raise servers.ServerError(next(reply.error for reply in undisturbed if reply.error))
        expected = [reply.text for reply in undisturbed]
        longest = []
        for _ in range(args.kills):
            at = random.randrange(1, tokens - 2)

            def kill_engine(seen, at=at):
                if seen == at:
                    engine = next(pid for pid in server.pids() if pid != server.process.pid)
                    os.kill(engine, signal.SIGKILL)

            replies = together(server.port, bodies, kill_engine)
            for reply, text in zip(replies, expected):
                if reply.error or reply.text != text:
                    failures += 1
                    print(f"killed at {at}: {reply.error or 'the text differs'}")
            longest.append(max(max(reply.gaps) for reply in replies if reply.gaps))
        print(f"{count} clients, prompts of {words} words, {tokens} tokens: {args.kills} kills, longest gap "
              f"{max(longest):.2f} s, median of the longest {sorted(longest)[len(longest) // 2]:.2f} s", flush=True)
    return failures


def leave(args, server):
    rng = random.Random(args.seed)
    before = server.resident_bytes()

    def one(index):
        payload = json.dumps({**body(index, 200, rng.choice([5, 50, 400])), "stream": True}).encode()
        with socket.create_connection(("127.0.0.1", server.port)) as connection:
            connection.sendall(b"POST /v1/completions HTTP/1.1\r\nhost: x\r\ncontent-length: "
                               + str(len(payload)).encode() + b"\r\n\r\n" + payload)
            connection.settimeout(rng.random() * 0.3)
            try:
                while connection.recv(4096):
                    if rng.random() < 0.2:
                        break
            except TimeoutError:
                pass

    marks = []
    for begin in range(0, args.requests, 20):
        threads = [threading.Thread(target=one, args=(i,)) for i in range(begin, begin + 20)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        marks.append(server.resident_bytes())
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        left = [metric(server.port, f"vllm:num_requests_{state}") for state in ("running", "waiting")]
        held = metric(server.port, "vllm:kv_cache_usage_perc")
        if left == [0, 0] and held == 0:
            break
        time.sleep(0.2)
    early = marks[len(marks) // 4]
    print(f"{args.requests} clients left: running {left[0]:.0f}, waiting {left[1]:.0f}, pages held {held:.4f}; memory "
          f"{before / 1e6:.0f} MB at first, {early / 1e6:.0f} MB at a quarter, {marks[-1] / 1e6:.0f} MB at the end")
    return int(left != [0, 0]) + int(held != 0) + int(marks[-1] > early * 1.02 + 4e6)


def arrivals(path, minutes, rng):
    """(seconds, prompt tokens, answer tokens) of a stretch of the trace, cut to what a small context holds."""
    with open(path) as file:
        rows = list(csv.reader(file))[1:]
    stamps = [datetime.datetime.fromisoformat(row[0][:26]).timestamp() for row in rows]
    begin = rng.randrange(max(1, len(rows) - 5000))
    return [(stamps[i] - stamps[begin], min(int(rows[i][1]), 3000), min(int(rows[i][2]), 300))
            for i in range(begin, len(rows))]


def trace(args, server):
    rng = random.Random(args.seed)
    rows = arrivals(args.csv, args.minutes, rng)
    # Capacity: what eight clients get of the same mix.
    sample = [[{**body(1000 + i * 8 + k, max(1, out), max(1, prompt // 2))} for k, (_, prompt, out) in enumerate(
        rows[i * 8:i * 8 + 8])] for i in range(8)]
    replies, seconds = load.closed_loop(server.port, sample)
    per_second = len(replies) / seconds
    scale = 0.7 * per_second / (len(rows[:500]) / max(1e-9, rows[min(499, len(rows) - 1)][0]))
    print(f"capacity {per_second:.2f} requests/s of this mix; arrivals at 70 % of it", flush=True)
    start, results, threads = time.monotonic(), [], []
    for index, (at, prompt, out) in enumerate(rows):
        due = at / scale
        if due > args.minutes * 60:
            break
        time.sleep(max(0.0, start + due - time.monotonic()))
        request = body(10_000 + index, max(1, out), max(1, prompt // 2))
        thread = threading.Thread(target=lambda b=request: results.append(load.complete(server.port, b)))
        thread.start()
        threads.append(thread)
    for thread in threads:
        thread.join()
    errors = [reply.error for reply in results if reply.error]
    firsts = [reply.first for reply in results if not reply.error]
    gaps = [gap for reply in results for gap in reply.gaps]
    print(f"{len(results)} requests in {args.minutes} minutes, {len(errors)} errors; first token p50 "
          f"{load.percentile(firsts, .5):.2f} s, p99 {load.percentile(firsts, .99):.2f} s; gap p50 "
          f"{load.percentile(gaps, .5) * 1e3:.1f} ms, p99 {load.percentile(gaps, .99) * 1e3:.0f} ms")
    for error in errors[:3]:
        print(error)
    return len(errors)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("drill", choices=["kill", "leave", "trace"])
    parser.add_argument("-m", "--model", default="smollm2")
    parser.add_argument("--cicada", default=os.path.join(host.ROOT, "build", "cicada"))
    parser.add_argument("-t", "--threads", type=int, default=os.cpu_count())
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--clients", type=int, nargs="*", default=[1, 8])
    parser.add_argument("--requests", type=int, default=1000)
    parser.add_argument("--csv", help="Azure's trace: TIMESTAMP,ContextTokens,GeneratedTokens")
    parser.add_argument("--minutes", type=float, default=30)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    random.seed(args.seed)
    if args.drill == "trace" and not args.csv:
        raise servers.ServerError("trace needs --csv")
    model = compare.model_path(args.model)
    # Clients that leave: with few pages, so that all have been used long before the end.
    few_pages = ["-c", "2048", "--kv-cache-memory-bytes", "128M"] if args.drill == "leave" else []
    with servers.ours(args.cicada, model, args.threads, ["--max-queue", "2000", *few_pages]) as server:
        failures = {"kill": kill, "leave": leave, "trace": trace}[args.drill](args, server)
    print(f"seed {args.seed}, {host.cpu_name()}, commit {host.commit()}, {datetime.date.today().isoformat()}: "
          + ("all as it should be" if failures == 0 else f"{failures} checks failed"))
    sys.exit(3 if failures else 0)


if __name__ == "__main__":
    try:
        main()
    except servers.ServerError as error:
        sys.exit(f"drills: {error}")
