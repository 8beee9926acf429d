import shutil
import subprocess
import unittest

from tree import TOOLS, TreeTest


@unittest.skipUnless(shutil.which("clang-format-16"), "clang-format-16 is not installed")
class CheckFormat(TreeTest):
    def status(self) -> int:
        shutil.copy(TOOLS.parent / ".clang-format", self.root)
        return subprocess.run([TOOLS / "check_format.sh", self.root], capture_output=True,
                              check=False).returncode

    def test_formatted_tree_passes(self):
        self.assertEqual(self.status(), 0)

    def test_other_formatting_fails(self):
        self.write("src/cicada/base/a b.cc", "int f( ) {return 1 ;}\n")
        self.assertNotEqual(self.status(), 0)


if __name__ == "__main__":
    unittest.main()
