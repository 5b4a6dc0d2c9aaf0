#!/usr/bin/env python3
"""The fake accepts every scenario of tests/fixtures/nvidia, and every capture of nvidia-smi becomes a scenario that
returns the printed values through NVML's functions.

$GPUMETER_FAKE_NVML is the fake, $GPUMETER_CAPTURES the folder that has nvidia/ in it (../shared/captures).
"""
import ctypes
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[2]
CAPTURES = Path(os.environ.get("GPUMETER_CAPTURES") or ROOT.parent / "shared/captures") / "nvidia"
LIBRARY = os.environ["GPUMETER_FAKE_NVML"]
sys.path.insert(0, str(HERE))
from nvidia_smi_tree import Node, parse, section  # noqa: E402

# scenario: result of nvmlInit_v2 at 0 s, devices
SCENARIOS = {"h100_8": (0, 8), "h100_8_lost3": (0, 8), "h100_8_hung3": (0, 8), "h100_8_all_hung": (0, 8),
             "h100_8_xid_storm": (0, 8), "h100_wave": (0, 1), "h200_mig7": (0, 1), "a100": (0, 1), "l40s": (0, 1),
             "rtx_4080": (0, 1), "pre_volta": (0, 1), "gb10": (0, 1),
             "thor": (0, 1), "gb200_nvl72": (0, 4), "vgpu_host": (0, 1), "blackwell": (0, 1), "no_driver": (9, 0), "driver_mismatch": (18, 0),
             "driver_returns": (9, 0), "hgx_b200": (0, 8), "gb300": (0, 4), "h100_nvl": (0, 2)}


class Nvml:
    """The fake, playing one scenario at 0 s."""

    def __init__(self, library: str, scenario: Path) -> None:
        os.environ["FAKE_NVML_SCENARIO"] = str(scenario)
        self.library = ctypes.CDLL(library)
        self.library.fake_nvml_set_time(ctypes.c_double(0))
        self.library.fake_nvml_reload()
        self.result = self.library.nvmlInit_v2()

    def close(self) -> None:
        self.library.nvmlShutdown()

    def count(self) -> int:
        return self.number("nvmlDeviceGetCount_v2") if self.result == 0 else 0

    def device(self, index: int) -> ctypes.c_void_p:
        handle = ctypes.c_void_p()
        self.library.nvmlDeviceGetHandleByIndex_v2(index, ctypes.byref(handle))
        return handle

    def number(self, function: str, *arguments: object) -> int | None:
        out = ctypes.c_uint()
        return None if getattr(self.library, function)(*arguments, ctypes.byref(out)) else out.value

    def encoder(self, device: ctypes.c_void_p) -> int | None:
        share, period = ctypes.c_uint(), ctypes.c_uint()
        failed = self.library.nvmlDeviceGetEncoderUtilization(device, ctypes.byref(share), ctypes.byref(period))
        return None if failed else share.value

    def text(self, function: str, device: ctypes.c_void_p) -> str | None:
        out = ctypes.create_string_buffer(96)
        return None if getattr(self.library, function)(device, out, 96) else out.value.decode()

    def processes(self, device: ctypes.c_void_p) -> dict[int, set[str]]:
        """Of each pid the letters of the lists it is in."""
        found: dict[int, set[str]] = {}
        for letter, kind in (("C", "Compute"), ("G", "Graphics"), ("M", "MPSCompute")):
            count, room = ctypes.c_uint(64), (ctypes.c_uint * (64 * 6))()
            if getattr(self.library, f"nvmlDeviceGet{kind}RunningProcesses_v3")(device, ctypes.byref(count), room) == 0:
                for place in range(count.value):
                    found.setdefault(room[6 * place], set()).add(letter)
        return found

    def memory(self, device: ctypes.c_void_p) -> int | None:
        out = (ctypes.c_uint64 * 3)()
        return None if self.library.nvmlDeviceGetMemoryInfo(device, out) else out[0]


def printed(text: str, unit: str, scale: int) -> int | None:
    found = re.fullmatch(r"(-?[\d.]+) " + unit, text)
    return round(float(found[1]) * scale) if found else None


def printed_processes(gpu: Node) -> dict[int, set[str]]:
    """The same, of "Process ID : 2165 / Type : C+G"."""
    return {int(node.value): set(node.at("Type").value.split("+")) for node in gpu.at("Processes").all("Process ID")}


