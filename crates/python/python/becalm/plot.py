"""Figures by matplotlib, in the look of the pages that ``becalm report --html`` writes.

Each function draws into ``ax``, or into a new figure, and returns the axes.

>>> axes = becalm.plot.histogram(becalm.open("busy"))
>>> axes.get_xlabel()
'length of a detour'
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from ._document import Document
from ._run import Run

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: Colors of the page, by the names that its style sheet has for them: each on light ground and on dark.
COLORS: Mapping[str, tuple[str, str]] = {
    "card": ("#ffffff", "#151d28"),
    "line": ("#dfe5ec", "#2a3747"),
    "grid": ("#e8edf3", "#232f3d"),
    "text": ("#16202c", "#e8eef5"),
    "soft": ("#4d5b6b", "#a9b7c6"),
    "series-1": ("#0b63b0", "#6cb6f5"),
    "series-2": ("#d55e00", "#ff9040"),
    "series-3": ("#00835c", "#3ecf9c"),
    "series-4": ("#a8437f", "#ee8cc4"),
    "series-5": ("#8a6d00", "#e2c33c"),
    "series-6": ("#2f94d0", "#a9dcff"),
    "series-7": ("#5b4fc9", "#b0a4ff"),
    "series-8": ("#66717d", "#a9b4bf"),
    "kind-nmi": ("#5b3fc4", "#b0a4ff"),
    "kind-irq": ("#0b63b0", "#5aa9f0"),
    "kind-softirq": ("#41a5e0", "#a4dcff"),
    "kind-workqueue": ("#00835c", "#2fc794"),
    "kind-kthread": ("#7ca80e", "#c3e05a"),
    "kind-task": ("#d55e00", "#ff9040"),
    "kind-fault": ("#c0568f", "#f39ccb"),
    "kind-throttling": ("#b3261e", "#ff6b60"),
    "kind-self": ("#b08a00", "#e2c33c"),
    "kind-edge": ("#94a1ae", "#75838f"),
    "kind-unseen": ("#2d3846", "#dfe7ee"),
    "kind-not_traced": ("#7a4a2b", "#d2a07a"),
    "kind-unknown": ("#5a6b7d", "#a9b4bf"),
}

#: So many curves have colors that are told apart.
CURVES = 8

#: So many places along an axis are told apart where there are more points than that.
PLACES = 2000


def detours(run: Run, *, cpu: int | None = None, node: str | None = None, ax: Axes | None = None, dark: bool = False) -> Axes:
    """Every detour of a CPU against time, by its length, in the color of the kind that took most of it.

    The CPU may be left out where there is one; the node, too. Of many detours those that would lie on the same spot are drawn once.
    """
    table = run.detours(node=node, cpus=None if cpu is None else [cpu])
    start, duration, keys = table["start_ns"], table["duration_ns"], table["detour"]
    if len({*table["cpu"].tolist()}) > 1 or len(np.unique(table.keys("node")[0])) > 1:
        raise ValueError("the run has several CPUs: name one, and the node where there are several")
    kinds = _main_kinds(run, len(table), cpu, node)
    axes = _axes(ax, dark)
    shown = duration > 0
    seconds, lengths, kinds = start[shown] / 1e9, duration[shown], kinds[keys[shown]]
    for kind in [name for name in _kind_order() if (kinds == name).any()]:
        of_kind = kinds == kind
        x, y = _apart(seconds[of_kind], lengths[of_kind])
        axes.scatter(x, y, s=9, color=_color(f"kind-{kind}", dark), label=kind, alpha=0.75, linewidths=0)
    axes.set_yscale("log")
    _lengths(axes.yaxis)
    axes.set_xlabel("time in seconds")
    axes.set_ylabel("length of a detour")
    _legend(axes, dark)
    return axes


def histogram(run: Run, *, cpus: Any = None, node: str | None = None, bins: int = 80, ax: Axes | None = None, dark: bool = False) -> Axes:
    """How many detours are how long, on logarithmic axes: a curve for each CPU, and one for all together of more than eight."""
    table = run.detours(node=node, cpus=cpus)
    nodes, names = table.keys("node")
    axes = _axes(ax, dark)
    lengths = table["duration_ns"]
    longest = max(int(lengths.max(initial=10)), 10)
    edges = np.unique(np.geomspace(max(int(lengths[lengths > 0].min(initial=longest)), 1), longest + 1, bins + 1))
    cpu = table["cpu"]
    places = sorted({*zip(nodes.tolist(), cpu.tolist())})
    chosen: list[tuple[str, np.ndarray]] = [(f"{len(places):,} CPUs together", lengths)]
    if len(places) <= CURVES:
        chosen = [
            (f"CPU {number}" if len(names) == 1 else f"{names[key]}, CPU {number}", lengths[(nodes == key) & (cpu == number)])
            for key, number in places
        ]
    for number, (label, own) in enumerate(chosen):
        counts, _ = np.histogram(own, edges)
        axes.stairs(counts, edges, label=label, color=_color(f"series-{number + 1}", dark), linewidth=2)
    axes.set_xscale("log")
    axes.set_yscale("log")
    # A bar of one detour has a height, too.
    axes.set_ylim(bottom=0.5)
    _lengths(axes.xaxis)
    axes.yaxis.set_major_formatter(lambda count, _: f"{count:,.0f}" if count >= 1 else "")
    axes.yaxis.set_minor_formatter(lambda *_: "")
    axes.set_xlabel("length of a detour")
    axes.set_ylabel("detours")
    if len(places) > 1:
        _legend(axes, dark)
    return axes


def sources(run: Run | Document, *, most: int = 12, ax: Axes | None = None, dark: bool = False) -> Axes:
    """The sources that took most, by their share of all noise; a run, or what :func:`becalm.sources` answers."""
    document = run if isinstance(run, Document) else run.sources()
    rows = document["sources"][:most][::-1]
    shares = [100 * row["share_ratio"] for row in rows]
    axes = _axes(ax, dark, along="x", height=0.9 + 0.36 * max(len(rows), 1))
    axes.barh(range(len(rows)), shares, color=[_color(f"kind-{row['kind']}", dark) for row in rows], height=0.7)
    for place, share in enumerate(shares):
        axes.annotate(f"{share:.3g}%", (share, place), xytext=(5, 0), textcoords="offset points", va="center", color=_color("text", dark))
    axes.set_yticks(range(len(rows)), [row["source"] for row in rows])
    axes.tick_params("y", labelcolor=_color("text", dark))
    axes.set_xlim(0, 1.12 * max(shares, default=1))
    axes.set_ylim(-0.6, max(len(rows), 1) - 0.4)
    axes.xaxis.set_major_formatter(lambda share, _: f"{share:g}%")
    axes.set_xlabel("share of all noise")
    return axes


def slowdown(predicted: Document, *, label: str | None = None, ax: Axes | None = None, dark: bool = False) -> Axes:
    """The slowdown by ranks that :func:`becalm.predict` or :func:`becalm.law` answers, with its interval where there is one; a curve for
    each grain and collective. Drawn into axes that have curves already, it goes on with other colors; ``label`` says then what it is of.
    """
    axes = _axes(ax, dark)
    curves: dict[tuple[Any, Any], list[dict[str, Any]]] = {}
    for row in predicted["rows"]:
        curves.setdefault((row.get("collective"), row.get("grain_ns")), []).append(row)
    before = len(axes.lines)
    for number, ((collective, grain), points) in enumerate(curves.items(), before):
        points = sorted(points, key=lambda row: row["ranks"])
        ranks = [row["ranks"] for row in points]
        color = _color(f"series-{number % CURVES + 1}", dark)
        kind = [collective, None if grain is None else _length(grain)] if label is None or len(curves) > 1 else []
        name = ", ".join(text for text in (label, *kind) if text)
        axes.plot(ranks, [row["slowdown_ratio"] for row in points], color=color, linewidth=2, marker="o", markersize=4, label=name or None)
        low, high = (np.array([row.get(f"slowdown_{end}") for row in points], dtype=float) for end in ("low", "high"))
        if not np.isnan([low, high]).any():
            axes.fill_between(ranks, low, high, color=color, alpha=0.15, linewidth=0)
    axes.set_xscale("log", base=2)
    axes.xaxis.set_major_formatter(lambda ranks, _: _count(ranks))
    axes.set_xlabel("ranks")
    axes.set_ylabel("slowdown")
    if label is not None or len(axes.lines) > 1:
        _legend(axes, dark)
    return axes


def _main_kinds(run: Run, count: int, cpu: int | None, node: str | None) -> np.ndarray:
    """The kind that took most of each detour of a CPU, by the detour's number; what nothing was seen of is unknown."""
    table = run.activities(node=node, cpus=None if cpu is None else [cpu])
    keys, names = table.keys("kind")
    kinds = np.full(count, "unknown", dtype=object)
    # Of several activities of one detour the longest comes last, and stays.
    order = np.lexsort((table["self_ns"], table["detour"]))
    kinds[table["detour"][order]] = np.array(names, dtype=object)[keys[order]]
    return kinds


