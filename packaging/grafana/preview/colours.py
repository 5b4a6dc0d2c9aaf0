"""Grafana's colours by name, and the colour of a value by a field's mappings and thresholds."""
COLOURS = {"green": "#56a64b", "yellow": "#f2cc0c", "orange": "#ff780a", "red": "#e02f44", "blue": "#3274d9",
           "light-blue": "#8ab8ff", "text": "#24292e", "purple": "#a352cc", "transparent": "#ffffff"}
PALETTE = ["#7eb26d", "#eab839", "#6ed0e0", "#ef843c", "#e24d42", "#1f78c1", "#ba43a9", "#705da0", "#508642", "#cca300",
           "#447ebc", "#c15c17", "#890f02", "#0a437c"]


def of_series(place: int, field: dict) -> str:
    fixed = field.get("color", {}).get("fixedColor")
    return COLOURS.get(fixed, fixed) if fixed else PALETTE[place % len(PALETTE)]


def mapped(value: float, field: dict) -> dict:
    """Text and colour of a value that has a word of its own; empty where it has none."""
    for mapping in field.get("mappings", []):
        found = mapping["options"].get(f"{value:g}")
        if found:
            return found
    return {}


def of_value(value: float, field: dict) -> str:
    word = mapped(value, field)
    if word:
        return COLOURS[word["color"]]
    steps = field.get("thresholds", {}).get("steps", [])
    reached = [step["color"] for step in steps if step["value"] is None or value >= step["value"]]
    return COLOURS[reached[-1]] if reached else COLOURS["text"]
