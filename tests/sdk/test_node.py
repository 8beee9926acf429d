"""Runs sdk_case.mjs: the vendor's TypeScript client."""
import os
import shutil
import subprocess

import pytest

HERE = os.path.dirname(os.path.abspath(__file__))


def test_typescript_client(alphabet, calling, real):
    folder = os.environ.get("CICADA_SDK_NODE", "")
    if not shutil.which("node") or not os.path.isdir(os.path.join(folder, "node_modules")):
        pytest.skip("no node, or its packages are not installed")
    done = subprocess.run(["node", "--test-reporter=tap", os.path.join(HERE, "sdk_case.mjs"), folder, alphabet.url, calling.url,
                           real.url], capture_output=True, text=True, timeout=300)
    print(done.stdout[-4000:], done.stderr[-2000:])
    assert done.returncode == 0
    assert "# pass 7\n" in done.stdout