def _kind_order() -> list[str]:
    return [name.removeprefix("kind-") for name in COLORS if name.startswith("kind-")]


def _apart(x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Points of which no two would be drawn on the same spot of a logarithmic chart."""
    if len(x) <= PLACES:
        return x, y
    height = np.log(y)
    spots = [np.rint((values - values.min()) / max(np.ptp(values), 1e-12) * (PLACES - 1)).astype(np.int64) for values in (x, height)]
    _, first = np.unique(spots[0] * PLACES + spots[1], return_index=True)
    return x[first], y[first]


def _axes(ax: Axes | None, dark: bool, along: Literal["both", "x", "y"] = "both", height: float = 4.5) -> Axes:
    """Axes in the look of the page, in a figure of their own, so many inches high, where none are given."""
    import matplotlib.pyplot as plt

    if ax is None:
        figure, ax = plt.subplots(figsize=(9, height), layout="constrained")
        figure.set_facecolor(_color("card", dark))
    ax.set_facecolor(_color("card", dark))
    ax.grid(True, axis=along, color=_color("grid", dark), linewidth=1)
    ax.set_axisbelow(True)
    ax.tick_params(colors=_color("soft", dark), which="both", length=0)
    for side, spine in ax.spines.items():
        spine.set_visible(side in ("left", "bottom"))
        spine.set_color(_color("line", dark))
    ax.xaxis.label.set_color(_color("soft", dark))
    ax.yaxis.label.set_color(_color("soft", dark))
    return ax


def _legend(axes: Axes, dark: bool) -> None:
    # The dots of a scatter chart are too small for a legend.
    larger = 2.5 if axes.collections and not axes.lines else 1.0
    legend = axes.legend(frameon=False, labelcolor=_color("text", dark), loc="upper left", bbox_to_anchor=(1.0, 1.0), markerscale=larger)
    for handle in legend.legend_handles:
        if handle is not None:
            handle.set_alpha(1.0)


def _lengths(axis: Any) -> None:
    """Writes lengths along a logarithmic axis, between its powers of ten where it has hardly any of these."""
    low, high = axis.get_view_interval()
    axis.set_major_formatter(lambda value, _: _length(value))
    axis.set_minor_formatter(lambda value, _: _length(value) if high < 10 * low else "")


def _length(ns: float) -> str:
    """A length as the page writes it: ``250ns``, ``1.5us``, ``20ms``."""
    for unit, size in (("s", 1e9), ("ms", 1e6), ("us", 1e3)):
        if ns >= size:
            return f"{ns / size:.3g}{unit}"
    return f"{ns:.3g}ns"


def _count(ranks: float) -> str:
    """A number of ranks as reports write it: ``16,384``."""
    return f"{ranks:,.0f}"


def _color(name: str, dark: bool) -> str:
    return COLORS[name if name in COLORS else "kind-unknown"][dark]
