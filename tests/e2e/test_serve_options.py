"""`cicada serve` as whoever starts it sees it: its own options and those of other servers, places to listen."""
import json
import os
import re
import unittest

import made_models
from serve_case import ServeCase

MIB = 1 << 20
ASKED_OPTIONS = ("--tensor-parallel-size", "1", "--pipeline-parallel-size", "1", "--dtype", "bfloat16",
                 "--gpu-memory-utilization", "0.95", "--max-num-seqs", "256", "--max-model-len", "8192", "--block-size",
                 "16", "--enforce-eager", "--enable-prefix-caching", "--log-level", "DEBUG")


class Options(ServeCase):
    def test_options_of_other_servers_start_it_with_a_notice_each(self):
        model = self.model("--n-ctx", "8192")
        server = self.serve("--model", model, *ASKED_OPTIONS)
        for option in ("--dtype", "--gpu-memory-utilization", "--enforce-eager"):
            self.assertEqual([option in line for line in server.lines].count(True), 1, server.lines)
        screen = [line.split(" ")[0] for line in server.lines if not line.startswith(("cicada:", "{"))]
        for what in ("model", "plan", "elided", "kernels", "memory", "address"):
            self.assertEqual(screen.count(what), 1, server.lines)
        self.assertLess(len(screen), 25)
        self.assertEqual(server.ask("GET", "/v1/models").json()["data"][0]["max_model_len"], 8192)
        secret = "averysecretword"
        for _, _, answer in self.answers(server, secret):
            self.assertEqual(answer.text, "efghijkl")
        server.signal()
        self.assertEqual(server.wait(), 0)
        begun = server.lines.index(next(line for line in server.lines if line.startswith("address")))
        events = [json.loads(line) for line in server.lines[begun + 1:]]
        self.assertEqual(len([event for event in events if event["event"] == "request" and event["status"] == 200]), 7)
        self.assertFalse([line for line in server.lines if secret in line or "efghijkl" in line])

    def test_sizes_that_are_not_there_are_refused(self):
        model = self.model()
        for option, value, part in (
                ("--tensor-parallel-size", "2", "1 is allowed"), ("--tensor-parallel-size", "0", "1 is allowed"),
                ("--pipeline-parallel-size", "4", "1 is allowed"), ("--max-num-seqs", "0", "--max-num-seqs"),
                ("--gpu-memory-utilization", "much", "much"), ("--log-level", "loud", "loud"),
                ("--kv-cache-memory-bytes", "much", "512M"), ("--port", "65536", "65536"),
                ("--max-model-len", "99999999999", "99999999999"),
                ("--ssl-certfile", "x.pem", "--ssl-keyfile"), ("--host", "no.such.host.test", "no.such.host.test")):
            more = () if option in ("--port", "--host") else ("--port", "0")
            self.refused("serve", "-m", model, *more, option, value, "--allow-open-bind", part=part)
        for how in ((), ("--in-process",)):  # what only the engine knows
            self.refused("serve", "-m", model, "--port", "0", "--block-size", "17", *how, part="--block-size")
            self.refused("serve", "-m", model, "--port", "0", "--kv-cache-memory-bytes", "1K", *how,
                         part="--kv-cache-memory-bytes: 1024 bytes for keys and values: one request of ")
            other = self.path("gpt.gguf", made_models.layered("no-such-architecture"))
            self.refused("serve", "-m", other, "--port", "0", *how, part="gpt.gguf")
        self.refused("serve", "-m", model, "--no-such-option")
        self.refused("serve")

    def test_memory_of_keys_and_values_may_be_bounded(self):
        server = self.serve("-m", self.model(), "--served-model-name", "chain", "-c", "1024",
                            "--kv-cache-memory-bytes", "1M")
        memory = next(line for line in server.lines if line.startswith("memory"))
        pages, tokens = map(int, re.search(r"\((\d+) pages of (\d+) tokens", memory).groups())
        self.assertGreater(pages * tokens, 1024)
        number, unit = re.search(r"keys and values ([\d.]+) (kB|MB)", memory).groups()
        held = float(number) * {"kB": 1e3, "MB": 1e6}[unit]
        self.assertLessEqual(held, 1.05 * MIB)
        self.assertGreater(held, 0.9 * MIB - held / pages)
        self.check_alive(server)

    def test_a_port_that_is_taken_is_said_to_be_so(self):
        server = self.chain_server()
        port = str(server.address[1])
        self.refused("serve", "-m", server.model, "--port", port, part=port)
        self.check_alive(server)

    def test_it_listens_on_a_unix_socket(self):
        model, path = self.model(), self.path("socket")
        for _ in range(2):  # the second finds the place free
            server = self.serve("-m", model, listen=("--uds", path))
            self.assertEqual(server.address, path)
            self.check_alive(server)
            server.signal()
            self.assertEqual(server.wait(), 0)
            self.assertFalse(os.path.exists(path))
        # What a killed server leaves is no hindrance; a socket that is in use is.
        server = self.serve("-m", model, listen=("--uds", path))
        server.kill()
        server = self.serve("-m", model, listen=("--uds", path))
        self.refused("serve", "-m", model, "--uds", path, part=path)
        self.check_alive(server)
        # A file that is no socket stays.
        file = self.path("file", b"precious")
        self.refused("serve", "-m", model, "--uds", file, part=file)
        with open(file, "rb") as kept:
            self.assertEqual(kept.read(), b"precious")

    def test_the_engine_may_run_within(self):
        server = self.chain_server(options=("--in-process",))
        self.assertIsNone(server.engine_pid())
        for _, _, answer in self.answers(server, "a"):
            self.assertEqual(answer.text, "bcdefghi")
        self.refused_by_all(server, "a" * 5000, part="5001")

    def test_metrics_may_be_off(self):
        server = self.chain_server(options=("--no-metrics",))
        self.check_refusal(server.ask("GET", "/metrics"), 404, "metrics")
        self.check_alive(server)


if __name__ == "__main__":
    unittest.main(verbosity=1)
