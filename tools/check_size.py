#!/usr/bin/env python3
"""Warns at 500 lines a source file and fails at 800.

A file that must be longer stands in tools/size_exceptions.txt: path, maximum and reason, separated by
blanks. An exception without a reason, or for a file that does not need one, is a problem too.

usage: check_size.py [ROOT]
"""

import pathlib
import subprocess
import sys

WARN_LINES = 500
FAIL_LINES = 800
SUFFIXES = {".h", ".cc", ".inc", ".py", ".sh", ".rs", ".cmake", ".txt"}
EXCEPTIONS = "tools/size_exceptions.txt"
GENERATED = ("testdata/", "build/", "out/")


def source_paths(root: pathlib.Path) -> list[str]:
    """What git would commit; without git, what is there."""
    listing = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"], cwd=root,
        capture_output=True, text=True, check=False)
    if listing.returncode == 0:
        paths = listing.stdout.splitlines()
    else:
        paths = [str(path.relative_to(root)) for path in root.rglob("*") if path.is_file()]
    return sorted(path for path in paths
                  if pathlib.Path(path).suffix in SUFFIXES and not path.startswith(GENERATED)
                  and (root / path).is_file())


def read_exceptions(root: pathlib.Path) -> tuple[dict[str, int], list[str]]:
    limits: dict[str, int] = {}
    problems = []
    file = root / EXCEPTIONS
    for line in file.read_text().splitlines() if file.is_file() else []:
        if not line.strip() or line.startswith("#"):
            continue
        fields = line.split(maxsplit=2)
        if len(fields) < 3 or not fields[1].isdigit():
            problems.append(f"{EXCEPTIONS}: '{line}' is not PATH MAXIMUM REASON")
        else:
            limits[fields[0]] = int(fields[1])
    return limits, problems


def check(root: pathlib.Path) -> tuple[list[str], list[str]]:
    """Problems and warnings."""
    limits, problems = read_exceptions(root)
    warnings = []
    for path in source_paths(root):
        lines = len((root / path).read_bytes().splitlines())
        limit = limits.pop(path, FAIL_LINES)
        if limit != FAIL_LINES and lines < FAIL_LINES:
            problems.append(f"{path}: {lines} lines need no exception")
        elif lines > limit or (limit == FAIL_LINES and lines >= FAIL_LINES):
            problems.append(f"{path}: {lines} lines, fewer than {limit} are allowed")
        elif lines >= WARN_LINES and limit == FAIL_LINES:
            warnings.append(f"{path}: {lines} lines, {WARN_LINES} are meant")
    problems += [f"{EXCEPTIONS}: {path} does not exist" for path in limits]
    return problems, warnings


def main() -> int:
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ".").resolve()
    problems, warnings = check(root)
    for warning in warnings:
        print("warning:", warning)
    print("\n".join(problems) or "sizes: no file is too long")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
