import unittest

from tree import TreeTest

import check_headers


class CheckHeaders(TreeTest):
    def test_only_headers_that_no_source_includes_first_are_compiled(self):
        self.assertEqual(check_headers.headers_to_compile(self.root), ["cicada/base/result.h"])
        self.assertEqual(check_headers.check(self.root), [])

    def test_header_that_leans_on_its_includer_is_found(self):
        self.write("src/cicada/base/lean.h", "#pragma once\nstd::string name();\n")
        problems = check_headers.check(self.root)
        self.assertEqual(len(problems), 1)
        self.assertIn("src/cicada/base/lean.h: does not compile alone", problems[0])

    def test_missing_guard_is_found(self):
        self.write("src/cicada/base/twice.h", "struct Twice {};\n")
        self.assertEqual(len(check_headers.check(self.root)), 1)

    def test_first_include_of_a_source_proves_its_header(self):
        self.write("src/cicada/base/own.h", "#pragma once\n")
        self.write("src/cicada/base/own.cc", '// words\n\n#include "cicada/base/own.h"\n')
        self.assertNotIn("cicada/base/own.h", check_headers.headers_to_compile(self.root))


if __name__ == "__main__":
    unittest.main()
