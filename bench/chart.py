"""Bars of tokens per second, a group for each workload, each model to its own scale; the machine's limit as a line."""
from xml.sax.saxutils import escape

WIDTH, LEFT, BAR, GAP, HEAD = 760, 190, 16, 14, 34
SCALE = WIDTH - LEFT - 150
COLOURS = ["#1b7f5c", "#8a8f98", "#c28f2c", "#7a6fb0"]


def number(value):
    return f"{value:.0f}" if value >= 100 else f"{value:.1f}"


def text(x, y, words, size=12, anchor="start", colour="#222", weight="normal"):
    return (f'<text x="{x:.0f}" y="{y:.0f}" font-size="{size}" text-anchor="{anchor}" fill="{colour}" '
            f'font-weight="{weight}">{escape(words)}</text>')


def _bar(y, summary, top, colour, label):
    def x(value):
        return LEFT + SCALE * value / top
    width = max(1.0, x(summary["median"]) - LEFT)
    return [f'<rect x="{LEFT}" y="{y}" width="{width:.1f}" height="{BAR - 2}" fill="{colour}"/>',
            f'<line x1="{x(summary["min"]):.1f}" x2="{x(summary["max"]):.1f}" y1="{y + BAR / 2 - 1}" y2="{y + BAR / 2 - 1}" '
            f'stroke="#000" stroke-width="1.5"/>',
            text(x(summary["max"]) + 6, y + BAR - 4, label, 11)]


def _workload(y, workload, least_top):
    rows = [("Cicada", workload["ours"], None)] + [(peer["name"], peer["speed"], peer["ratio"]["median"])
                                                   for peer in workload["peers"]]
    limit = workload["limit"] or 0.0
    top = max([limit, least_top] + [speed["max"] for _, speed, _ in rows])
    parts = [text(LEFT - 10, y + BAR - 4, workload["name"], 12, "end")]
    start = y
    for index, (name, speed, ratio) in enumerate(rows):
        label = f"{number(speed['median'])} {name}"
        if ratio is not None:
            label += f" (ours {ratio:.1f} ×)"
        parts += _bar(y, speed, top, COLOURS[index % len(COLOURS)], label)
        y += BAR
    if limit:
        x = LEFT + SCALE * limit / top
        parts.append(f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{start - 3}" y2="{y}" stroke="#b03030" stroke-dasharray="3 2"/>')
    return y + GAP, parts


def svg(result):
    parts, y = [], 46
    for model in result["models"]:
        parts.append(text(16, y, model["name"], 14, weight="bold"))
        y += 12
        # Answers without drafts and with them have one scale.
        answers = max((workload["ours"]["max"] for workload in model["workloads"] if not workload["limit"]), default=0.0)
        for workload in model["workloads"]:
            y, more = _workload(y, workload, 0.0 if workload["limit"] else answers)
            parts += more
        y += HEAD - GAP
    host = result["host"]
    parts.append(text(16, y, f"{host['cpu']}, {result['threads']} threads, commit {host['commit']}, {host['date']}; median of "
                              f"{result['repeats']} alternating runs, black: least to greatest", 11, colour="#555"))
    title = text(16, 22, "Tokens per second; longer is faster. Dashed: what this machine allows at most", 13)
    return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {y + 14}" font-family="sans-serif" role="img" '
            f'aria-label="Tokens per second of each engine">\n<rect width="{WIDTH}" height="{y + 14}" fill="#fff"/>\n'
            + "\n".join([title, *parts]) + "\n</svg>\n")
