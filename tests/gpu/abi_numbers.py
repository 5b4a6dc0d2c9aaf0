"""Numbers of NVML that stand as literals in collectors/nvidia and in the fake NVML, each with NVML's name for it.

A pattern finds a literal in a source and the word beside it; the word, mapped to NVML's, names the constant. A pattern that
finds nothing is an error of its own, so that a row that is written in another way is not left out silently.
"""
import re
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


@dataclass
class Literal:
    """`pattern` has the groups `number` and, if there is more than one, `word`; `name` has {} for the word's NVML name."""
    what: str
    files: str
    pattern: str
    name: str
    words: dict[str, str] = field(default_factory=dict)

    def found(self) -> list[tuple[str, str, str]]:
        """(where, NVML's name, number)"""
        hits = []
        for path in sorted((ROOT / "collectors/nvidia").glob(self.files)):
            for hit in re.finditer(self.pattern, path.read_text(), re.S):
                word = hit.groupdict().get("word", "")
                hits.append((f"{path.name} {word}".strip(), self.name.format(self.words.get(word, word.upper())), hit["number"]))
        return hits


GPM_WORDS = {
    "graphics": "GRAPHICS_UTIL", "SM": "SM_UTIL", "SM occupancy": "SM_OCCUPANCY", "any tensor": "ANY_TENSOR_UTIL", "FP64": "FP64_UTIL",
    "FP32": "FP32_UTIL", "FP16": "FP16_UTIL", "integer": "INTEGER_UTIL", "DFMA tensor": "DFMA_TENSOR_UTIL", "DMMA tensor": "DMMA_TENSOR_UTIL",
    "HMMA tensor": "HMMA_TENSOR_UTIL", "IMMA tensor": "IMMA_TENSOR_UTIL", "DRAM bandwidth": "DRAM_BW_UTIL", "PCIe TX bytes": "PCIE_TX",
    "PCIe RX bytes": "PCIE_RX", "PCIe TX MiB/s": "PCIE_TX_PER_SEC", "PCIe RX MiB/s": "PCIE_RX_PER_SEC",
    "NVENC": "NVENC_0_UTIL", "NVDEC": "NVDEC_0_UTIL", "NVJPG": "NVJPG_0_UTIL", "NVOFA": "NVOFA_0_UTIL",
    "C2C data TX MiB/s": "C2C_DATA_TX_PER_SEC", "C2C data RX MiB/s": "C2C_DATA_RX_PER_SEC",
    "NVLink TX MiB/s": "NVLINK_TOTAL_TX_PER_SEC", "NVLink RX MiB/s": "NVLINK_TOTAL_RX_PER_SEC",
    "SM cycles active / elapsed": "SM_CYCLES_ACTIVE", "MMA cycles / elapsed": "MMA_CYCLES_ACTIVE", "FP64 cycles / elapsed": "FP64_CYCLES_ACTIVE",
    "FP32 cycles / elapsed": "FP32_CYCLES_ACTIVE", "FP16 cycles / elapsed": "FP16_CYCLES_ACTIVE", "integer cycles / elapsed": "INTEGER_CYCLES_ACTIVE",
    "DFMA cycles / elapsed": "DFMA_CYCLES_ACTIVE", "HMMA cycles / elapsed": "HMMA_CYCLES_ACTIVE", "IMMA cycles / elapsed": "IMMA_CYCLES_ACTIVE",
}
THROTTLE_WORDS = {
    "sw_power_cap": "PERF_POLICY_POWER", "hw_power_brake": "CLOCKS_EVENT_REASON_HW_POWER_BRAKE_SLOWDOWN",
    "sw_thermal": "CLOCKS_EVENT_REASON_SW_THERM_SLOWDOWN", "hw_thermal": "CLOCKS_EVENT_REASON_HW_THERM_SLOWDOWN",
    "sync_boost": "PERF_POLICY_SYNC_BOOST", "board_limit": "PERF_POLICY_BOARD_LIMIT", "reliability": "PERF_POLICY_RELIABILITY",
}
LOCATION_WORDS = {"l1": "L1_CACHE", "l2": "L2_CACHE", "texture": "TEXTURE_MEMORY", "shared": "TEXTURE_SHM"}
MASK_WORDS = {"bandwidth": "DEGRADED_BW", "access_timeout": "ACCESS_TIMEOUT_RECOVERY", "configuration": "INCORRECT_CONFIGURATION"}
LITERALS = [
    Literal("field ids", "*.cpp", r'(?:(?:field|field_is|fields)\(|tlimit, )"NVML_FI_DEV_(?P<word>\w+)[^"]*", (?P<number>\d+)', "NVML_FI_DEV_{}"),
    Literal("field ids", "metrics.cpp", r'(?:link_bytes|link_ber|c2c_error)<(?P<number>\d+)>\([^)]*?"NVML_FI_DEV_(?P<word>\w+)"', "NVML_FI_DEV_{}"),
    Literal("field ids", "metrics.cpp", r'\{"\w+", "(?P<word>\w+)", [^{},]+, (?P<number>\d+)\}', "NVML_FI_DEV_{}", THROTTLE_WORDS),
    Literal("GPM ids", "**/*.?pp", r'gpm(?:_[a-z_]+)?(?:\(|, )"GPM (?P<word>[^"]+)", (?P<number>\d+)[,)}]', "NVML_GPM_METRIC_{}", GPM_WORDS),
    Literal("enum orders", "metrics.cpp", r'\{"(?P<word>\w+)", (?P<number>\d)\}', "NVML_MEMORY_LOCATION_{}", LOCATION_WORDS),
    Literal("enum orders", "metrics.cpp", r'"error", "(?P<word>\w+)"\}, {all_link_errors, "\w+", (?P<number>\d)\}', "NVML_NVLINK_ERROR_DL_{}"),
    Literal("enum orders", "metrics.cpp", r'link_error\("(?P<word>\w+)", (?P<number>\d)', "NVML_NVLINK_ERROR_DL_{}"),
    Literal("enum orders", "metrics.cpp", r'"state", "(?P<word>\w+)"\}, {fabric_state, "[^"]*", (?P<number>\d)\}', "NVML_GPU_FABRIC_STATE_{}"),
    Literal("enum orders", "readers/links.cpp", r"(?P<word>\w+) = mask >> (?P<number>\d+)", "NVML_GPU_FABRIC_HEALTH_MASK_SHIFT_{}", MASK_WORDS),
    Literal("enum orders", "readers/links.cpp", r"kTrue = (?P<number>\d)", "NVML_GPU_FABRIC_HEALTH_MASK_DEGRADED_BW_TRUE"),
    Literal("enum orders", "readers/links.cpp", r"kTrue = (?P<number>\d)", "NVML_GPU_FABRIC_HEALTH_MASK_ROUTE_UNHEALTHY_TRUE"),
    Literal("enum orders", "readers/links.cpp", r"(?:configuration >|unsigned kNone =) (?P<number>[1-9])", "NVML_GPU_FABRIC_HEALTH_MASK_INCORRECT_CONFIGURATION_NONE"),
    Literal("enum orders", "metrics.cpp", r'"state", "(?P<word>\w+)"\}, is<Function>\(call_name, (?P<number>\d)', "NVML_FEATURE_{}"),
    Literal("enum orders", "metrics.cpp", r'"compute", "state", "(?P<word>\w+)"\}, is<[^>]*>\("\w+", (?P<number>\d)', "NVML_COMPUTEMODE_{}"),
    Literal("enum orders", "readers/health.cpp", r"nvmlDeviceGetTemperature>\([\w.()]+, (?P<number>\d)\)", "NVML_TEMPERATURE_GPU"),
    Literal("enum orders", "readers/health.cpp", r"state\.feature != (?P<number>\d)", "NVML_CC_SYSTEM_FEATURE_DISABLED"),
    Literal("enum orders", "metrics.cpp", r'"NVML_FI_DEV_POWER_AVERAGE (?P<word>\w+)", \d+, [\w:]+, (?P<number>\d)', "NVML_POWER_SCOPE_{}"),
    Literal("constants", "**/*.?pp", r"= (?P<number>\d+);\s*// NVML_(?P<word>\w+)(?![\w*])", "NVML_{}"),
    Literal("constants", "nvml/abi.hpp", r"struct GpmMetricsGet \{[^}]*unsigned version = (?P<number>\d);", "NVML_GPM_METRICS_GET_VERSION"),
    Literal("constants", "nvml/abi.hpp", r"struct GpmSupport \{[^}]*unsigned version = (?P<number>\d);", "NVML_GPM_SUPPORT_VERSION"),
]
# Lists whose order is NVML's: (file, what stands before the list's brace, first number, prefix, words).
LISTS = [
    ("nvml/abi.hpp", r"enum class ValueType[^{]*", 0, "NVML_VALUE_TYPE_",
     {"real": "DOUBLE", "uint": "UNSIGNED_INT", "ulong": "UNSIGNED_LONG", "ulonglong": "UNSIGNED_LONG_LONG", "longlong": "SIGNED_LONG_LONG",
      "sint": "SIGNED_INT", "ushort": "UNSIGNED_SHORT"}),
    ("readers.hpp", r"enum class FabricHealth[^{]*", 1, "NVML_GPU_FABRIC_HEALTH_SUMMARY_", {}),
    ("metrics.cpp", r"kRecoveryActions\[\] = ", 0, "NVML_GPU_RECOVERY_ACTION_",
     {"reset": "GPU_RESET", "reboot": "NODE_REBOOT", "recover_imex": "RECOVER_IMEX_DOMAIN"}),
]


