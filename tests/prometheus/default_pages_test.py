#!/usr/bin/env python3
"""Given each card of the golden pages, the page that the daemon serves by default has every series that a shipped rule, alert or panel
selects, unless the series is 0, and a series of each family of which they select one. The full page is the golden one."""
import sys
import unittest
from collections.abc import Callable, Iterator
from pathlib import Path

TESTS = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(TESTS)]
import golden_devices_test as devices  # noqa: E402
import golden_nvidia_test as nvidia  # noqa: E402
import golden_test as cards  # noqa: E402
from harness import Page, text_page  # noqa: E402
from standard_page_test import selectors  # noqa: E402

# Read by a panel and by an alert's text, which both have nothing to show before the first event of a Trainium. A GPU that can fall off
# the bus has event="bus_lost" from the start.
EMPTY_AT_FIRST = {"gpu_events_total"}


def machines() -> Iterator[tuple[str, Callable[[], str]]]:
    """The name of a golden page, and what makes the default page of the same machine."""
    for card in (*cards.CARDS.glob("*.card"), *cards.INTEL_CARDS.glob("*.card")):
        yield f"{card.parent.name}_{card.stem}", lambda: cards.page_of(card, detail=None)
    for machine in devices.MACHINES.glob("*.tree"):
        yield f"device_{machine.stem}", lambda: devices.page_of(machine, detail=None)
    for name in nvidia.scenarios():
        if name not in (*nvidia.NO_GPUS, *nvidia.SAME_AS):
            yield f"nvidia_{name}", lambda: nvidia.of_gpus(nvidia.page_of(name, detail=None))


def missing(full: Page, default: Page, named: set) -> set:
    """Series, and families of which the default page has none."""
    read = {(name, series) for name, matchers in named for series in full.of(name, **dict(matchers))}
    gone = {name for name, _ in read} - {name for name, _ in default} - EMPTY_AT_FIRST
    return gone | {series for _, series in read if full[series] != 0 and series not in default}


class DefaultPagesTest(unittest.TestCase):
    def test_every_card_feeds_what_is_shipped(self):
        named = selectors()
        for name, page_of in machines():
            with self.subTest(page=name):
                full, default = text_page((cards.GOLDEN / f"{name}.prom").read_text()), text_page(page_of())
                self.assertEqual(missing(full, default, named), set())
                self.assertEqual({series: full[series] for series in default}, default)
                print(f"{name}: {len(full)} series, {len(default)} by default")


if __name__ == "__main__":
    unittest.main(verbosity=2)
