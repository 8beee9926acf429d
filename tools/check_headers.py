#!/usr/bin/env python3
"""Every header compiles alone.

A header that some source file includes first is proven by the build of that source; the others get
a translation unit of their own here.

usage: check_headers.py [ROOT]       CXX: the compiler (default g++)
"""

import concurrent.futures
import os
import pathlib
import re
import subprocess
import sys
import tempfile

import modules

FIRST_INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]', re.MULTILINE)
FLAGS = ["-std=c++20", "-fsyntax-only", "-Wall", "-Wextra", "-Wno-psabi", "-Werror"]
WORKERS = 2


def proven_by_build(root: pathlib.Path) -> set[str]:
    """Headers that are the first include of some source that the build compiles."""
    proven = set()
    for path in modules.source_files(root, ".cc"):
        first = FIRST_INCLUDE.search(path.read_text(errors="replace"))
        if first and first.group(1) == '"':
            proven.add(first.group(2))
    return proven


def headers_to_compile(root: pathlib.Path) -> list[str]:
    proven = proven_by_build(root)
    headers = [str(path.relative_to(root / "src")) for path in modules.source_files(root, ".h")]
    # A body is a piece of the ISA files that include it, with flags only those have.
    return [h for h in headers if h not in proven and not h.endswith("-inl.h")]


def compile_problem(root: pathlib.Path, header: str) -> str:
    """Empty when the header compiles; else what the compiler said first."""
    with tempfile.TemporaryDirectory() as folder:
        unit = pathlib.Path(folder) / "alone.cc"
        # Twice, so that a missing #pragma once shows.
        unit.write_text(f'#include "{header}"\n#include "{header}"\n')
        result = subprocess.run(
            [os.environ.get("CXX", "g++"), *FLAGS, f"-I{root}/src", f"-I{root}/bridge/include",
             str(unit)], capture_output=True, text=True, check=False)
    if result.returncode == 0:
        return ""
    errors = [line for line in result.stderr.splitlines() if "error" in line]
    return f"src/{header}: does not compile alone: {(errors or ['no reason given'])[0]}"


def check(root: pathlib.Path) -> list[str]:
    with concurrent.futures.ThreadPoolExecutor(WORKERS) as pool:
        results = pool.map(lambda header: compile_problem(root, header), headers_to_compile(root))
        return [problem for problem in results if problem]


def main() -> int:
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ".").resolve()
    problems = check(root)
    print("\n".join(problems) or "headers: each compiles alone")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
