"""Positions of panels in the picture, and the panels that show last values: numbers and tables."""
from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

import colours
from dashboards import Panel, legend
from live import Series, Window
from tables import table
from units import written

Answers = dict[str, list[Series]]


@dataclass(frozen=True)
class Area:
    """In shares of the picture, from its lower left corner; `inch` is a row's height."""
    x: float
    y: float
    width: float
    height: float
    row: float

    @classmethod
    def of(cls, place: dict, rows: int) -> "Area":
        gap = 0.1
        return cls((place["x"] + gap) / 24, 1 - (place["y"] + place["h"] - gap) / rows, (place["w"] - 2 * gap) / 24,
                   (place["h"] - 2 * gap) / rows, 1 / rows)

    def write(self, figure: Figure, title: str, size: int, frame: bool) -> None:
        if frame:
            figure.add_artist(Rectangle((self.x, self.y), self.width, self.height, facecolor="white", edgecolor="#d8d9da", zorder=-1))
        figure.text(self.x + 0.004, self.y + self.height - self.row * 0.3, title, fontsize=size, weight="bold", va="center")

    def centre(self, figure: Figure, text: str, colour: str, size: float, at: float = 0.42) -> None:
        figure.text(self.x + self.width / 2, self.y + self.height * at, text, color=colour, fontsize=size, ha="center", va="center")

    def axes(self, figure: Figure, left: float = 0.045, right: float = 0.008, below: float = 1.5) -> Axes:
        """Inside of the frame, room left for the title and (in rows) for what stands below."""
        bottom = self.row * below
        return figure.add_axes((self.x + left, self.y + bottom, self.width - left - right, self.height - bottom - self.row * 0.9))


def text_of(value: float, field: dict) -> str:
    return colours.mapped(value, field).get("text") or written(value, field["unit"], field.get("decimals"))


def draw_stat(figure: Figure, area: Area, panel: Panel, answers: Answers, _: Window) -> None:
    found = [(target, series) for target in panel.targets for series in answers[target["refId"]]]
    for place, (target, series) in enumerate(found):
        field, value = panel.field(target["refId"]), series.points[-1][1]
        at = 0.9 * (1 - (place + 0.5) / len(found))
        name = f"{legend(target, series.labels)}: " if len(panel.targets) > 1 else ""
        area.centre(figure, name + text_of(value, field), colours.of_value(value, field), 18 if not name else 12, at)


def draw_table(figure: Figure, area: Area, panel: Panel, answers: Answers, _: Window) -> None:
    made = table(panel, answers)
    fields = {name: panel.field(name=name) for name in made.columns}
    axes = area.axes(figure, left=0.004, right=0.004, below=0.2)
    axes.axis("off")
    room = max(1, round(area.height / area.row) - 2)  # Grafana's lines are about as high as a row of its grid; the rest is scrolled to
    rows = made.rows[:room]
    lines = [[shown(row.get(name, ""), fields[name]) for name in made.columns] for row in rows]
    drawn = axes.table(lines, colLabels=made.columns, loc="upper center", cellLoc="left")
    drawn.auto_set_font_size(False)
    drawn.set_fontsize(8)
    drawn.scale(1, 1.6)
    for line, row in enumerate(rows, start=1):
        for column, name in enumerate(made.columns):
            if isinstance(row.get(name), float):
                paint(drawn[line, column], row[name], fields[name])


def shown(cell: str | float, field: dict) -> str:
    return cell if isinstance(cell, str) else text_of(cell, field)


def paint(cell: Rectangle, value: float, field: dict) -> None:
    kind = field.get("custom.cellOptions", {}).get("type")
    if kind == "color-background":
        cell.set_facecolor(colours.of_value(value, field))
    elif kind == "gauge":
        cell.get_text().set_color(colours.of_value(value, field))
