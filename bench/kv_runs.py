"""Runs of `cicada` that are kept: each result is a line of a file at once, and what is there is not run again."""
import dataclasses
import datetime
import hashlib
import json
import os
import shlex

import engines


@dataclasses.dataclass(frozen=True)
class Setting:
    """What the cache is kept as: a name for tables, and the arguments that `cicada` is given."""
    name: str
    arguments: tuple

    @property
    def spelled(self):
        return shlex.join(self.arguments)


BASE = Setting("f16", ("--kv", "f16"))


def digest(path):
    """Twelve hexadecimal digits that tell one file from another."""
    hasher = hashlib.sha256()
    try:
        with open(path, "rb") as content:
            while block := content.read(1 << 20):
                hasher.update(block)
    except OSError as error:
        raise engines.BenchError(f"{path}: {error.strerror}") from None
    return hasher.hexdigest()[:12]


def digest_of(text):
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def _spell(key):
    return json.dumps(key, sort_keys=True)


class Store:
    """Results by key in a file of JSON lines. A line that a kill or a full disk cut short counts as not there."""

    def __init__(self, path):
        self.path = path
        self.results = {}
        try:
            with open(path, errors="replace") as lines:
                for line in lines:
                    self._read(line)
        except FileNotFoundError:
            pass
        except OSError as error:
            raise engines.BenchError(f"{path}: {error.strerror}") from None

    def _read(self, line):
        try:
            entry = json.loads(line)
            self.results[_spell(entry["key"])] = entry["result"]
        except (ValueError, KeyError, TypeError):
            pass

    def find(self, key):
        return self.results.get(_spell(key))

    def keep(self, key, result):
        line = json.dumps({"key": key, "result": result}) + "\n"
        try:
            os.makedirs(os.path.dirname(self.path), exist_ok=True)
            with open(self.path, "ab+") as out:
                if out.tell() > 0:
                    out.seek(-1, os.SEEK_END)
                    line = line if out.read(1) == b"\n" else "\n" + line
                out.write(line.encode())
        except OSError as error:
            raise engines.BenchError(f"{self.path}: {error.strerror}") from None
        self.results[_spell(key)] = result


class Runner:
    """One program, known by its digest or by a label, and where its results are kept. Answers do not hang on the number of
    threads, so that is no part of a result's key."""

    def __init__(self, program, folder, threads=None, label=None):
        self.program = program
        self.folder = folder
        self.threads = threads
        self.label = label or digest(program)
        self.only_kept = False  # nothing is run: what is not there stays out
        self.failures = []
        self._stores = {}
        self._force = None

    def _forcing(self, command):
        """`run` may refuse a type that costs a model too much: what it costs is what is measured here."""
        if command != "run":
            return []
        if self._force is None:
            self._force = ["--kv-force"] if "--kv-force" in engines.run([self.program, "run", "--help"]) else []
        return self._force

    def store(self, part):
        if part not in self._stores:
            self._stores[part] = Store(os.path.join(self.folder, part + ".jsonl"))
        return self._stores[part]

    def measure(self, part, item, setting, arguments, pick, words=None):
        """The result of one run, from the file or from a run now; None where the run failed, which is said at the end.
        `item` tells this run from the part's others; `pick` makes what is kept from what `cicada` printed."""
        key = {"program": self.label, "setting": setting.spelled, **item}
        found = self.store(part).find(key)
        if found is not None or self.only_kept:
            return found
        threads = [] if self.threads is None else ["-t", str(self.threads)]
        try:
            force = self._forcing(arguments[0])
            data = engines.run_json([self.program, *arguments, *threads, *setting.arguments, *force, "--json"], words)
            result = {**pick(data), "isa": data["isa"], "numerics_id": data["numerics_id"], "date": datetime.date.today().isoformat()}
        except engines.BenchError as error:
            self.failures.append(f"{part}, {setting.name}: {error}")
            return None
        except (KeyError, TypeError, IndexError) as error:
            self.failures.append(f"{part}, {setting.name}: cicada's JSON lacks {error}")
            return None
        self.store(part).keep(key, result)
        return result
