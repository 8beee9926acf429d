"""The comparison of servers as a table and as a picture: three bars a workload for each server. Workloads differ a
thousandfold, so bars are as long as the figure beside the greater one of the same workload."""
from chart import COLOURS, number, text

WIDTH, LEFT, PANEL, BAR = 900, 170, 190, 15
PANELS = [("tokens_per_second", "tokens/s (more is better)", 1.0),
          ("first_p99", "first token, p99, s (less is better)", 1.0),
          ("gap_p99", "gap between tokens, p99, ms (less is better)", 1e3)]


def workloads(result):
    return [name for name in next(iter(result["servers"].values())) if name != "peak_bytes"]


def figure(value):
    return number(value) if value >= 1 else f"{value:.2f}"


def table(result):
    names = list(result["servers"])
    lines = ["| | " + " | ".join(f"{name}: tokens/s | first token p50 / p99, s | gap p50 / p99, ms" for name in names) + " |",
             "|---" * (1 + 3 * len(names)) + "|"]
    for workload in workloads(result):
        cells = [workload]
        for name in names:
            row = result["servers"][name][workload]
            speed = row.get("tokens_per_second")
            first = f"{row['first_p50']:.2f} / " if "first_p50" in row else ""
            cells += [number(speed) if speed else f"gap × {row['stretch_p99']:.1f} of idle",
                      f"{first}{row['first_p99']:.2f}", f"{row['gap_p50'] * 1e3:.1f} / {row['gap_p99'] * 1e3:.0f}"]
        lines.append("| " + " | ".join(cells) + " |")
    memory = ", ".join(f"{name} {result['servers'][name]['peak_bytes'] / 1e6:.0f} MB" for name in names)
    return "\n".join(lines) + f"\n\nPeak memory, all processes: {memory}."


def svg(result):
    parts, y = [], 40
    for index, name in enumerate(result["servers"]):
        parts.append(f'<rect x="{LEFT + 140 * index}" y="10" width="12" height="12" fill="{COLOURS[index]}"/>')
        parts.append(text(LEFT + 140 * index + 18, 20, name, 12))
    for column, (_, title, _) in enumerate(PANELS):
        parts.append(text(LEFT + column * (PANEL + 50), y, title, 11, colour="#555"))
    y += 14
    for workload in workloads(result):
        parts.append(text(LEFT - 10, y + BAR, workload, 12, "end"))
        for index, server in enumerate(result["servers"].values()):
            for column, (field, _, scale) in enumerate(PANELS):
                if field not in server[workload]:
                    continue
                value = server[workload][field] * scale
                top = max(other[workload][field] for other in result["servers"].values()) * scale
                x = LEFT + column * (PANEL + 50)
                width = max(1.0, PANEL * value / top)
                parts.append(f'<rect x="{x}" y="{y + index * BAR}" width="{width:.1f}" height="{BAR - 2}" '
                             f'fill="{COLOURS[index]}"/>')
                parts.append(text(x + width + 4, y + index * BAR + BAR - 4, figure(value), 10))
        y += BAR * len(result["servers"]) + 12
    host = result["host"]
    parts.append(text(16, y + 8, f"{result['model']}, {host['cpu']}, {result['threads']} threads, clients on the same cores, "
                                 f"commit {host['commit']}, {host['date']}; medians of {result['repeats']} runs in turns",
                      11, colour="#555"))
    return (f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{y + 24}" font-family="sans-serif">'
            f'<rect width="100%" height="100%" fill="#fff"/>{"".join(parts)}</svg>\n')