def check_capture(capture: Path, which: str, scenario: Path) -> list[str]:
    text = capture.read_text(errors="replace")
    gpus = parse(section(text, f"{which} :: query (-q)") or text).all("GPU")
    scenario.write_text(subprocess.run([sys.executable, "-B", HERE / "from_nvidia_smi.py", capture, "--section", which],
                                       check=True, capture_output=True, text=True).stdout)
    nvml = Nvml(LIBRARY, scenario)
    wrong = [] if nvml.count() == len(gpus) > 0 else [f"{nvml.count()} devices of {len(gpus)}"]
    for index, gpu in enumerate(gpus if not wrong else []):
        device = nvml.device(index)
        draw = gpu.at("GPU Power Readings").deep("Average Power Draw", "Power Draw", "Instantaneous Power Draw").value
        instances = [i for i in range(7) if nvml.library.nvmlDeviceGetMigDeviceHandleByIndex(
            device, i, ctypes.byref(ctypes.c_void_p())) == 0]
        name = gpu.at("Product Name").read()
        for what, expected, got in (
                ("name", name, nvml.text("nvmlDeviceGetName", device)),
                ("serial", gpu.at("Serial Number").read(), nvml.text("nvmlDeviceGetSerial", device)),
                ("memory", printed(gpu.at("FB Memory Usage", "Total").value, "MiB", 1 << 20), nvml.memory(device)),
                ("power", printed(draw, "W", 1000), nvml.number("nvmlDeviceGetPowerUsage", device)),
                ("temperature", printed(gpu.at("Temperature", "GPU Current Temp").value, "C", 1),
                 nvml.number("nvmlDeviceGetTemperature", device, 0)),
                ("SM clock", printed(gpu.at("Clocks", "SM").value, "MHz", 1),
                 nvml.number("nvmlDeviceGetClockInfo", device, 1)),
                ("encoder", printed(gpu.at("Utilization", "Encoder").value, "%", 1), nvml.encoder(device)),
                ("processes", printed_processes(gpu), nvml.processes(device)),
                ("MIG instances", len(gpu.all("MIG Device")), len(instances))):
            if expected != got:
                wrong.append(f"GPU {index}: {what} is {got}, nvidia-smi says {expected}")
    nvml.close()
    return [f"{capture.name} {which}: {line}" for line in wrong]


def check_scenarios(folder: Path) -> list[str]:
    found = {file.stem for file in (ROOT / "tests/fixtures/nvidia").glob("*.yaml")}
    wrong = [f"no expectation of {name}" for name in found ^ set(SCENARIOS)]
    for name, expected in SCENARIOS.items():
        nvml = Nvml(LIBRARY, ROOT / f"tests/fixtures/nvidia/{name}.yaml")
        if (nvml.result, nvml.count()) != expected:
            wrong.append(f"{name}: {(nvml.result, nvml.count())}, not {expected}")
        uuids = {nvml.text("nvmlDeviceGetUUID", nvml.device(i)) for i in range(nvml.count())}
        if len(uuids - {None}) != expected[1]:
            wrong.append(f"{name}: UUIDs {uuids}")
        nvml.close()
    copy = folder / "old.so"
    subprocess.run([sys.executable, "-B", HERE / "without_symbols.py", LIBRARY, copy, "--scenario",
                    ROOT / "tests/fixtures/nvidia/pre_volta.yaml"], check=True)
    old = ctypes.CDLL(str(copy))
    if hasattr(old, "nvmlDeviceGetMemoryInfo_v2") or not hasattr(old, "nvmlDeviceGetMemoryInfo"):
        wrong.append("without_symbols.py left a symbol or took too many")
    return wrong


def main() -> int:
    captures = sorted(CAPTURES.glob("linux-*.txt")) if CAPTURES.is_dir() else []
    with tempfile.TemporaryDirectory() as folder:
        wrong = check_scenarios(Path(folder))
        for capture in captures:
            for which in ("idle", "load"):
                wrong += check_capture(capture, which, Path(folder) / "scenario.yaml")
    print("\n".join(wrong) or f"{len(SCENARIOS)} scenarios and {len(captures)} captures are as they say")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
