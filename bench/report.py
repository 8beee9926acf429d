"""The comparison as text, as a page and as the README's part."""
import os
import re
from html import escape

import chart
from chart import number

BEGIN, END = "<!-- speed:begin -->", "<!-- speed:end -->"


def spread(summary):
    return f"{number(summary['median'])} ({number(summary['min'])} to {number(summary['max'])})"


def tried(peer):
    return ", ".join(f"{setting}: {number(speed)}" for setting, speed in peer["tried"].items())


def share(workload):
    return "" if workload["share_of_limit"] is None else f"{100 * workload['share_of_limit']:.0f} %"


def memory(workload):
    return "" if workload["rss_bytes"] is None else f"{workload['rss_bytes'] / 1e6:.0f} MB"


def circumstances(result):
    host = result["host"]
    clock = host["clock_mhz"]
    clock = f", clock {clock['min']:.0f} to {clock['max']:.0f} MHz" if clock else ""
    isa = result["models"][0]["workloads"][0]["isa"]
    return (f"{host['cpu']}, {result['threads']} threads, level {isa}; commit {host['commit']}, {host['date']}; medians of "
            f"{result['repeats']} alternating runs; steal {100 * host['steal']:.1f} %, load {host['load_average']:.1f}{clock}")


def limits_line(result):
    limits = result["limits"]
    reads = ", ".join(f"{read['gb_per_s']['all']:.0f} at {read['bytes'] / 1e6:.0f} MB" for read in limits["read"])
    tiles = f"BF16 tiles {limits['bf16_tile_tops']['all']:.2f} TOPS; " if "bf16_tile_tops" in limits else ""
    line = f"the machine: reads {reads} GB/s; 8-bit products {limits['int8_tops']['all']:.2f} TOPS; {tiles}barrier {limits['barrier_ns']:.0f} ns"
    likwid = result.get("likwid_read_gb_per_s")
    if likwid:
        line += "; likwid-bench reads " + ", ".join(f"{speed:.0f} at {size} MB" for size, speed in likwid.items()) + " GB/s"
    return line


def text(result):
    lines = [circumstances(result), limits_line(result)]
    for model in result["models"]:
        lines.append(f"{model['name']}, {model['bytes'] / 1e6:.0f} MB")
        for workload in model["workloads"]:
            line = f"  {workload['name']:<26} ours {spread(workload['ours']):<28}"
            if workload["limit"] is not None:
                line += f" {share(workload)} of the limit {number(workload['limit'])}; peak memory {memory(workload)}"
            lines.append(line)
            for peer in workload["peers"]:
                lines.append(f"  {'':<26} {peer['name']} {spread(peer['speed'])} with '{peer['setting']}', ours "
                             f"{peer['ratio']['median']:.2f} x ({peer['ratio']['min']:.2f} to {peer['ratio']['max']:.2f}); tried {tried(peer)}")
    return "\n".join(lines) + "\n"


def markdown(result):
    names = [peer["name"] for peer in result["models"][0]["workloads"][0]["peers"]]
    head = ["model", "work", "Cicada, tokens/s", "of the limit", "peak memory"] + [f"{name} | ratio" for name in names]
    columns = 5 + 2 * len(names)
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * columns]
    for model in result["models"]:
        for workload in model["workloads"]:
            cells = [model["name"], workload["name"], number(workload["ours"]["median"]), share(workload), memory(workload)]
            for peer in workload["peers"]:
                cells += [number(peer["speed"]["median"]), f"{peer['ratio']['median']:.2f}"]
            cells += [""] * (columns - len(cells))
            lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def html(result):
    rows = []
    for model in result["models"]:
        for workload in model["workloads"]:
            limit, notes = "", ""
            if workload["limit"] is not None:
                limit = f"{share(workload)} of {number(workload['limit'])}"
                notes = f"{workload['gb_per_s']:.1f} GB/s, {workload['prefill_tops']:.2f} TOPS, {memory(workload)}"
            rows.append([model["name"], workload["name"], "Cicada", spread(workload["ours"]), "", limit, notes])
            for peer in workload["peers"]:
                rows.append(["", "", peer["name"], spread(peer["speed"]),
                             f"{peer['ratio']['median']:.2f} ({peer['ratio']['min']:.2f} to {peer['ratio']['max']:.2f})", "",
                             f"build {peer['build']}, '{peer['setting']}'; tried {tried(peer)}"])
    head = ["model", "work", "engine", "tokens/s (least to greatest)", "ours ÷ theirs", "of the limit", "notes"]
    table = "".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>\n" for row in rows)
    return (f"<!doctype html>\n<meta charset='utf-8'>\n<title>Cicada: speed beside its peers</title>\n<style>body{{font:14px sans-serif;"
            f"margin:24px;max-width:1100px}}td,th{{padding:3px 10px;text-align:left;border-bottom:1px solid #ddd;vertical-align:top}}"
            f"svg{{max-width:800px}}</style>\n<h1>Speed beside its peers</h1>\n<p>{escape(circumstances(result))}</p>\n"
            f"<p>{escape(limits_line(result))}</p>\n{chart.svg(result)}\n<table><tr>"
            + "".join(f"<th>{escape(word)}</th>" for word in head) + f"</tr>\n{table}</table>\n")


def write_readme(result, root):
    """Table and picture between the README's marks."""
    picture = os.path.join("docs", "images", "speed.svg")
    os.makedirs(os.path.join(root, os.path.dirname(picture)), exist_ok=True)
    with open(os.path.join(root, picture), "w") as out:
        out.write(chart.svg(result))
    part = f"{BEGIN}\n![Tokens per second beside other engines]({picture})\n\n{markdown(result)}\n\n{circumstances(result)}.\n{END}"
    path = os.path.join(root, "README.md")
    with open(path) as readme:
        content = readme.read()
    with open(path, "w") as readme:
        readme.write(re.sub(f"{BEGIN}.*{END}", lambda _: part, content, flags=re.DOTALL))