def earlier_number(nvml: str, number: int) -> int | None:
    """Of the fields that had other ids from driver 575 to 580.65 (nvml/session.cpp), the id of that time."""
    text = (ROOT / "collectors/nvidia/nvml/session.cpp").read_text()
    first, last, shift = (int(re.search(rf"{name} = (\d+)", text)[1]) for name in ("kFirstMoved", "kLastMoved", "kMovedBy"))
    return number - shift if nvml.startswith("NVML_FI_DEV_") and first <= number <= last else None


def listed() -> list[tuple[str, str, str]]:
    found = []
    for file, before, first, prefix, words in LISTS:
        head = re.search(before + r"\{(.*?)\}", (ROOT / "collectors/nvidia" / file).read_text(), re.S)
        names = [word for word in re.findall(r"[a-z]\w*", head[1])] if head else []
        if not names:
            raise SystemExit(f"{file} has no list after {before}")
        found += [(f"{file} {name}", prefix + words.get(name, name.upper()), str(first + place)) for place, name in enumerate(names)]
    return found


def fake_names(file: str, prefix: str) -> list[tuple[str, str, str]]:
    """The fake's table: "#" of a name is a number from `first` to `last`."""
    rows = re.findall(r'\{"([A-Z0-9_#]+)", (\d+), (\d+), (\d+), (\d+)\}', (ROOT / "tests/fakes/nvml" / file).read_text())
    return [(file, prefix + name.replace("#", str(number)), str(int(id) + (number - int(first)) * int(step)))
            for name, first, last, id, step in rows for number in range(int(first), int(last) + 1)]


def numbers(with_fake: bool = True) -> dict[str, list[tuple[str, str, str]]]:
    """By kind: (where, NVML's name, our number). `with_fake`: also those that only the fake NVML knows."""
    found: dict[str, list[tuple[str, str, str]]] = {"field ids": [], "GPM ids": [], "enum orders": listed(), "constants": []}
    for literal in LITERALS:
        hits = literal.found()
        if not hits:
            raise SystemExit(f"{literal.files} has nothing like {literal.pattern}: mend the pattern")
        found[literal.what] += hits
    if with_fake:
        found["field ids"] += fake_names("field_names.cpp", "NVML_FI_DEV_")
        found["GPM ids"] += fake_names("gpm_names.cpp", "NVML_GPM_METRIC_")
    return found


def versions() -> list[tuple[str, str]]:
    """(our struct, version): the struct versions that are asked for."""
    text = (ROOT / "collectors/nvidia/nvml/abi.hpp").read_text()
    return sorted(set(re.findall(r"version_of<(\w+)>\((\d)\)", text)))
