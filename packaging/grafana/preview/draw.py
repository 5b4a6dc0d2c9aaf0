"""Draws a dashboard as one picture: each panel at its place, by its kind, with the results of its queries."""
from collections.abc import Callable

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402
from matplotlib.figure import Figure  # noqa: E402

from dashboards import Dashboard, Panel, substitute  # noqa: E402
from draw_kinds import Answers, Area, draw_stat, draw_table  # noqa: E402
from draw_heatmap import draw_heatmap
from draw_series import draw_series, draw_timeline  # noqa: E402
from live import Prometheus, Window  # noqa: E402

COLUMN_INCHES, ROW_INCHES = 0.75, 0.42  # Grafana's grid: 24 columns over the screen, rows of about 38 pixels
KINDS: dict[str, Callable[[Figure, Area, Panel, Answers, Window], None]] = {
    "timeseries": draw_series, "state-timeline": draw_timeline, "stat": draw_stat, "table": draw_table, "heatmap": draw_heatmap}


def answers_of(prometheus: Prometheus, panel: Panel, variables: dict[str, str], window: Window) -> Answers:
    return {target["refId"]: prometheus.evaluate(target, variables, window) for target in panel.targets}


def draw(dashboard: Dashboard, prometheus: Prometheus, variables: dict[str, str], window: Window, to: str) -> None:
    places = [model["gridPos"] for model in dashboard.model["panels"]]
    rows = max(place["y"] + place["h"] for place in places)
    figure = plt.figure(figsize=(24 * COLUMN_INCHES, rows * ROW_INCHES), facecolor="#f4f5f5")
    for heading in dashboard.headings:
        Area.of(heading["gridPos"], rows).write(figure, substitute(heading["title"], variables), size=11, frame=False)
    for panel in dashboard.panels:
        area = Area.of(panel.model["gridPos"], rows)
        area.write(figure, substitute(panel.title, variables), size=9, frame=True)
        answers = answers_of(prometheus, panel, variables, window)
        if any(answers.values()):
            KINDS[panel.kind](figure, area, panel, answers, window)
        else:
            area.centre(figure, "No data", "#888888", 10)
    figure.savefig(to, dpi=80)
    plt.close(figure)
