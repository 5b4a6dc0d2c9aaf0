"""A histogram over time: one column per point, one row per bucket, darker with more observations."""
from datetime import datetime
from math import isnan

from matplotlib.dates import DateFormatter, date2num
from matplotlib.figure import Figure

from dashboards import Panel
from draw_kinds import Answers, Area
from live import Series, Window
from units import written


def bound(series: Series) -> float:
    return float(series.labels["le"])


def counted(series: list[Series], times: list[float], width: float) -> list[list[int]]:
    """How many series are in each band of the width, by band and time."""
    found = [{at: value for at, value in one.points if not isnan(value)} for one in series]
    bands = 1 + max((int(value / width) for points in found for value in points.values()), default=0)
    return [[sum(at in points and int(points[at] / width) == band for points in found) for at in times] for band in range(bands)]


def draw_heatmap(figure: Figure, area: Area, panel: Panel, answers: Answers, window: Window) -> None:
    """Buckets are cumulative: each row is what its bucket holds beyond the one below."""
    if panel.model["options"]["calculate"]:
        draw_counted(figure, area, panel, answers, window)
        return
    rows = sorted((one for series in answers.values() for one in series), key=bound)
    times = sorted({at for row in rows for at, _ in row.points})
    columns = [[dict(row.points).get(at, 0.0) for row in rows] for at in times]
    cells = [[column[place] - (column[place - 1] if place else 0) for column in columns] for place in range(len(rows))]
    unit = panel.model["options"]["yAxis"]["unit"]
    names = [written(bound(row), unit) if bound(row) < float("inf") else "+Inf" for row in rows]
    draw_cells(figure, area, window, times, cells, names)


def draw_counted(figure: Figure, area: Area, panel: Panel, answers: Answers, window: Window) -> None:
    series = [one for found in answers.values() for one in found]
    times = sorted({at for one in series for at, _ in one.points})
    width = float(panel.model["options"]["calculation"]["yBuckets"]["value"])
    cells = counted(series, times, width)
    unit = panel.model["options"]["yAxis"]["unit"]
    draw_cells(figure, area, window, times, cells, [written(width * (band + 1), unit, 0) for band in range(len(cells))])


def draw_cells(figure: Figure, area: Area, window: Window, times: list[float], cells: list[list], names: list[str]) -> None:
    """`names`: of the upper edges; as many as there is room for."""
    axes = area.axes(figure, below=0.8)
    edges = [date2num(datetime.fromtimestamp(at)) for at in [*times, times[-1] + window.step]]
    axes.pcolormesh(edges, range(len(names) + 1), cells, cmap="Blues", edgecolors="white", linewidth=0.1)
    each = 1 + len(names) // 16
    axes.set_yticks(range(1, len(names) + 1)[::each], names[::each])
    axes.xaxis.set_major_formatter(DateFormatter("%H:%M:%S"))
    axes.tick_params(labelsize=7)
