"""A machine whose only GPUs are those of a scenario of the fake NVML, as environment for the binary."""
import os
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[2]
BINARY = Path(os.environ.get("GPUMETER_BINARY", ROOT / "build/release/gpumeter"))
LIBRARY = Path(os.environ.get("GPUMETER_FAKE_NVML", BINARY.parent / "tests/fake_nvml/libnvidia-ml.so.1"))
SCENARIOS = ROOT / "tests/fixtures/nvidia"


class Machine:
    """A context manager: `arguments` and `env` for the binary. `scenario` is a file, or the text of one; `time`: it
    stands still at so many seconds. `report` is what the fake tells of each shutdown (its README)."""

    def __init__(self, scenario: Path | str, time: float | None = None, **options: str):
        self._folder = tempfile.TemporaryDirectory(prefix="gpumeter-test-")
        self.folder = Path(self._folder.name)
        (self.folder / "sys").mkdir()
        self.report, self.config = self.folder / "report", self.folder / "gpumeter.yaml"
        self.library = self.folder / "libnvidia-ml.so.1"
        self.procfs = self._procfs_of(scenario)
        self._make_library(self._file_of(scenario))
        self.configure(**options)
        self.arguments = [f"--config.file={self.config}", f"--path.sysfs={self.folder}/sys"]
        self.env["FAKE_NVML_REPORT"] = str(self.report)
        if time is not None:
            self.env["FAKE_NVML_TIME"] = str(time)

    def _file_of(self, scenario: Path | str) -> Path:
        if isinstance(scenario, Path):
            return scenario
        folder = self.folder / "scenarios"
        folder.mkdir()
        for file in SCENARIOS.glob("*.yaml"):  # what it may include
            (folder / file.name).symlink_to(file)
        own = folder / "scenario.yaml"
        own.write_text(scenario)
        return own

    def _procfs_of(self, scenario: Path | str) -> Path:
        """SCENARIO.procfs next to SCENARIO.yaml, otherwise a folder without processes."""
        own = scenario.with_suffix(".procfs") if isinstance(scenario, Path) else self.folder
        return own if own.is_dir() else self.folder

    def _make_library(self, scenario: Path) -> None:
        self.env = {"FAKE_NVML_SCENARIO": str(scenario)}
        subprocess.run([sys.executable, "-B", HERE / "without_symbols.py", LIBRARY, self.library, "--scenario", scenario],
                       check=True)

    def configure(self, sampling: str = "{}", **options: str) -> None:
        """Options of the collector."""
        lines = "".join(f"    {name}: {value}\n" for name, value in {"library": str(self.library), **options}.items())
        self.config.write_text(f"sampling: {sampling}\ncollectors:\n  nvidia:\n{lines}")

    def __enter__(self) -> "Machine":
        return self

    def __exit__(self, *_: object) -> None:
        self._folder.cleanup()
