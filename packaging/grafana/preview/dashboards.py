"""Loads the generated dashboards, for the tests and the pictures."""
import json
import re
from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).resolve().parent.parent
NAMES = ("fleet", "gpu", "jobs")
PLACES = {"cluster_label": "cluster", "rack_label": "rack", "cluster": ".*", "rack": ".*"}  # as they are at first
ALL = ".+"  # what Grafana puts in for a variable's "All", by its allValue


@dataclass(frozen=True)
class Panel:
    model: dict

    @property
    def title(self) -> str:
        return self.model["title"]

    @property
    def kind(self) -> str:
        return self.model["type"]

    @property
    def targets(self) -> list[dict]:
        return self.model.get("targets", [])

    def field(self, ref: str | None = None, name: str | None = None) -> dict:
        """The field options in force for a query's series or a column, flat: `unit`, `custom.lineStyle`, ..."""
        config = self.model["fieldConfig"]
        found = {key: value for key, value in config["defaults"].items() if key != "custom"}
        found |= {f"custom.{key}": value for key, value in config["defaults"].get("custom", {}).items()}
        for override in config["overrides"]:
            if override["matcher"] in ({"id": "byFrameRefID", "options": ref}, {"id": "byName", "options": name}):
                found |= {option["id"]: option.get("value") for option in override["properties"]}
        return found


@dataclass(frozen=True)
class Dashboard:
    name: str
    model: dict

    @property
    def panels(self) -> list[Panel]:
        """Those that show something: no headings."""
        return [Panel(model) for model in self.model["panels"] if model["type"] != "row"]

    @property
    def headings(self) -> list[dict]:
        return [model for model in self.model["panels"] if model["type"] == "row"]

    @property
    def variables(self) -> dict[str, dict]:
        return {variable["name"]: variable for variable in self.model["templating"]["list"]}


def load(name: str, folder: Path = FOLDER) -> Dashboard:
    return Dashboard(name, json.loads((folder / f"{name}.json").read_text()))


def substitute(text: str, variables: dict[str, str]) -> str:
    """As Grafana does it: $name and ${name}; a variable that is not known stays as it is."""
    return re.sub(r"\$(?:\{(\w+)\}|(\w+))", lambda found: variables.get(found[1] or found[2], found[0]), text)


def legend(target: dict, labels: dict[str, str]) -> str:
    return re.sub(r"\{\{\s*(\w+)\s*\}\}", lambda found: labels.get(found[1], ""), target.get("legendFormat", ""))
