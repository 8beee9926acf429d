import os
import pathlib
import subprocess
import unittest

from tree import TreeTest

import check_objects


class CheckObjects(TreeTest):
    """Compiles real objects, so that the names that compilers and libraries use are the true ones."""

    def problems(self, source: str, text: str, *flags: str) -> str:
        self.write(f"src/{source}", text)
        target = self.root / f"build/CMakeFiles/cicada_x.dir/src/{source}.o"
        target.parent.mkdir(parents=True, exist_ok=True)
        subprocess.run([os.environ.get("CXX", "g++"), "-std=c++20", "-O2", *flags, "-c",
                        str(self.root / "src" / source), "-o", str(target)], check=True)
        found = check_objects.objects(self.root / "build", self.root)
        self.assertEqual(list(found), [source])
        return "\n".join(check_objects.object_problems((source, found[source])))

    def test_harmless_object_passes(self):
        self.assertEqual(self.problems("cicada/json/a.cc", "int f(int x) { return x + 1; }"), "")

    def test_printing_is_found_outside_its_home(self):
        text = '#include <cstdio>\nvoid f(int x) { std::printf("%d", x); }'
        self.assertIn("prints (printf)", self.problems("cicada/json/a.cc", text))

    def test_printing_is_allowed_in_commands(self):
        text = '#include <cstdio>\nvoid f(int x) { std::printf("%d", x); }'
        self.assertEqual(self.problems("cicada/cli/a.cc", text), "")

    def test_streams_and_fmt_are_printing_too(self):
        text = '#include <iostream>\nvoid f(int x) { std::cerr << x; }'
        self.assertIn("prints", self.problems("cicada/json/a.cc", text))

    def test_fmt_is_printing_too(self):
        text = '#include <fmt/format.h>\nvoid f(int x) { fmt::print(stderr, "{}", x); }'
        self.assertIn("prints", self.problems("cicada/json/a.cc", text))

    def test_ending_the_process_is_found(self):
        text = "#include <cstdlib>\nvoid f() { std::abort(); }\nvoid g() { std::exit(1); }"
        problems = self.problems("cicada/model/a.cc", text)
        self.assertIn("ends the process (abort)", problems)
        self.assertIn("ends the process (exit)", problems)

    def test_reading_the_environment_is_found(self):
        text = '#include <cstdlib>\nchar* f() { return std::getenv("HOME"); }'
        self.assertIn("reads the environment", self.problems("cicada/model/a.cc", text))

    def test_sockets_are_found_outside_platform(self):
        text = "#include <sys/socket.h>\nint f() { return socket(AF_UNIX, SOCK_STREAM, 0); }"
        self.assertIn("uses sockets", self.problems("cicada/model/a.cc", text))

    def test_throwing_is_found_in_kernels(self):
        self.assertIn("throws", self.problems("cicada/kernels/a.cc", "void f() { throw 1; }"))

    def test_throwing_is_not_this_checks_business_elsewhere(self):
        self.assertEqual(self.problems("cicada/json/a.cc", "void f() { throw 1; }"), "")

    def test_weak_function_in_an_isa_object_is_found(self):
        text = ("template <class T> __attribute__((noinline)) T twice(T x) { return x + x; }\n"
                "int f(int x) { return twice(x); }")
        source = "cicada/kernels/x86_avx2.cc"
        self.assertIn("weak function", self.problems(source, text, "-mavx2"))

    def test_shared_constant_in_an_isa_object_is_harmless(self):
        text = "inline constexpr int kTable[] = {1, 2};\nconst int* f() { return kTable; }"
        self.assertEqual(self.problems("cicada/kernels/x86_avx2.cc", text, "-mavx2"), "")

    def test_scalar_level_is_no_isa_file(self):
        text = "void f(float* x) { for (int i = 0; i < 64; ++i) x[i] *= 3; }"
        source = "cicada/kernels/x86_scalar.cc"
        self.assertIn("vector instruction", self.problems(source, text, "-O3", "-mavx2"))

    def test_anonymous_namespace_keeps_an_isa_object_clean(self):
        text = ("namespace { template <class T> __attribute__((noinline)) T twice(T x) "
                "{ return x + x; } }\nint f(int x) { return twice(x); }")
        self.assertEqual(self.problems("cicada/kernels/x86_avx2.cc", text, "-mavx2"), "")

    def test_wide_instructions_are_found_outside_isa_files(self):
        text = "void f(float* x) { for (int i = 0; i < 64; ++i) x[i] *= 3; }"
        self.assertIn("vector instruction", self.problems("cicada/tensor/a.cc", text, "-O3", "-mavx2"))

    def test_wide_instructions_are_expected_in_isa_files(self):
        text = "void f(float* x) { for (int i = 0; i < 64; ++i) x[i] *= 3; }"
        source = "cicada/kernels/x86_avx2.cc"
        self.assertEqual(self.problems(source, text, "-O3", "-mavx2"), "")

    def test_module_that_was_not_built_is_reported(self):
        missing = check_objects.missing_objects({}, self.root)
        self.assertEqual(missing, ["src/cicada/json: not built, build everything first",
                                   "src/cicada/model: not built, build everything first"])

    def test_objects_of_tests_and_of_removed_sources_are_left_out(self):
        for name in ("cicada_json_test.dir/src/cicada/json/parse.cc.o",
                     "cicada_json.dir/src/cicada/json/gone.cc.o",
                     "cicada_json.dir/src/cicada/json/parse.cc.o"):
            self.write(f"build/CMakeFiles/{name}", "")
        found = check_objects.objects(pathlib.Path(self.root / "build"), self.root)
        self.assertEqual(list(found), ["cicada/json/parse.cc"])


if __name__ == "__main__":
    unittest.main()
