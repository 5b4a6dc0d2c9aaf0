"""Values as Grafana formats them, for the units of the dashboards."""
import time
from math import isnan

SI = ((1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"), (1, ""))
IEC = ((2**40, "Ti"), (2**30, "Gi"), (2**20, "Mi"), (2**10, "Ki"), (1, ""))
PREFIXED = {"bytes": (IEC, "B"), "Bps": (SI, "B/s"), "hertz": (SI, "Hz"), "watt": (SI, "W"), "short": (SI, ""), "joule": (SI, "J"), "flops": (SI, "FLOP/s")}
PLAIN = {"celsius": "°C", "volt": "V", "rotrpm": "rpm", "string": ""}


def written(value: float, unit: str, decimals: int | None = None) -> str:
    if isnan(value):
        return "NaN"
    if unit == "percentunit":
        return f"{value * 100:.{decimals if decimals is not None else 1}f} %"
    if unit == "dateTimeFromNow":
        return f"{time.time() - value / 1000:.0f} s ago"
    if unit == "s":
        return f"{value * 1000:.3g} ms" if abs(value) < 1 else f"{value:.3g} s"
    if unit not in PREFIXED:
        return f"{rounded(value, decimals)} {PLAIN[unit]}".strip()
    steps, name = PREFIXED[unit]
    size, prefix = next((step for step in steps if abs(value) >= step[0]), (1, ""))
    return f"{rounded(value / size, decimals)} {prefix}{name}".strip()


def rounded(value: float, decimals: int | None) -> str:
    return f"{value:.{decimals}f}" if decimals is not None else f"{value:.3g}" if abs(value) < 1000 else f"{value:.0f}"
