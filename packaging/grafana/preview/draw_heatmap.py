"""A histogram over time: one column per point, one row per bucket, darker with more observations."""
from datetime import datetime

from matplotlib.dates import DateFormatter, date2num
from matplotlib.figure import Figure

from dashboards import Panel
from draw_kinds import Answers, Area
from live import Series, Window
from units import written


def bound(series: Series) -> float:
    return float(series.labels["le"])


def draw_heatmap(figure: Figure, area: Area, panel: Panel, answers: Answers, window: Window) -> None:
    """Buckets are cumulative: each row is what its bucket holds beyond the one below."""
    rows = sorted((one for series in answers.values() for one in series), key=bound)
    times = sorted({at for row in rows for at, _ in row.points})
    columns = [[dict(row.points).get(at, 0.0) for row in rows] for at in times]
    cells = [[column[place] - (column[place - 1] if place else 0) for column in columns] for place in range(len(rows))]
    axes = area.axes(figure, below=0.8)
    edges = [date2num(datetime.fromtimestamp(at)) for at in [*times, times[-1] + window.step]]
    axes.pcolormesh(edges, range(len(rows) + 1), cells, cmap="Blues", edgecolors="white", linewidth=0.1)
    unit = panel.model["options"]["yAxis"]["unit"]
    axes.set_yticks(range(1, len(rows) + 1), [written(bound(row), unit) if bound(row) < float("inf") else "+Inf" for row in rows])
    axes.xaxis.set_major_formatter(DateFormatter("%H:%M:%S"))
    axes.tick_params(labelsize=7)
