#!/usr/bin/env python3
"""Runs the vendors' own tests, from their source distributions, against a live server.

  run_vendor.py PYTHON FOLDER      FOLDER holds anthropic-*.tar.gz and openai-*.tar.gz, and gets what they hold

Twice: as they are, where a test may fail only because of a field that is refused by design (these are counted apart),
and without those fields, where none may fail.
"""
import collections
import glob
import os
import re
import subprocess
import sys
import tarfile
import xml.etree.ElementTree

from live_server import LiveServer

HERE = os.path.dirname(os.path.abspath(__file__))
# Fields of their requests with all parameters that cannot be met, or hold what makes no sense (a token "foo", an
# answer of no tokens), and the words in which they are refused.
REFUSED = {
    "output_config": "output_config.format: answers of a given form are not available yet",
    "thread": "thread: this server holds no threads",
    "mcp_servers": "mcp_servers: this server connects to no others",
    "logit_bias": 'logit_bias: found the key "foo"',
    "max_tokens": "max_tokens: found 0",
    "max_completion_tokens": "max_completion_tokens: found 0",
    "echo": "logprobs: found with echo",
    "suffix": "suffix: is not available on this server",
    "web_search_options": "web_search_options: is not available on this server",
}
# The names that their tests use. Batches and embeddings are not served yet.
NAMES = ["chain", "claude-*", "model_id", "after_id", "before_id", "gpt-6-astra", "gpt-3.5-turbo-instruct", "model"]
SUITES = [
    ("anthropic", "", ["test_messages.py", "test_models.py", "beta/test_messages.py", "beta/test_models.py"], []),
    ("openai", "/v1", ["chat/test_completions.py", "test_completions.py", "test_models.py"],
     ["-k", "create or (test_models and not delete)"]),
]


def unpacked(folder, name):
    (archive,) = glob.glob(os.path.join(folder, name + "-*.tar.gz"))
    with tarfile.open(archive) as files:
        files.extractall(folder, filter="data")
    return archive[:-len(".tar.gz")]


def run(python, folder, name, url, files, more, leaves_out):
    """{outcome or reason: number of tests}"""
    report = os.path.join(folder, "report.xml")
    env = {**os.environ, "TEST_API_BASE_URL": url, "PYTHONPATH": HERE, "PYTHONDONTWRITEBYTECODE": "1"}
    if leaves_out:
        env["CICADA_SDK_LEAVE_OUT"] = name
    subprocess.run([python, "-m", "pytest", "-q", "-n", "1", "-p", "vendor_plugin", f"--junitxml={report}", *more,
                    *["tests/api_resources/" + file for file in files]],
                   cwd=folder, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=900)
    counts = collections.Counter()
    for case in xml.etree.ElementTree.parse(report).iter("testcase"):
        failure = next((child for child in case if child.tag in ("failure", "error")), None)
        if failure is None:
            counts["skipped" if case.find("skipped") is not None else "passed"] += 1
            continue
        text = failure.get("message", "") + (failure.text or "")
        reason = next((field for field, words in REFUSED.items() if words in text), None)
        if reason is None or leaves_out:
            print(f"  {case.get('name')}: {re.sub(chr(10), ' ', failure.get('message', ''))[:300]}")
            reason = None
        counts[f"refused by design: {reason}" if reason else "failed"] += 1
    return counts


def main():
    python, folder = sys.argv[1:]
    failed = False
    # Short answers: the tests are about the shape.
    with LiveServer(*[word for name in NAMES for word in ("--alias", name)], pieces=("o", "k", "</s>")) as server:
        for name, path, files, more in SUITES:
            suite = unpacked(folder, name)
            for leaves_out in (False, True):
                counts = run(python, suite, name, server.url + path, files, more, leaves_out)
                words = ", ".join(f"{number} {outcome}" for outcome, number in sorted(counts.items()))
                print(f"vendor: {os.path.basename(suite)}{' without those fields' if leaves_out else ''}: {words}", flush=True)
                failed = failed or counts["failed"] > 0 or counts["passed"] == 0
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
