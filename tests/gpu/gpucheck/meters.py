"""Compares the counters with the truth: energy, busy time, throttled time and its unit, the tensor pipe."""
from __future__ import annotations

import time
from typing import Callable, NamedTuple

from .load import Load
from .nvml import ENERGY, POWER_AVERAGE, POWER_INSTANT, THROTTLE_TIMES, Nvml
from .page import Page, delta
from .rows import REASON_TIMES
from .smi import Told

ENERGY_TOLERANCE = 0.10  # the sensor looks at a part of the time only (arXiv 2312.02741)
DUTY_TOLERANCE = 0.10
REASON_TOLERANCE = 2  # seconds: the page's window may begin and end up to a second apart


class Finding(NamedTuple):
    what: str
    got: str
    expected: str
    verdict: str  # same, differs, not told, noted


def integral(samples: list[tuple[float, float]]) -> float:
    """Of (time, value), by trapezoids."""
    return sum((t1 - t0) * (v0 + v1) / 2 for (t0, v0), (t1, v1) in zip(samples, samples[1:]))


def near(what: str, got: float | None, expected: float | None, tolerance: float) -> Finding:
    """Off by this share of what is expected at the most."""
    if got is None or expected is None:
        return Finding(what, f"{got}", f"{expected}", "not told")
    inside = abs(got - expected) <= tolerance * abs(expected)
    return Finding(what, f"{got:.4g}", f"{expected:.4g} +- {tolerance:.0%}", "same" if inside else "differs")


def poll(nvml: Nvml, seconds: float, hertz: float = 20) -> list[tuple[float, dict[int, float | None], int | None]]:
    """(time, fields, event reasons), so often."""
    ids = [ENERGY, POWER_AVERAGE, POWER_INSTANT, *THROTTLE_TIMES]
    end, found = time.monotonic() + seconds, []
    while time.monotonic() < end:
        found.append((time.monotonic(), nvml.fields(ids), nvml.event_reasons()))
        time.sleep(1 / hertz)
    return found


Polled = list[tuple[float, "dict[int, float | None]", "int | None"]]


def power(polled: Polled, field: int) -> float | None:
    """Joules by integrating a power field, which is in milliwatts."""
    samples = [(at, fields[field] / 1e3) for at, fields, _ in polled if fields.get(field) is not None]
    return integral(samples) if len(samples) > 1 else None


def energy(polled: Polled, before: Page, after: Page, uuid: str) -> list[Finding]:
    first, last = polled[0][1].get(ENERGY), polled[-1][1].get(ENERGY)
    driver = (last - first) / 1e3 if first is not None and last is not None else None
    ours = delta(before, after, "gpu_energy_joules_total", uuid)
    slack = 0.01 + 1 / (polled[-1][0] - polled[0][0])  # the page's window may begin and end up to a second apart from this one
    return [near("energy, driver's counter, J: against the integral of instant power", driver, power(polled, POWER_INSTANT), ENERGY_TOLERANCE),
            near("energy, driver's counter, J: against the integral of average power", driver, power(polled, POWER_AVERAGE), ENERGY_TOLERANCE),
            near("energy, gpu_energy_joules_total, J: against the driver's counter", ours, driver, slack)]


def unit(gained: float, seconds: float, held: float) -> str:
    """The unit of a counter that gained so much while its reason held for this share of the time."""
    if gained == 0:
        return "no gain"
    if gained > seconds * 1e6 * 1.05:
        return "ns"  # in microseconds it would have held longer than the time there was
    if held == 0:
        return "us or ns"
    return "us" if abs(gained / (held * seconds * 1e6) - 1) < abs(gained / (held * seconds * 1e9) - 1) else "ns"


def throttle_units(polled: Polled) -> list[Finding]:
    """Fields 74 to 81 and 269 to 271: nanoseconds in nvml.h, microseconds in nvidia-smi."""
    seconds = polled[-1][0] - polled[0][0]
    held = sum(1 for _, _, reasons in polled if reasons and reasons & ~1) / len(polled)  # bit 1: idle
    found = []
    for field, name in THROTTLE_TIMES.items():
        first, last = polled[0][1].get(field), polled[-1][1].get(field)
        if first is None or last is None:
            found.append(Finding(f"unit of field {field}, {name}", "", "", "not told"))
            continue
        said = unit(last - first, seconds, held)
        found.append(Finding(f"unit of field {field}, {name}", f"gained {last - first:.6g} in {seconds:.2f} s: {said}", "", "noted"))
    return found


def reason_times(first: Told, last: Told, before: Page, after: Page, uuid: str) -> list[Finding]:
    """The increase of nvidia-smi's counters in the meantime, converted from microseconds to seconds."""
    found = []
    for field, word in REASON_TIMES.items():
        ours = delta(before, after, "gpu_throttle_reason_seconds_total", uuid, reason=word)
        start, end = first.get(field), last.get(field)
        if start is None or end is None or ours is None:
            found.append(Finding(f"gain of {field}, s", f"{ours}", "", "not told" if end is None else "absent"))
            continue
        theirs = (float(end) - float(start)) / 1e6
        verdict = "same" if abs(ours - theirs) <= REASON_TOLERANCE else "differs"
        found.append(Finding(f"gain of {field}, s", f"{ours:.3f}", f"{theirs:.3f} +- {REASON_TOLERANCE}", verdict))
    return found


def duty(page: Callable[[], Page], uuid: str, seconds: float, margin: float = 2) -> list[Finding]:
    """Works for half of each 0.4 s: busy over observed time must be 0.5, whatever a gauge shows."""
    with Load(uuid, seconds + 2 * margin, 0.2, 0.2) as load:
        time.sleep(margin)
        before = page()
        time.sleep(seconds)
        after = page()
        result = load.result()
    busy = delta(before, after, "gpu_busy_seconds_total", uuid)
    observed = delta(before, after, "gpu_observed_seconds_total", uuid, tier="fast")
    share = busy / observed if busy is not None and observed else None
    if share is None:
        return [Finding("busy share at a known duty cycle", "", f"{result['duty']:.3f}", "not told")]
    verdict = "same" if abs(share - result["duty"]) <= DUTY_TOLERANCE else "differs"
    return [Finding("busy share at a known duty cycle", f"{share:.3f}", f"{result['duty']:.3f} +- {DUTY_TOLERANCE}", verdict)]


def tensor(before: Page, after: Page, uuid: str, flops: float) -> list[Finding]:
    """The tensor pipe's share against the share of the peak that was reached; the clock is between the two."""
    active = delta(before, after, "gpu_pipe_active_seconds_total", uuid, pipe="tensor")
    observed = delta(before, after, "gpu_observed_seconds_total", uuid, tier="fast")
    peak = after.total("gpu_peak_flops", uuid, dtype="bf16")
    reached = f"{flops / peak:.3f} of the peak" if peak else f"{flops:.4g} flop/s"
    if active is None or not observed:
        return [Finding("tensor pipe under bf16 products", "", reached, "not told")]
    return [Finding("tensor pipe under bf16 products", f"{active / observed:.3f}", reached, "differs" if active == 0 else "noted")]
