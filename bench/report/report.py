#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Turns the JSON of `unisono bench --format json` into one self-contained HTML page: the latency
curves as an embedded picture, the machine, the table, and the command line that made it.

Needs matplotlib (`./dev demo` installs it into the project's virtual environment).
"""

import argparse
import html
import io
import json
import pathlib
import sys

try:
    import matplotlib
except ImportError:
    sys.exit("report.py: matplotlib is missing: run ./dev demo, which installs it, or "
             "python3 -m pip install matplotlib in a virtual environment")

matplotlib.use("svg")
import matplotlib.pyplot as plt  # noqa: E402 (the backend has to be chosen before)

METHODS = {
    "loop": "back to back (one clock around the loop, slowest rank)",
    "single": "each call alone (a barrier before it, mean of the ranks)",
}
STYLE = """
body { font: 15px/1.5 sans-serif; max-width: 62em; margin: 2em auto; padding: 0 1em; color: #222; }
h1 { font-size: 1.5em; } h2 { font-size: 1.15em; margin-top: 2em; }
table { border-collapse: collapse; } td, th { padding: .15em .8em; text-align: right; }
th { border-bottom: 1px solid #888; } td:first-child, th:first-child { text-align: left; }
tr.first td { border-top: 1px solid #ccc; } .wrong { color: #b00; font-weight: bold; }
code { background: #f3f3f3; padding: .1em .3em; } svg { max-width: 100%; height: auto; }
"""


def size_text(size):
    for unit, factor in (("M", 1 << 20), ("K", 1 << 10)):
        if size >= factor and size % factor == 0:
            return f"{size // factor}{unit}"
    return str(size)


def draw_curves(axes, results, method):
    sizes = sorted({cell["size"] for cell in results if cell["collective"] != "barrier"})
    for name in dict.fromkeys(cell["collective"] for cell in results):
        cells = [cell for cell in results if cell["collective"] == name]
        medians = [cell[method]["median_us"] for cell in cells]
        if name == "barrier":
            axes.axhline(medians[0], linestyle="--", linewidth=1, color="grey", label="barrier")
            continue
        axes.plot([cell["size"] for cell in cells], medians, marker="o", markersize=3, label=name)
    axes.set_xscale("symlog" if sizes and sizes[0] == 0 else "log", base=2)
    axes.set_yscale("log")
    if sizes:
        axes.set_xticks(sizes[:: max(1, len(sizes) // 8)])
    axes.xaxis.set_major_formatter(lambda value, _: size_text(int(value)))
    axes.xaxis.set_minor_locator(matplotlib.ticker.NullLocator())
    axes.set_xlabel("bytes (allgather: of one rank's block)")
    axes.set_title(METHODS[method], fontsize=9)
    axes.grid(True, which="both", linewidth=0.3)
    axes.legend(fontsize=8)


def picture(report, methods):
    """The curves as an SVG element."""
    figure, axes = plt.subplots(
        1, len(methods), figsize=(5.2 * len(methods), 4), sharey=True, squeeze=False
    )
    for one, method in zip(axes[0], methods):
        draw_curves(one, report["results"], method)
    axes[0][0].set_ylabel("median time of one call, us")
    figure.tight_layout()
    buffer = io.StringIO()
    # No date, so that the same data gives the same file.
    figure.savefig(buffer, format="svg", metadata={"Date": None})
    plt.close(figure)
    text = buffer.getvalue()
    return text[text.index("<svg") :]


def columns(methods):
    found = []
    if "loop" in methods:
        found += [("loop", "loop", "median_us"), ("cpu", "loop", "cpu_us")]
    if "single" in methods:
        found += [(key.split("_")[0], "single", key)
                  for key in ("median_us", "p99_us", "min_us", "cpu_us")]
    return found


def figure(value):
    return "-" if value is None else f"{value:.2f}"


def table(report, methods):
    heads = "".join(f"<th>{name}</th>" for name, _, _ in columns(methods))
    rows = []
    last = None
    for cell in report["results"]:
        first = ' class="first"' if cell["collective"] != last else ""
        last = cell["collective"]
        size = "" if last == "barrier" else size_text(cell["size"])
        times = "".join(f"<td>{figure(cell[m].get(key))}</td>" for _, m, key in columns(methods))
        wrong = ' class="wrong"' if cell["wrong"] else ""
        rows.append(
            f"<tr{first}><td>{last}</td><td>{size}</td>{times}<td{wrong}>{cell['wrong']}</td>"
            f"<td>{html.escape(cell['algorithm'])} {html.escape(cell['engine'])}</td></tr>"
        )
    return (
        f"<table><tr><th>collective</th><th>size</th>{heads}<th>wrong</th><th>algorithm</th></tr>"
        + "\n".join(rows)
        + "</table>"
    )


def page(report):
    methods = [method for method in METHODS if method in report["results"][0]]
    machine = report["machine"]
    settings = " ".join(report["settings"]) or "defaults"
    facts = [
        ("processor", f"{machine['processor']}, {machine['usable_cores']} of {machine['cores']} "
                      "cores usable"),
        ("kernel", machine["kernel"]),
        ("compiler", machine["compiler"]),
        ("unisono", f"{report['version']}, {report['ranks']} ranks, {report['type']}, "
                    f"{report['operator']}"),
        ("settings", settings),
    ]
    described = "".join(
        f"<tr><td>{name}</td><td style='text-align:left'>{html.escape(value)}</td></tr>"
        for name, value in facts
    )
    return f"""<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>Unisono: collectives of {report['ranks']} ranks
</title><style>{STYLE}</style></head><body>
<h1>Unisono: collectives of {report['ranks']} ranks on one machine</h1>
<p>Made by <code>{html.escape(report['command'])}</code></p>
{picture(report, methods)}
<h2>Machine</h2><table>{described}</table>
<h2>Numbers</h2>
<p>Microseconds. <b>loop</b>: back to back, the slowest rank's time for one call, median of the
loops. <b>median, p99, min</b>: calls timed one by one with a barrier before each, averaged over the
ranks. <b>cpu</b>, behind each of the two: processor time of the calling thread for one of these
calls, the mean of the ranks. Every result was verified;
<b>wrong</b> counts elements that were not right.</p>
{table(report, methods)}
</body></html>
"""


def main():
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="Example:\n  unisono bench -n 2 --format json > bench.json && "
        "bench/report/report.py bench.json",
    )
    parser.add_argument("json", type=pathlib.Path, help="what `unisono bench --format json` wrote")
    parser.add_argument(
        "--output",
        type=pathlib.Path,
        default=pathlib.Path(__file__).resolve().parents[2] / "build/demo/report.html",
        help="default: build/demo/report.html",
    )
    arguments = parser.parse_args()
    try:
        report = json.loads(arguments.json.read_text())
    except (OSError, json.JSONDecodeError) as error:
        sys.exit(f"report.py: cannot read {arguments.json}: {error}")
    if not report.get("results"):
        sys.exit(f"report.py: {arguments.json} holds no results")
    arguments.output.parent.mkdir(parents=True, exist_ok=True)
    arguments.output.write_text(page(report))
    print(f"report: {arguments.output}")


if __name__ == "__main__":
    main()
