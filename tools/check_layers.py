#!/usr/bin/env python3
"""Compares every include with the module table of cmake/modules.cmake.

Reports: a folder under src/cicada that is not declared, an edge to a module that is not declared
above, an include of a module that is not among the includer's edges, a project header that is not
written "cicada/<module>/...", and an include of a header that does not exist.

usage: check_layers.py [ROOT]
"""

import pathlib
import re
import sys

import modules

INCLUDE = re.compile(r'^\s*#\s*include\s*"([^"]+)"', re.MULTILINE)
# The C header of the Rust library lies outside src/; only these modules go through that door.
BRIDGE_HEADER = "cicada_bridge.h"
BRIDGE_USERS = {"chat", "constraints"}
# A program's main() may only reach for these.
APP_MODULES = {"base", "platform", "cli"}


def table_problems(table: dict[str, list[str]], root: pathlib.Path) -> list[str]:
    problems = []
    above: set[str] = set()
    for name, edges in table.items():
        for edge in edges:
            if edge not in above:
                problems.append(f"cmake/modules.cmake: {name} names {edge}, not declared above it")
        above.add(name)
    for folder in sorted((root / "src/cicada").iterdir()):
        if folder.is_dir() and folder.name not in table and any(folder.rglob("*.*")):
            problems.append(f"src/cicada/{folder.name}: not declared in cmake/modules.cmake")
    return problems


def include_problems(path: pathlib.Path, allowed: set[str], module: str,
                     root: pathlib.Path) -> list[str]:
    problems = []
    where = path.relative_to(root)
    for header in INCLUDE.findall(path.read_text(errors="replace")):
        if header == BRIDGE_HEADER:
            if module not in BRIDGE_USERS:
                problems.append(f"{where}: {module} may not include {header}")
            continue
        parts = header.split("/")
        if parts[0] != "cicada" or len(parts) < 3:
            problems.append(f'{where}: "{header}" is to be written "cicada/<module>/..."')
        elif parts[1] not in allowed:
            problems.append(f"{where}: {module} may not include {parts[1]} ({header})")
        elif not (root / "src" / header).is_file():
            problems.append(f"{where}: {header} does not exist")
    return problems


def check(root: pathlib.Path) -> list[str]:
    table = modules.read(root)
    problems = table_problems(table, root)
    for path in modules.source_files(root, ".h", ".cc", ".inc"):
        parts = path.relative_to(root / "src").parts
        if parts[0] == "apps":
            problems += include_problems(path, APP_MODULES, "apps", root)
        elif len(parts) > 2 and parts[1] in table:
            module = parts[1]
            problems += include_problems(path, {module, *table[module]}, module, root)
    return problems


def main() -> int:
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ".").resolve()
    problems = check(root)
    print("\n".join(problems) or "layers: every include follows cmake/modules.cmake")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
