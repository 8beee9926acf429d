"""What the cache's width costs, as tables."""
from chart import number
from kv_parts import LEAST_FOUND, SPEED_DEPTH
from kv_runs import BASE


def table(head, rows):
    return "\n".join(["| " + " | ".join(head) + " |", "|" + "---|" * len(head)] + ["| " + " | ".join(row) + " |" for row in rows])


def with_error(value, error, digits):
    """A signed figure with its standard error."""
    figure = f"{value:+.{digits}f}"
    return figure if error is None else f"{figure} ± {error:.{digits}f}"


def loss(row):
    """Percent of perplexity, with enough digits for what it is."""
    value, error = row["loss"]["percent"], row["loss"]["stderr"]
    return with_error(value, error, 3 if abs(value) < 1 else 2 if abs(value) < 10 else 0)


def share(row):
    return f"{row['share']:.3f}"


def is_base(row):
    """Whether all others are paired against this one."""
    return row["setting"] == BASE.name


def perplexity(rows):
    lines = []
    for row in rows:
        compared = ["", ""] if is_base(row) else [with_error(row["nll"]["mean"], row["nll"]["stderr"], 5), loss(row)]
        lines.append([row["model"], f"{row['chunks']} × {row['ctx']}", row["setting"], f"{row['perplexity']:.4f}", *compared,
                      str(row["kv_bytes_per_token"]), share(row)])
    return table(["model", "tokens", "cache", "perplexity", "nll − f16's", "loss, %", "bytes a token", "of f16's"], lines)


def gsm8k(rows):
    lines = []
    for row in rows:
        compared = ["", "", "", "", ""] if is_base(row) else [
            str(row["both_right"]), str(row["losses"]), str(row["gains"]), f"{row['losses'] - row['gains']:+d}", f"{row['p']:.2f}"]
        lines.append([row["setting"], f"{row['right']} of {row['items']}", *compared, f"{row['mean_tokens']:.0f}", str(row["cut_short"])])
    return table(["cache", "right", "both right", "losses", "gains", "losses − gains", "p", "tokens an answer", "cut short"], lines)


def _column(rows, **wanted):
    """{setting: row} of the rows that are so."""
    return {row["setting"]: row for row in rows if all(row[key] == value for key, value in wanted.items())}


def void(result):
    """The lengths at which the base finds too little for the test to say anything."""
    return [row["tokens"] for row in result["needle"] if is_base(row) and row["found"] < LEAST_FOUND * row["needles"]]


def policies(result):
    """Quality and time of each setting: needles found, loss on the novel, speed after many tokens."""
    needle, policy, depth = result["needle"], result["policy"], result["depth"]
    lengths, contexts = sorted({row["tokens"] for row in needle}), sorted({row["ctx"] for row in policy})
    speeds = {row["setting"]: row["speeds"].get(str(SPEED_DEPTH)) for row in depth}
    base = speeds.get(BASE.name)
    head = ["setting", *(f"needles, {length} tokens" for length in lengths), *(f"loss at {ctx}, %" for ctx in contexts), "bytes of f16's"]
    if base:
        head += [f"tokens/s after {SPEED_DEPTH}", "of f16's"]
    names = list(dict.fromkeys(row["setting"] for row in needle + policy + depth))
    lines = []
    for name in names:
        cells = [name]
        for length in lengths:
            row = _column(needle, tokens=length).get(name)
            cells.append(f"{row['found']} of {row['needles']}" if row else "")
        for ctx in contexts:
            row = _column(policy, ctx=ctx).get(name)
            cells.append("" if not row else f"ppl {row['perplexity']:.3f}" if is_base(row) else loss(row))
        row = _column(policy).get(name)
        cells.append(share(row) if row else "")
        if base:
            speed = speeds.get(name)
            cells += [f"{number(speed['median'])} ({number(speed['min'])} to {number(speed['max'])})",
                      f"{speed['median'] / base['median']:.2f}"] if speed else ["", ""]
        lines.append(cells)
    return table(head, lines)


def by_depth(rows):
    """Where in the text the needles were that were found."""
    depths = list(rows[0]["by_depth"])
    lines = [[row["setting"], str(row["tokens"]), *("{} of {}".format(*row["by_depth"][depth]) for depth in depths)] for row in rows]
    return table(["setting", "tokens", *(f"at {100 * float(depth):.0f} %" for depth in depths)], lines)


def depths(rows):
    found = sorted({int(tokens) for row in rows for tokens in row["speeds"]})
    lines = []
    for row in rows:
        cells = [row["setting"]]
        for tokens in found:
            speed = row["speeds"].get(str(tokens))
            cells.append(f"{number(speed['median'])} ({number(speed['min'])} to {number(speed['max'])})" if speed else "")
        lines.append(cells)
    return table(["cache", *(f"after {tokens}" for tokens in found)], lines)


def circumstances(result):
    rows = [row for part in ("perplexity", "gsm8k", "needle", "policy", "depth") for row in result[part]]

    def all_of(key):
        return ", ".join(sorted({value for row in rows for value in row[key]})) or "none"
    host = result["host"]
    return (f"{host['cpu']}; program {result['program']}, level {all_of('isa')}, numerics {all_of('numerics_id')}, measured "
            f"{all_of('date')}; reported at commit {host['commit']}, {host['date']}")


def text(result):
    parts = ["# What a narrower KV cache costs"]
    if result["perplexity"]:
        parts += ["## Perplexity, wiki.test.raw", "Paired chunk by chunk; ± is the standard error of the mean difference.",
                  perplexity(result["perplexity"])]
    if result["gsm8k"]:
        parts += ["## GSM8K, greedy", f"{result['gsm8k'][0]['model']}; losses were right with f16 and are wrong now, gains the other way "
                  "round; p is McNemar's, exact and two-sided.", gsm8k(result["gsm8k"])]
    if result["needle"] or result["policy"]:
        parts += ["## Needles and a novel", policies(result)]
        for tokens in void(result):
            parts.append(f"Void at {tokens} tokens: the full cache itself finds fewer than {100 * LEAST_FOUND:.0f} %.")
        parts += [by_depth(result["needle"])] if result["needle"] else []
    if result["depth"]:
        parts += ["## Decode after so many tokens, tokens/s", depths(result["depth"])]
    parts += [f"Not measured: {failure}." for failure in result["failures"]]
    return "\n\n".join(parts + [circumstances(result) + "."]) + "\n"
