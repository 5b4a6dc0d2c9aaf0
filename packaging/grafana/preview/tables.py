"""The rows that Grafana builds from a table panel's queries: merged by labels, then sorted and named."""
from dataclasses import dataclass

from dashboards import Panel
from live import Series


@dataclass(frozen=True)
class Table:
    columns: list[str]
    rows: list[dict[str, str | float]]


def merged(answers: dict[str, list[Series]]) -> list[dict[str, str | float]]:
    """Rows are one where all labels that both have are equal; a query's value is `Value #` and its letter."""
    rows: list[dict[str, str | float]] = []
    for ref, series in answers.items():
        for one in series:
            cells = {**one.labels, f"Value #{ref}": one.points[-1][1]}
            into = next((row for row in rows if joins(row, cells)), None)
            rows.append(cells) if into is None else into.update(cells)
    return rows


def joins(row: dict, cells: dict) -> bool:
    shared = row.keys() & cells.keys()
    return bool(shared) and all(row[name] == cells[name] for name in shared)


def sort(rows: list[dict[str, str | float]], key: str, falling: bool) -> list[dict[str, str | float]]:
    """Rows without the key come last."""
    return sorted((row for row in rows if key in row), key=lambda row: row[key], reverse=falling) + [row for row in rows if key not in row]


def table(panel: Panel, answers: dict[str, list[Series]]) -> Table:
    steps = {step["id"]: step["options"] for step in panel.model["transformations"]}
    kept = steps["filterFieldsByName"]["include"]["names"]
    names, places = steps["organize"]["renameByName"], steps["organize"]["indexByName"]
    columns = [name for name in sorted(kept, key=places.__getitem__) if not panel.field(name=names[name]).get("custom.hidden")]
    rows = [{names[name]: row[name] for name in columns if name in row} for row in merged(answers)]
    for by in reversed(panel.model["options"].get("sortBy", [])):
        rows = sort(rows, by["displayName"], by.get("desc", False))
    return Table([names[name] for name in columns], rows)
