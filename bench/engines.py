"""Running one workload on one engine: `cicada bench`, and any binary with llama-bench's interface."""
import dataclasses
import json
import os
import shlex
import subprocess
import tempfile

TIME_LIMIT_S = 1800

# An answer that says again what the prompt says, as edited code and summaries do: what drafts are for.
REPEATING_PROMPT = ("The members of the club, with the year in which each of them joined:\n" + "".join(
    f"- {name}, {year}\n" for name, year in (
        ("Anna Lindqvist", 1997), ("Bernard Okafor", 2003), ("Chiyo Tanaka", 1988), ("Dmitri Volkov", 2011),
        ("Elena Marchetti", 1999), ("Farid Haddad", 2016), ("Greta Hoffmann", 2008), ("Henri Dubois", 1994))) +
    "The same list again, word for word:\n- Anna")


class BenchError(Exception):
    """A sentence for the user."""


@dataclasses.dataclass(frozen=True)
class Workload:
    kind: str  # "prefill", "decode" or "answer"
    tokens: int
    sequences: int = 1
    panels: bool = False  # kept in memory
    drafts: bool = False

    @property
    def name(self):
        many = f", {self.sequences} sequences" if self.sequences > 1 else ""
        return f"{self.kind} {self.tokens}{many}{', resident panels' * self.panels}{', drafts' * self.drafts}"

    @property
    def has_peers(self):
        """Peers take part in what is measured without shortcuts."""
        return self.kind != "answer" and not self.panels


def run(command, with_errors=False, words=None):
    """What a command prints on standard output, or on both; `words` are what it reads."""
    try:
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, timeout=TIME_LIMIT_S, errors="replace", input=words,
                              cwd=tempfile.gettempdir(),  # some peers leave a log where they run
                              stderr=subprocess.STDOUT if with_errors else subprocess.PIPE)
    except OSError as error:
        raise BenchError(f"{command[0]}: {error.strerror}") from None
    except subprocess.TimeoutExpired:
        raise BenchError(f"{shlex.join(command)} took more than {TIME_LIMIT_S} s") from None
    if done.returncode != 0:
        raise BenchError(f"{shlex.join(command)} ended with status {done.returncode}: "
                         f"{(done.stderr or done.stdout).strip()[-300:]}")
    return done.stdout


def run_json(command, words=None):
    text = run(command, words=words)
    try:
        return json.loads(text)
    except ValueError:
        raise BenchError(f"{shlex.join(command)} printed no JSON: {text.strip()[:100]!r}") from None


class Cicada:
    name = "Cicada"

    def __init__(self, program, threads):
        self.program = program
        self.threads = threads

    def measure(self, model, workload):
        """Tokens per second of one run, and everything else that `cicada bench --json` says."""
        if workload.kind == "answer":
            data = run_json([self.program, "run", "-m", model, "-t", str(self.threads), "--raw", "-p", REPEATING_PROMPT,
                             "-n", str(workload.tokens), "--json", *([] if workload.drafts else ["--no-draft"])])
            return data["decode_tokens_per_second"], data
        prefill = workload.tokens if workload.kind == "prefill" else 0
        decode = workload.tokens if workload.kind == "decode" else 0
        data = run_json([self.program, "bench", "-m", model, "-t", str(self.threads), "-p", str(prefill),
                         "-n", str(decode), "-b", str(workload.sequences), "-r", "1", "--json",
                         *(["--resident-panels"] if workload.panels else [])])
        return data[workload.kind]["median"], data

    def limits(self):
        return run_json([self.program, "bench", "--machine", "-t", str(self.threads), "--json"])["machine"]


class Peer:
    """A llama-bench, and the llama-batched-bench beside it for several sequences at once."""

    def __init__(self, name, program, threads):
        self.name = name
        self.program = program
        self.batched = os.path.join(os.path.dirname(program), "llama-batched-bench")
        self.threads = threads
        self.build = "unknown"
        self.settings = settings_of(program)

    def measure(self, model, workload, setting):
        if workload.sequences > 1:
            return self._measure_batch(model, workload, setting)
        counts = {"prefill": 0, "decode": 0, workload.kind: workload.tokens}
        rows = run_json([self.program, "-m", model, "-t", str(self.threads), "-p", str(counts["prefill"]),
                         "-n", str(counts["decode"]), "-r", "1", "-o", "json", *shlex.split(setting)])
        for row in rows:
            if (row["n_prompt"], row["n_gen"]) == (counts["prefill"], counts["decode"]):
                self.build = row.get("build_commit", self.build)
                return row["avg_ts"]
        raise BenchError(f"{self.program} {setting}: no row for {workload.name}")

    def _measure_batch(self, model, workload, setting):
        # A prompt of one token each, so that the decode is of an empty cache, as with one sequence.
        text = run([self.batched, "-m", model, "-t", str(self.threads), "-c", "16384", "-b", "2048", "-ub", "512",
                    "-npp", "1", "-ntg", str(workload.tokens), "-npl", str(workload.sequences),
                    *batched_setting(setting)], with_errors=True)  # ik_llama.cpp's table goes to standard error
        return batched_rate(text, workload)


def settings_of(program):
    """The settings worth trying, told by the options that the program's help names."""
    try:
        done = subprocess.run([program, "--help"], capture_output=True, text=True, timeout=60)
    except OSError as error:
        raise BenchError(f"{program}: {error.strerror}") from None
    text = done.stdout + done.stderr
    if "--repack" in text:
        other = ["--repack 1", "--repack 0"]
    elif "-rtr" in text:
        other = ["-rtr 0", "-rtr 1"]
    else:
        other = [""]
    return [f"-fa {attention} {option}".strip() for attention in (0, 1) for option in other]


def batched_setting(setting):
    """llama-batched-bench spells llama-bench's settings in its own way."""
    words = setting.split()
    result = []
    for option, value in zip(words[::2], words[1::2]):
        if option == "--repack" and value == "0":
            result.append("--no-repack")
        elif option == "-rtr" and value == "1":
            result.append("-rtr")
        elif option == "-fa":
            result += ["-fa", "on" if value == "1" else "off"]
    return result


def batched_rate(text, workload):
    """S_TG of the table's row: | PP | TG | B | N_KV | T_PP | S_PP | T_TG | S_TG | T | S |."""
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if len(cells) >= 8 and cells[1] == str(workload.tokens) and cells[2] == str(workload.sequences):
            return float(cells[7])
    raise BenchError(f"llama-batched-bench printed no row for {workload.name}: {text.strip()[-200:]!r}")
