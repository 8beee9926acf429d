import unittest

from tree import TreeTest

import check_size

EXCEPTIONS = "tools/size_exceptions.txt"


class CheckSize(TreeTest):
    def test_short_files_pass(self):
        self.assertEqual(check_size.check(self.root), ([], []))

    def test_long_file_warns_and_longer_fails(self):
        self.write("src/cicada/base/a.cc", "\n" * 500)
        self.write("src/cicada/base/b.cc", "\n" * 800)
        problems, warnings = check_size.check(self.root)
        self.assertEqual(warnings, ["src/cicada/base/a.cc: 500 lines, 500 are meant"])
        self.assertEqual(problems,
                         ["src/cicada/base/b.cc: 800 lines, fewer than 800 are allowed"])

    def test_exception_allows_only_so_much(self):
        self.write("src/cicada/base/b.cc", "\n" * 900)
        self.write(EXCEPTIONS, "# comment\nsrc/cicada/base/b.cc 900 one table\n")
        self.assertEqual(check_size.check(self.root), ([], []))
        self.write("src/cicada/base/b.cc", "\n" * 901)
        self.assertEqual(len(check_size.check(self.root)[0]), 1)

    def test_exception_needs_a_reason(self):
        self.write("src/cicada/base/b.cc", "\n" * 900)
        self.write(EXCEPTIONS, "src/cicada/base/b.cc 900\n")
        self.assertEqual(len(check_size.check(self.root)[0]), 2)

    def test_stale_exceptions_are_found(self):
        self.write(EXCEPTIONS, "src/cicada/base/result.h 900 was long once\nsrc/gone.cc 900 gone\n")
        self.assertEqual(check_size.check(self.root)[0],
                         ["src/cicada/base/result.h: 1 lines need no exception",
                          f"{EXCEPTIONS}: src/gone.cc does not exist"])


if __name__ == "__main__":
    unittest.main()
