"""Panels over time: lines, bands, bars and states."""
from datetime import datetime

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.dates import DateFormatter, date2num
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

import colours
from dashboards import Panel, legend
from draw_kinds import Answers, Area
from live import Series, Window
from units import written

GAP = float("nan")


def spaced(series: Series, step: float) -> tuple[list[datetime], list[float]]:
    """With a hole where points are missing, as a line that spans no nulls has it."""
    times: list[float] = []
    values: list[float] = []
    for at, value in series.points:
        if times and at - times[-1] > 1.5 * step:
            times.append(times[-1] + step)
            values.append(GAP)
        times.append(at)
        values.append(value)
    return [datetime.fromtimestamp(at) for at in times], values


def draw_series(figure: Figure, area: Area, panel: Panel, answers: Answers, window: Window) -> None:
    beside = panel.model["options"]["legend"]["placement"] == "right"
    lowest = panel.model["options"]["legend"].get("calcs") == ["min"]
    right = any(panel.field(ref).get("custom.axisPlacement") == "right" for ref in answers)
    axes = area.axes(figure, right=0.11 if beside else 0.045 if right else 0.008, below=0.8 if beside else 1.6)
    twin = axes.twinx() if right else axes
    drawn = [(target, series) for target in panel.targets for series in answers[target["refId"]]]
    names: list[tuple[str, str, float]] = []
    edges: dict[str, Series] = {}
    below: dict[float, float] = {}
    for place, (target, series) in enumerate(drawn):
        field = panel.field(target["refId"])
        name, colour = legend(target, series.labels), colours.of_series(place, field)
        edges[name] = series
        if field.get("custom.stacking", {}).get("mode") == "normal":
            draw_on_top(axes, series, colour, below)
        else:
            draw_one(twin if field.get("custom.axisPlacement") == "right" else axes, field, series, colour, window, edges)
        names.append((name, colour, (min if lowest else max)((value for _, value in series.points), default=GAP)))
    scale(axes, panel.field(), window)
    if right:
        scale(twin, panel.field(next(r for r in answers if panel.field(r).get("custom.axisPlacement") == "right")), window)
    if beside:
        legend_beside(axes, names, panel.field(), lowest)
    else:
        legend_below(figure, area, axes, [Line2D([], [], color=colour, label=name) for name, colour, _ in names])


def draw_one(axes: Axes, field: dict, series: Series, colour: str, window: Window, edges: dict[str, Series]) -> None:
    times, values = spaced(series, window.step)
    below = edges.get(field.get("custom.fillBelowTo", ""))
    if field.get("custom.drawStyle") == "bars":
        axes.bar(times, values, width=window.step / 86400, color=colour)
    elif below:
        lows = dict(below.points)
        axes.fill_between(times, [lows.get(at.timestamp(), value) for at, value in zip(times, values)], values, color=colour, alpha=0.3)
    elif field.get("custom.lineWidth"):
        dashed = field.get("custom.lineStyle", {}).get("fill") == "dash"
        stepped = field.get("custom.lineInterpolation") == "stepAfter"
        axes.plot(times, values, color=colour, linewidth=1.2, linestyle="--" if dashed else "-", drawstyle="steps-post" if stepped else "default")


def draw_on_top(axes: Axes, series: Series, colour: str, below: dict[float, float]) -> None:
    """`below`: how high the stack is at each time; it grows."""
    lows = [below.get(at, 0.0) for at, _ in series.points]
    below.update({at: low + value for low, (at, value) in zip(lows, series.points)})
    times = [datetime.fromtimestamp(at) for at, _ in series.points]
    axes.fill_between(times, lows, [below[at] for at, _ in series.points], color=colour, alpha=0.6, linewidth=0)


def scale(axes: Axes, field: dict, window: Window) -> None:
    axes.set_xlim(datetime.fromtimestamp(window.start), datetime.fromtimestamp(window.end))
    axes.xaxis.set_major_formatter(DateFormatter("%H:%M:%S"))
    axes.yaxis.set_major_formatter(lambda value, _: written(value, field["unit"]))
    axes.tick_params(labelsize=7)
    axes.grid(color="#e8e8e8")
    most = field.get("max") or max(axes.get_ylim()[1], field.get("custom.axisSoftMax") or axes.get_ylim()[1])
    least = min(axes.get_ylim()[0], field.get("custom.axisSoftMin", axes.get_ylim()[0]))
    axes.set_ylim(field.get("min", least), most * 1.02)
    if field.get("custom.thresholdsStyle", {}).get("mode") == "dashed":
        for step in field["thresholds"]["steps"]:
            if step["value"] is not None:
                axes.axhline(step["value"], color=colours.COLOURS[step["color"]], linestyle=":", linewidth=1)


def legend_beside(axes: Axes, names: list[tuple[str, str, float]], field: dict, lowest: bool) -> None:
    """The highest or the lowest first, as many as there is room for."""
    names = sorted(names, key=lambda one: one[2], reverse=not lowest)[:14]
    lines = [Line2D([], [], color=colour, label=f"{name}  {written(most, field['unit'])}") for name, colour, most in names]
    axes.legend(handles=lines, fontsize=6, loc="upper left", bbox_to_anchor=(1.01, 1.03), frameon=False)


def legend_below(figure: Figure, area: Area, axes: Axes, handles: list[Artist]) -> None:
    axes.legend(handles=handles, fontsize=7, loc="upper left", bbox_to_anchor=(area.x + 0.01, area.y + 0.9 * area.row),
                bbox_transform=figure.transFigure, ncol=6, frameon=False)


def draw_timeline(figure: Figure, area: Area, panel: Panel, answers: Answers, window: Window) -> None:
    found = [(target, series) for target in panel.targets for series in answers[target["refId"]]]
    axes = area.axes(figure, left=0.075, below=1.6)
    for line, (target, series) in enumerate(found):
        times = [date2num(datetime.fromtimestamp(at)) for at, _ in series.points]
        shades = [colours.of_value(value, panel.field()) for _, value in series.points]
        axes.broken_barh([(at, window.step / 86400) for at in times], (line - 0.4, 0.8), color=shades)
    axes.set_yticks(range(len(found)), [legend(target, series.labels) for target, series in found], fontsize=7)
    axes.set_xlim(datetime.fromtimestamp(window.start), datetime.fromtimestamp(window.end))
    axes.xaxis.set_major_formatter(DateFormatter("%H:%M:%S"))
    axes.tick_params(labelsize=7)
    axes.invert_yaxis()
    words = [word for mapping in panel.field()["mappings"] for word in mapping["options"].values()]
    patches = [Patch(color=colours.COLOURS[word["color"]], label=word["text"]) for word in words]
    legend_below(figure, area, axes, patches)
