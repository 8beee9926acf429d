#!/usr/bin/env python3
"""Looks into the compiled objects of src/cicada for what must not be there.

Reports: printing, ending the process and reading the environment outside their homes; sockets
outside platform; throwing in kernels; weak functions in ISA objects (the linker could choose their
copy of a shared template for machines that cannot run it; shared constants do no harm); vector instructions beyond SSE in every
other object. Tests and benchmarks are not looked at.

usage: check_objects.py BUILD [ROOT]      status 77: nothing to judge in this kind of build
"""

import concurrent.futures
import dataclasses
import pathlib
import re
import subprocess
import sys

import modules

SKIPPED = 77
WORKERS = 2


@dataclasses.dataclass(frozen=True)
class Rule:
    what: str
    symbols: re.Pattern  # matches a whole undefined symbol
    homes: tuple[str, ...] = ()  # where it is allowed, as prefixes of the path below src/
    only: tuple[str, ...] = ("cicada/",)  # where the rule applies


PROGRAM = ("cicada/cli/", "apps/")
RULES = (
    Rule("prints",
         re.compile(r"v?f?printf|__v?f?printf_chk|f?puts|f?putc|putchar|perror|"
                    r"_ZSt4c(out|err|log)|_ZN3fmt\d+v\d+(6vprint|5print).*"),
         PROGRAM + ("cicada/base/check.cc",)),
    Rule("ends the process", re.compile(r"abort|exit|_exit|_Exit|quick_exit"),
         PROGRAM + ("cicada/base/check.cc", "cicada/platform/launch.cc",
                    "cicada/platform/interrupt.cc")),
    Rule("reads the environment", re.compile(r"(secure_)?getenv|environ|__environ"),
         # The option parser is all inline and can read options from the environment; ours do not.
         ("cicada/platform/env.cc", "cicada/cli/main.cc")),
    Rule("uses sockets", re.compile(r"socket(pair)?|connect|bind|listen|accept4?|getaddrinfo"),
         # The compiled half of Asio.
         ("cicada/platform/", "cicada/http/boost_src.cc")),
    Rule("throws", re.compile(r"__cxa_throw|__cxa_rethrow|__cxa_allocate_exception"),
         only=("cicada/kernels/",)),
)

# The scalar level is for every machine, so it is judged like any other object.
IS_ISA_FILE = re.compile(r"(^|[/_])x86_(?!scalar)[a-z0-9_]+\.cc$")
WIDE = re.compile(r"\t(v[a-z0-9]+)\s.*%[xyz]mm\d")


def run(*command: str) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def objects(build: pathlib.Path, root: pathlib.Path) -> dict[str, pathlib.Path]:
    """Source path below src/ -> its object. Objects whose source is gone are left out."""
    found = {}
    for path in (build / "CMakeFiles").rglob("*.o"):
        folder, _, source = path.relative_to(build / "CMakeFiles").as_posix().partition(".dir/src/")
        source = source.removesuffix(".o")
        if source and not folder.endswith("_test") and (root / "src" / source).is_file():
            if not re.search(r"_(test|bench|fuzz)\.cc$", source):
                found[source] = path
    return found


def symbol_problems(source: str, symbols: str) -> list[str]:
    """Judges the output of nm for one object."""
    problems = []
    for line in symbols.splitlines():
        kind, name = line.split()[-2:] if len(line.split()) > 1 else ("", "")
        name = name.split("@")[0]
        if kind == "U":
            for rule in RULES:
                if (rule.symbols.fullmatch(name) and source.startswith(rule.only)
                        and not source.startswith(rule.homes or ("\0",))):
                    problems.append(f"src/{source}: {rule.what} ({name})")
        elif kind == "W" and len(line.split()) == 3 and IS_ISA_FILE.search(source):
            problems.append(f"src/{source}: weak function {name} in an ISA object")
    return problems


def wide_problems(source: str, disassembly: str) -> list[str]:
    """Judges the output of objdump for one object; one line a file is enough."""
    if IS_ISA_FILE.search(source):
        return []
    match = WIDE.search(disassembly)
    return [f"src/{source}: vector instruction {match.group(1)} outside ISA files"] if match else []


def object_problems(item: tuple[str, pathlib.Path]) -> list[str]:
    source, path = item
    return (symbol_problems(source, run("nm", str(path))) +
            wide_problems(source, run("objdump", "-d", "--no-show-raw-insn", str(path))))


def missing_objects(found: dict[str, pathlib.Path], root: pathlib.Path) -> list[str]:
    """Modules that have sources but no object: a check of nothing must not pass."""
    missing = []
    for module in modules.read(root):
        sources = [str(path.relative_to(root / "src"))
                   for path in (root / "src/cicada" / module).rglob("*.cc")]
        own = [s for s in sources if not re.search(r"_(test|bench|fuzz)\.cc$", s)]
        if own and not any(source in found for source in own):
            missing.append(f"src/cicada/{module}: not built, build everything first")
    return missing


def main() -> int:
    build = pathlib.Path(sys.argv[1]).resolve()
    root = pathlib.Path(sys.argv[2] if len(sys.argv) > 2 else ".").resolve()
    cache = (build / "CMakeCache.txt").read_text()
    if not re.search(r"^CMAKE_BUILD_TYPE:\w+=Release$", cache, re.MULTILINE) or re.search(
            r"^CICADA_SANITIZE:\w+=.", cache, re.MULTILINE):
        print("skipped: only a release build without sanitizers is judged")
        return SKIPPED
    found = objects(build, root)
    problems = missing_objects(found, root)
    with concurrent.futures.ThreadPoolExecutor(WORKERS) as pool:
        for result in pool.map(object_problems, sorted(found.items())):
            problems += result
    print("\n".join(problems) or f"objects: {len(found)} looked at, nothing found")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
