"""A small source tree in a temporary folder, for the tests of the checkers."""

import pathlib
import sys
import tempfile
import unittest

TOOLS = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(TOOLS))

MODULES = """
set(CICADA_MODULES
    base
    json  # above model
    model)
set(CICADA_EDGES_base "")
set(CICADA_EDGES_json base)
set(CICADA_EDGES_model base json)
"""


class TreeTest(unittest.TestCase):
    """Each test gets a tree with three modules and no fault."""

    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        self.write("cmake/modules.cmake", MODULES)
        self.write("src/cicada/base/result.h", "#pragma once\n")
        self.write("src/cicada/json/parse.h", '#pragma once\n#include "cicada/base/result.h"\n')
        self.write("src/cicada/json/parse.cc", '#include "cicada/json/parse.h"\n')
        self.write("src/cicada/model/model.cc", '#include "cicada/json/parse.h"\n')

    def write(self, path: str, text: str) -> None:
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
