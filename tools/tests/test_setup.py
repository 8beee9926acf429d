import pathlib
import subprocess
import tempfile
import unittest

from tree import TOOLS

# Stand-ins for the commands that setup.sh asks and orders about. `installed` and `offered` are files
# with package names; every order is written to `log`.
FAKES = {
    "id": "echo ${FAKE_UID:-0}",
    "dpkg-query": 'shift 2; for p in "$@"; do grep -qx "$p" $STATE/installed && echo "$p installed";'
                  " done; true",
    "apt-get": 'echo "apt-get $*" >> $STATE/log; [ -z "$FAKE_APT_FAILS" ]',
    "apt-cache": 'grep -qx "$2" $STATE/offered && echo "  Candidate: 1.0" || echo "  Candidate: (none)"',
    "rustc": "echo rustc ${FAKE_RUST:-1.90.0}",
    "cargo": "true",
}
BUILD_PACKAGES = ("build-essential cmake ninja-build pkg-config python3 python3-pip libsimdjson-dev "
                  "libcli11-dev libfmt-dev libexpected-dev libutf8proc-dev libssl-dev libboost1.81-dev libgtest-dev "
                  "googletest ccache mold").split()


class Setup(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.state = pathlib.Path(folder.name)
        for name, body in FAKES.items():
            self.fake(name, body)
        for tool in ("bash", "grep", "sed", "sort", "head", "env", "printf"):
            found = subprocess.run(["which", tool], capture_output=True, text=True, check=True)
            (self.state / tool).symlink_to(found.stdout.strip())
        self.have("installed", BUILD_PACKAGES)
        self.have("offered", BUILD_PACKAGES)

    def fake(self, name: str, body: str) -> None:
        file = self.state / name
        file.write_text(f"#!/bin/sh\n{body}\n")
        file.chmod(0o755)

    def have(self, name: str, packages: list[str]) -> None:
        (self.state / name).write_text("\n".join(packages) + "\n")

    def run_setup(self, *groups: str, **environment: str) -> tuple[int, str]:
        result = subprocess.run(
            ["bash", TOOLS / "setup.sh", *groups], capture_output=True, text=True, check=False,
            env={"PATH": str(self.state), "STATE": str(self.state), "HOME": str(self.state),
                 **environment})
        return result.returncode, result.stdout + result.stderr

    def log(self) -> str:
        file = self.state / "log"
        return file.read_text() if file.exists() else ""

    def test_complete_machine_is_left_alone_without_a_word(self):
        self.assertEqual(self.run_setup("build"), (0, ""))
        self.assertEqual(self.log(), "")

    def test_root_installs_what_is_missing_and_says_so(self):
        self.have("installed", [p for p in BUILD_PACKAGES if p not in ("cmake", "libfmt-dev")])
        self.assertEqual(self.run_setup("build"), (0, "setup: installing cmake libfmt-dev\n"))
        self.assertIn("apt-get install -y -qq --no-install-recommends cmake libfmt-dev", self.log())

    def test_user_without_sudo_gets_one_sentence(self):
        self.have("installed", [p for p in BUILD_PACKAGES if p != "cmake"])
        status, output = self.run_setup("build", FAKE_UID="1000")
        self.assertEqual(status, 1)
        self.assertIn("ask its owner to run: apt-get install cmake", output)
        self.assertEqual(self.log(), "")

    def test_user_with_sudo_uses_it(self):
        self.have("installed", [p for p in BUILD_PACKAGES if p != "cmake"])
        self.fake("sudo", 'echo sudo >> $STATE/log; exec "$@"')
        self.assertEqual(self.run_setup("build", FAKE_UID="1000")[0], 0)
        self.assertIn("sudo\napt-get install", self.log())

    def test_root_never_uses_sudo(self):
        self.have("installed", [p for p in BUILD_PACKAGES if p != "cmake"])
        self.fake("sudo", "echo sudo >> $STATE/log; exit 1")
        self.assertEqual(self.run_setup("build")[0], 0)
        self.assertNotIn("sudo", self.log())

    def test_optional_package_that_is_not_offered_stops_nothing(self):
        self.have("installed", [p for p in BUILD_PACKAGES if p not in ("mold", "cmake")])
        self.have("offered", [p for p in BUILD_PACKAGES if p != "mold"])
        status, output = self.run_setup("build")
        self.assertEqual(status, 0)
        self.assertIn("going on without mold", output)
        self.assertTrue(self.log().endswith("--no-install-recommends cmake\n"), self.log())

    def test_only_optional_packages_missing_is_no_reason_to_ask_for_root(self):
        self.have("installed", [p for p in BUILD_PACKAGES if p != "ccache"])
        status, output = self.run_setup("build", FAKE_UID="1000")
        self.assertEqual(status, 0)
        self.assertIn("going on without ccache", output)

    def test_failing_apt_is_one_sentence(self):
        self.have("installed", [p for p in BUILD_PACKAGES if p != "cmake"])
        status, output = self.run_setup("build", FAKE_APT_FAILS="1")
        self.assertEqual(status, 1)
        self.assertIn("apt-get could not install cmake", output)

    def test_old_rust_is_replaced_by_the_packaged_one(self):
        self.fake("apt-get", 'echo "apt-get $*" >> $STATE/log; echo "#!/bin/sh\necho rustc 1.96.0" '
                             "> $STATE/rustc")
        status, output = self.run_setup("build", FAKE_RUST="1.63.0")
        self.assertEqual(status, 0, output)
        self.assertIn("Rust 1.63, at least 1.87 is needed", output)
        self.assertIn("rustc-web cargo-web", self.log())

    def test_rust_that_stays_old_is_one_sentence(self):
        status, output = self.run_setup("build", FAKE_RUST="1.9.0")
        self.assertEqual(status, 1)
        self.assertIn("at least 1.87 is needed", output)

    def test_other_machines_are_told_what_to_install(self):
        (self.state / "dpkg-query").unlink()
        status, output = self.run_setup("build")
        self.assertEqual(status, 1)
        self.assertIn("no Debian-like machine", output)
        self.assertEqual(self.run_setup("build", CICADA_SETUP="skip"), (0, ""))

    def test_unknown_group_is_refused(self):
        self.assertEqual(self.run_setup("biuld")[0], 1)


if __name__ == "__main__":
    unittest.main()
