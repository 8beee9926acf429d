"""Pictures of what a narrower cache costs and gains: loss against bytes, and speed over depth."""
import math

from chart import COLOURS, number, text
from kv_runs import BASE

WIDTH, AXIS, EDGE, TOP = 760, 66, 16, 66
DASHES = ["", "7 3", "2 3", "8 3 2 3"]
CHARACTER = 6.2  # pixels, of 11 pixel text, rather too many


def _frame(height, title, label, parts):
    return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" font-family="sans-serif" role="img" '
            f'aria-label="{label}">\n<rect width="{WIDTH}" height="{height}" fill="#fff"/>\n'
            + "\n".join([text(EDGE, 22, title, 13), *parts]) + "\n</svg>\n")


def _line(x1, y1, x2, y2, colour="#ddd", more=""):
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{colour}" {more}/>'


def _overlap(one, other):
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]


def _place(x, y, words, taken, bounds):
    """Where a label by a point covers nothing that is there: the first free of places around it, else the first."""
    width = CHARACTER * len(words)
    for dx, dy in [(8, 4), (-8 - width, 4), (-width / 2, -9), (-width / 2, 19), (8, -9), (8, 17), (-8 - width, -9), (-8 - width, 17),
                   (8, -22), (8, 30), (-8 - width, -22), (-8 - width, 30)]:
        box = (x + dx, y + dy - 10, x + dx + width, y + dy + 3)
        inside = bounds[0] <= box[0] and box[2] <= bounds[2] and bounds[1] <= box[1] and box[3] <= bounds[3]
        if inside and not any(_overlap(box, other) for other in taken):
            return box
    return (x + 8, y - 6, x + 8 + width, y + 7)


