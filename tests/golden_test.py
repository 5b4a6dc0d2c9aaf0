#!/usr/bin/env python3
"""Given a card of tests/fixtures/amd or intel, when the binary has sampled it once, then exactly the page in tests/golden.

The daemon's own families (gpumeter_*, process_*) are left out, since they differ from run to run. UPDATE_GOLDEN=1
writes the pages anew; read the diff before you commit it.
"""
import os
import re
import sys
import tempfile
import unittest
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE / "e2e"))
sys.path.insert(0, str(HERE / "fixtures"))
from harness import run  # noqa: E402
import instinct_cards  # noqa: E402
from card_tree import CARDS, INTEL_CARDS, lay, write  # noqa: E402

GOLDEN = HERE / "golden"
OWN_FAMILY = re.compile(r"(# (HELP|TYPE) )?(gpumeter|process)_")


def page_of(card: Path, detail: str | None = "full") -> str:
    with tempfile.TemporaryDirectory(prefix="gpumeter-test-") as folder:
        root = Path(folder)
        lay(root / "sys", card)
        write(root / "gpumeter.yaml", f"collectors:\n  amd:\n    ids_file: {CARDS}/amdgpu.ids\n"
              f"  intel:\n    ids_file: {INTEL_CARDS}/pci.ids\n".encode())
        said = run("--once=0", f"--config.file={root}/gpumeter.yaml", f"--path.sysfs={root}/sys",
                   f"--path.procfs={root}", f"--path.state={root}", detail=detail)
    assert said.returncode == 0, said.stderr
    return "".join(line for line in said.stdout.splitlines(keepends=True) if not OWN_FAMILY.match(line))


class GoldenTest(unittest.TestCase):
    maxDiff = None

    def test_synthetic_cards_are_what_their_script_writes(self):
        for file, text in instinct_cards.texts().items():
            with self.subTest(card=file):
                self.assertEqual((CARDS / file).read_text(), text)

    def test_pages(self):
        cards = sorted(CARDS.glob("*.card")) + sorted(INTEL_CARDS.glob("*.card"))
        self.assertEqual({card.parent.name for card in cards}, {"amd", "intel"})
        for card in cards:
            with self.subTest(card=card.stem):
                golden = GOLDEN / f"{card.parent.name}_{card.stem}.prom"
                page = page_of(card)
                if os.environ.get("UPDATE_GOLDEN") == "1":
                    write(golden, page.encode())
                self.assertEqual(page, golden.read_text())


if __name__ == "__main__":
    unittest.main(verbosity=2)
