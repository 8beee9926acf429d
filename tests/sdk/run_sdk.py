#!/usr/bin/env python3
"""`make test-sdk`: the vendors' own clients and tests against a live server.

  run_sdk.py BUILD_FOLDER [STEP...]     steps: install, suite, sse, vendor, fuzz; all where none is named

Installs the newest clients into BUILD_FOLDER/sdk, by pip's and npm's own configuration, and prints their versions;
where a registry cannot be reached, what is there already is used and said. Status 1 when a step fails.
"""
import glob
import os
import shutil
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
CLIENTS = ["anthropic", "openai"]
# What our suite and the vendors' tests need beside the clients.
TOOLS = ["pytest", "pytest-asyncio", "pytest-xdist", "respx", "inline-snapshot", "http-snapshot[httpx]==0.1.9", "dirty-equals",
         "time-machine", "importlib-metadata", "rich", "hypothesis", "opentelemetry-sdk", "aiohttp", "Pillow",
         "azure-identity", "botocore"]
NODE_CLIENT = "@anthropic-ai/sdk"


class Runner:
    def __init__(self, build):
        self.folder = os.path.join(os.path.abspath(build), "sdk")
        self.venv = os.path.join(self.folder, "venv")
        self.python = os.path.join(self.venv, "bin", "python")
        self.dist = os.path.join(self.folder, "dist")
        self.node = os.path.join(self.folder, "node")
        self.env = {**os.environ, "CICADA_PROGRAM": os.path.join(os.path.abspath(build), "cicada"), "CICADA_SDK_NODE": self.node,
                    "PYTHONDONTWRITEBYTECODE": "1"}

    def call(self, *command):
        return subprocess.run(command, env=self.env).returncode == 0

    def install(self):
        os.makedirs(self.node, exist_ok=True)
        if not os.path.exists(self.python) and not self.call(sys.executable, "-m", "venv", self.venv):
            return False
        if not self.call(self.python, "-m", "pip", "install", "--quiet", "--upgrade", *CLIENTS, *TOOLS):
            print("test-sdk: pip failed; going on with what is installed")
        for name in CLIENTS:
            self.download(name)
        if shutil.which("npm"):
            with open(os.path.join(self.node, "package.json"), "w") as out:
                out.write('{"private": true}\n')
            if not self.call("npm", "install", "--silent", "--no-audit", "--no-fund", "--prefix", self.node,
                             NODE_CLIENT + "@latest"):
                print("test-sdk: npm failed; going on with what is installed")
        else:
            print("test-sdk: no npm here: the TypeScript client is skipped")
        self.print_versions()
        return self.call(self.python, "-c", "import anthropic, openai, pytest")

    def download(self, name):
        """The one source distribution, of the version that is installed."""
        version = self.version(name)
        if os.path.exists(os.path.join(self.dist, f"{name}-{version}.tar.gz")):
            return
        for old in glob.glob(os.path.join(self.dist, name + "-*")):
            shutil.rmtree(old) if os.path.isdir(old) else os.remove(old)
        self.call(self.python, "-m", "pip", "download", "--quiet", "--no-deps", "--no-binary", ":all:", "--dest", self.dist,
                  f"{name}=={version}")

    def version(self, name):
        code = f"import importlib.metadata as m; print(m.version('{name}'))"
        return subprocess.run([self.python, "-c", code], capture_output=True, text=True).stdout.strip() or "missing"

    def print_versions(self):
        words = [f"{name} {self.version(name)}" for name in (*CLIENTS, "pytest")]
        manifest = os.path.join(self.node, "node_modules", NODE_CLIENT, "package.json")
        if os.path.exists(manifest):
            with open(manifest) as text:
                words.append(f"{NODE_CLIENT} " + next(line for line in text if '"version"' in line).split('"')[3])
        print("test-sdk: " + ", ".join(words), flush=True)

    def suite(self):
        return self.call(self.python, "-m", "pytest", "-q", "--tb=short", "-rs", "-p", "no:cacheprovider", "-W", "ignore", HERE)

    def sse(self):
        sdists = glob.glob(os.path.join(self.dist, "anthropic-*.tar.gz"))
        return self.call(self.python, os.path.join(HERE, "check_sse.py"), *sdists)

    def vendor(self):
        return self.call(self.python, os.path.join(HERE, "run_vendor.py"), self.python, self.dist)

    def fuzz(self):
        return self.call(self.python, os.path.join(HERE, "fuzz_api.py"))


def main():
    runner = Runner(sys.argv[1])
    steps = sys.argv[2:] or ["install", "suite", "sse", "vendor", "fuzz"]
    failed = []
    for step in steps:
        begin = time.monotonic()
        is_good = getattr(runner, step)()
        print(f"test-sdk: {step} {'passed' if is_good else 'FAILED'} in {time.monotonic() - begin:.0f} s", flush=True)
        if not is_good:
            failed.append(step)
    sys.exit(f"test-sdk: failed: {', '.join(failed)}" if failed else 0)


if __name__ == "__main__":
    main()