def _panel(left, width, bottom, rows, low, high, model):
    """One model: points at (share of f16's bytes, loss on a scale of powers of ten); what is below the scale stands on its floor."""
    def x_of(share):
        return left + width * (share - 0.2) / 0.5

    def y_of(percent):
        power = math.log10(max(percent, 10 ** low))
        return bottom - (bottom - TOP) * (min(power, high) - low) / (high - low)
    parts = [text(left, TOP - 14, model, 12, weight="bold")]
    for power in range(low, high + 1):
        parts.append(_line(left, y_of(10 ** power), left + width, y_of(10 ** power)))
    for share in (0.2, 0.3, 0.4, 0.5, 0.6):
        parts += [_line(x_of(share), bottom, x_of(share), bottom + 4, "#555"),
                  text(x_of(share), bottom + 17, f"{share:.1f}", 11, "middle", "#555")]
    taken, labels = [], []
    for row in rows:
        x, y = x_of(row["share"]), y_of(row["loss"]["percent"])
        error = row["loss"]["stderr"] or 0.0
        upper, lower = y_of(row["loss"]["percent"] + error), y_of(row["loss"]["percent"] - error)
        on_floor = row["loss"]["percent"] <= 10 ** low
        parts += [_line(x, upper, x, lower, "#000", 'stroke-width="1.5"'),
                  f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4.5" fill="{"#fff" if on_floor else COLOURS[0]}" stroke="{COLOURS[0]}" stroke-width="2"/>']
        taken += [(x - 6, y - 6, x + 6, y + 6), (x - 2, upper, x + 2, lower)]
    for row in sorted(rows, key=lambda row: row["share"]):
        percent = row["loss"]["percent"]
        words = f"{row['setting']} {percent:.{3 if abs(percent) < 0.1 else 2 if percent < 10 else 0}f} %"
        box = _place(x_of(row["share"]), y_of(percent), words, taken, (left - 4, TOP - 8, left + width + 8, bottom - 1))
        taken.append(box)
        labels.append(text(box[0], box[3] - 3, words, 11))
    return parts + labels


def quality(rows, note):
    """Loss in percent of perplexity against the share of f16's bytes, a panel for each model; chunks of 512 tokens."""
    rows = [row for row in rows if row["ctx"] == 512 and row["setting"] != BASE.name]
    models = list(dict.fromkeys(row["model"] for row in rows))
    if not models:
        return None
    greatest = max(row["loss"]["percent"] + (row["loss"]["stderr"] or 0.0) for row in rows)
    low, high = -2, max(0, math.ceil(math.log10(max(greatest, 1e-9))))
    bottom, gap = TOP + 230, 22
    width = (WIDTH - AXIS - EDGE - gap * (len(models) - 1)) / len(models)
    parts = []
    for power in range(low, high + 1):
        y = bottom - (bottom - TOP) * (power - low) / (high - low)
        parts.append(text(AXIS - 8, y + 4, f"{'≤ ' if power == low else ''}{10.0 ** power:g} %", 11, "end", "#555"))
    for index, model in enumerate(models):
        parts += _panel(AXIS + index * (width + gap), width, bottom, [row for row in rows if row["model"] == model], low, high, model)
    parts += [text(AXIS, bottom + 34, "bytes of the cache, of f16's", 11, colour="#555"),
              text(EDGE, bottom + 56, note, 10, colour="#555")]
    return _frame(bottom + 68, "Loss of perplexity against bytes of the KV cache; lower and further left is better. Line: ± standard error",
                  "Loss of perplexity in percent against bytes of the KV cache, by model and width", parts)


def _step(top):
    """A round step that gives at most six lines up to the top."""
    size = 10 ** math.floor(math.log10(top / 6))
    return next(size * times for times in (1, 2, 5, 10) if size * times * 6 >= top)


def apart(heights, gap):
    """The same heights, moved as little as it takes (in squares) for all to lie a gap apart in the order they have."""
    order = sorted(range(len(heights)), key=lambda index: heights[index])
    groups = []  # [sum of what members want once the gaps before them are taken off, members]
    for rank, index in enumerate(order):
        groups.append([heights[index] - rank * gap, 1])
        while len(groups) > 1 and groups[-2][0] / groups[-2][1] > groups[-1][0] / groups[-1][1]:
            total, members = groups.pop()
            groups[-1][0] += total
            groups[-1][1] += members
    means = [total / members for total, members in groups for _ in range(members)]
    placed = list(heights)
    for rank, index in enumerate(order):
        placed[index] = means[rank] + rank * gap
    return placed


def speed(lines, note):
    """Tokens per second over depth: [{"name", "ours": bool, "speeds": {depth: {"median", "min", "max"}}}]."""
    lines = [line for line in lines if line["speeds"]]
    if not lines:
        return None
    lines = sorted(lines, key=lambda line: not line["ours"])
    furthest = max(max(map(int, line["speeds"])) for line in lines) or 1
    greatest = max(speed["max"] for line in lines for speed in line["speeds"].values())
    top, bottom, right = 48, 350, WIDTH - 190
    step = _step(greatest)
    ceiling = step * math.ceil(greatest / step)

    def x_of(depth):
        return AXIS + (right - AXIS) * int(depth) / furthest

    def y_of(value):
        return bottom - (bottom - top) * value / ceiling
    parts = []
    for count in range(round(ceiling / step) + 1):
        parts += [_line(AXIS, y_of(count * step), right, y_of(count * step)),
                  text(AXIS - 8, y_of(count * step) + 4, f"{count * step:g}", 11, "end", "#555")]
    for depth in sorted({int(depth) for line in lines for depth in line["speeds"]}):
        parts += [_line(x_of(depth), bottom, x_of(depth), bottom + 4, "#555"), text(x_of(depth), bottom + 17, f"{depth:,}", 11, "middle", "#555")]
    ends, ours, theirs = [], 0, 0
    for line in lines:
        points = sorted(line["speeds"].items(), key=lambda point: int(point[0]))
        if line["ours"]:
            colour, dash, ours = COLOURS[0], DASHES[ours % len(DASHES)], ours + 1
        else:
            colour, dash, theirs = COLOURS[1 + theirs % (len(COLOURS) - 1)], DASHES[theirs // (len(COLOURS) - 1) % len(DASHES)], theirs + 1
        path = " ".join(f"{x_of(depth):.1f},{y_of(summary['median']):.1f}" for depth, summary in points)
        parts.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2" stroke-dasharray="{dash}"/>')
        for depth, summary in points:
            parts += [_line(x_of(depth), y_of(summary["min"]), x_of(depth), y_of(summary["max"]), "#000", 'stroke-width="1"'),
                      f'<circle cx="{x_of(depth):.1f}" cy="{y_of(summary["median"]):.1f}" r="3" fill="{colour}"/>']
        depth, summary = points[-1]
        ends.append((x_of(depth), y_of(summary["median"]), f"{number(summary['median'])} {line['name']}", colour))
    for (x, y, words, colour), height in zip(ends, apart([end[1] for end in ends], 15)):
        parts += [_line(x + 4, y, right + 14, height, colour, 'stroke-width="0.7"'), text(right + 17, height + 4, words, 11)]
    parts += [text(AXIS, bottom + 34, "tokens in the cache before", 11, colour="#555"), text(EDGE, bottom + 56, note, 10, colour="#555")]
    return _frame(bottom + 68, "Tokens per second of decode after so many tokens; higher is faster", "Decode speed over depth", parts)
