"""The module table of cmake/modules.cmake, as the checkers read it."""

import pathlib
import re


def read(root: pathlib.Path) -> dict[str, list[str]]:
    """Module -> modules it may include, in the order of declaration."""
    text = re.sub(r"#.*", "", (root / "cmake/modules.cmake").read_text())
    values = {
        name: body.replace('"', "").split()
        for name, body in re.findall(r"set\(\s*(CICADA_\w+)([^)]*)\)", text)
    }
    return {name: values.get(f"CICADA_EDGES_{name}", []) for name in values["CICADA_MODULES"]}


def source_files(root: pathlib.Path, *suffixes: str) -> list[pathlib.Path]:
    """Files under src/ with one of the suffixes, sorted."""
    return sorted(path for path in (root / "src").rglob("*") if path.suffix in suffixes)
