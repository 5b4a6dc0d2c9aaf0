#!/usr/bin/env python3
"""Given a card of tests/fixtures/amd, when the binary has sampled it once, then exactly the page in tests/golden.

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

CARDS = HERE / "fixtures/amd"
GOLDEN = HERE / "golden"
OWN_FAMILY = re.compile(r"(# (HELP|TYPE) )?(gpumeter|process)_")
PAGE_BYTES = 4096  # what a text padded with NULs is padded to


def write(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)


def link(path: Path, target: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.symlink_to(os.path.relpath(target, path.parent))


def content_of(text: str) -> bytes:
    """`hex:` bytes; `+NUL` behind a text: padded to a page; nothing: an empty file; `|`: a line break."""
    if text.startswith("hex:"):
        return bytes.fromhex(text[4:])
    padded = text.endswith(" +NUL")
    lines = text.removesuffix(" +NUL").replace("|", "\n").encode()
    return (lines + b"\n").ljust(PAGE_BYTES, b"\0") if padded else lines + b"\n" if lines else b""


def lay_bridge(folder: Path, told: str) -> Path:
    """`behind VENDOR:DEVICE ADDRESS [FILE=TEXT...]`: one more bridge between the root and the card."""
    identity, address, *files = told.split()
    write(folder / address / "uevent", f"DRIVER=pcieport\nPCI_CLASS=60400\nPCI_ID={identity}\n".encode())
    for name, text in (file.split("=") for file in files):
        write(folder / address / name, text.replace("_", " ").encode() + b"\n")
    return folder / address


def lay(sys_root: Path, card: Path) -> None:
    lines = [line.partition(" ") for line in card.read_text().splitlines() if not line.startswith("#")]
    facts = [(name, text) for name, _, text in lines]
    address = dict(facts)["address"]
    folder = lay_bridge(sys_root / "devices/pci0000:00", "1022:1483 0000:00:03.1")
    for name, text in facts:
        folder = lay_bridge(folder, text) if name == "behind" else folder
    folder = folder / address
    for name, text in facts:
        if name not in ("address", "behind"):
            home = sys_root / "class/kfd/kfd/topology" if name.startswith("nodes/") else folder
            write(home / name, content_of(text))
    write(folder / "drm/card0/dev", b"226:0\n")
    write(folder / "drm/renderD128/dev", b"226:128\n")
    link(sys_root / "bus/pci/devices" / address, folder)


def page_of(card: Path) -> str:
    with tempfile.TemporaryDirectory(prefix="gpumeter-test-") as folder:
        root = Path(folder)
        lay(root / "sys", card)
        write(root / "gpumeter.yaml", f"collectors:\n  amd:\n    ids_file: {CARDS}/amdgpu.ids\n".encode())
        said = run("--once=0", f"--config.file={root}/gpumeter.yaml", f"--path.sysfs={root}/sys",
                   f"--path.procfs={root}", f"--path.state={root}")
    assert said.returncode == 0, said.stderr
    return "".join(line for line in said.stdout.splitlines(keepends=True) if not OWN_FAMILY.match(line))


class GoldenTest(unittest.TestCase):
    maxDiff = None

    def test_synthetic_cards_are_what_their_script_writes(self):
        for file, text in instinct_cards.texts().items():
            with self.subTest(card=file):
                self.assertEqual((CARDS / file).read_text(), text)

    def test_pages(self):
        cards = sorted(CARDS.glob("*.card"))
        self.assertGreater(len(cards), 0)
        for card in cards:
            with self.subTest(card=card.stem):
                golden = GOLDEN / f"amd_{card.stem}.prom"
                page = page_of(card)
                if os.environ.get("UPDATE_GOLDEN") == "1":
                    write(golden, page.encode())
                self.assertEqual(page, golden.read_text())


if __name__ == "__main__":
    unittest.main(verbosity=2)
