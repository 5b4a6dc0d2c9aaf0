#!/usr/bin/env python3
"""collectors/nvidia's own declarations of NVML against a real nvml.h, which $NVML_HEADER names (77 without one).

A C++ program that includes both prints what differs: size of each struct, offset and size of each of its fields (by
place, ours have other names), each constant, field id, GPM id and enumerator (abi_numbers.py), and each function's type
(abi_prototypes.py). What an older header lacks is listed and not compared.
"""
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import abi_numbers
import abi_prototypes

ROOT = Path(__file__).resolve().parent.parent.parent
OURS = ROOT / "collectors/nvidia"
# Their array grew with the versions while the version number stayed 1: ours has to be as long at least.
GROWING = {"nvmlGpmMetricsGet_t"}

# Our enumerations by what NVML writes before the same words; {} is the name in capitals.
PREFIXES = {
    "Return": ["NVML_{}", "NVML_ERROR_{}"], "Architecture": ["NVML_DEVICE_ARCH_{}"], "ClockType": ["NVML_{}"],
    "TemperatureThreshold": ["NVML_TEMPERATURE_{}"], "SamplingType": [], "EccErrorType": ["NVML_MEMORY_ERROR_TYPE_{}"],
    "EccCounterType": ["NVML_{}_ECC"], "EventReason": [], "EventType": [], "MultiGpuMode": ["NVML_CC_SYSTEM_{}"],
    "OperationalSeverity": ["NVML_OPERATIONAL_EVENT_{}"], "AddressSpace": ["NVML_DEVICE_{}"], "InforomObject": ["NVML_{}"],
}
# Where the words differ.
ALIASES = {
    "kGpuIsLost": "NVML_ERROR_GPU_IS_LOST", "kClockMemory": "NVML_CLOCK_MEM", "kThresholdMemoryMax": "NVML_TEMPERATURE_THRESHOLD_MEM_MAX",
    "kThresholdAcousticCurrent": "NVML_TEMPERATURE_THRESHOLD_ACOUSTIC_CURR", "kPowerSamples": "NVML_TOTAL_POWER_SAMPLES",
    "kGpuSamples": "NVML_GPU_UTILIZATION_SAMPLES", "kMemorySamples": "NVML_MEMORY_UTILIZATION_SAMPLES",
    "kReasonGpuIdle": "nvmlClocksEventReasonGpuIdle", "kReasonApplicationsClocks": "nvmlClocksEventReasonApplicationsClocksSetting",
    "kReasonSwPowerCap": "nvmlClocksEventReasonSwPowerCap", "kReasonHwSlowdown": "nvmlClocksThrottleReasonHwSlowdown",
    "kReasonSyncBoost": "nvmlClocksEventReasonSyncBoost", "kReasonSwThermal": "nvmlClocksEventReasonSwThermalSlowdown",
    "kReasonHwThermal": "nvmlClocksThrottleReasonHwThermalSlowdown", "kReasonHwPowerBrake": "nvmlClocksThrottleReasonHwPowerBrakeSlowdown",
    "kReasonBoardLimit": "nvmlClocksEventReasonBoardLimit", "kReasonReliability": "nvmlClocksEventReasonReliability",
    "kMostLinks": "NVML_NVLINK_MAX_LINKS", "kLinkActive": "NVML_NVLINK_STATE_ACTIVE", "kLinkSleeps": "NVML_NVLINK_STATE_SLEEP",
    "kLinkHasNoTraffic": "NVML_NVLINK_STATE_ACTIVE_TRAFFIC_DISABLED", "kReasonDisplayClocks": "nvmlClocksEventReasonDisplayClockSetting", "kEventSingleBitEcc": "nvmlEventTypeSingleBitEccError",
    "kEventDoubleBitEcc": "nvmlEventTypeDoubleBitEccError", "kEventXid": "nvmlEventTypeXidCriticalError",
    "kMultiGpuNone": "NVML_CC_SYSTEM_MULTIGPU_NONE", "kMultiGpuProtectedPcie": "NVML_CC_SYSTEM_MULTIGPU_PROTECTED_PCIE",
    "kMultiGpuNvle": "NVML_CC_SYSTEM_MULTIGPU_NVLE", "kEventMigConfigChange": "nvmlEventMigConfigChange",
    "kEventEccStorm": "nvmlEventTypeSingleBitEccErrorStorm", "kEventDramRetirement": "nvmlEventTypeDramRetirementEvent",
    "kEventDramRetirementFailure": "nvmlEventTypeDramRetirementFailure", "kEventPoisonNonFatal": "nvmlEventTypeNonFatalPoisonError",
    "kEventPoisonFatal": "nvmlEventTypeFatalPoisonError", "kEventGpuUnavailable": "nvmlEventTypeGpuUnavailableError",
    "kEventRecoveryAction": "nvmlEventTypeGpuRecoveryAction", "kFabricCompleted": "NVML_GPU_FABRIC_STATE_COMPLETED",
    "kLinkToGpu": "NVML_NVLINK_DEVICE_TYPE_GPU", "kLinkToIbmNpu": "NVML_NVLINK_DEVICE_TYPE_IBMNPU",
    "kLinkToSwitch": "NVML_NVLINK_DEVICE_TYPE_SWITCH",
}
PROGRAM = """#include <cstddef>
#include <cstdio>
#include <nvml.h>
#include "collectors/nvidia/nvml/abi.hpp"
#include "collectors/nvidia/nvml/constants.hpp"
namespace ours = gpumeter::nvidia::nvml;
%s
static int wrong = 0;
static void same(const char* what, unsigned long long ours_is, unsigned long long theirs) {
  if (ours_is != theirs) std::printf("%%s: ours %%llu, theirs %%llu\\n", what, ours_is, theirs), ++wrong;
}
static void either(const char* what, unsigned long long ours_is, unsigned long long earlier, unsigned long long theirs) {
  if (earlier != theirs) same(what, ours_is, theirs);
}
static void at_least(const char* what, unsigned long long ours_is, unsigned long long theirs) {
  if (ours_is < theirs) std::printf("%%s: ours %%llu, theirs %%llu\\n", what, ours_is, theirs), ++wrong;
}
int main() {
%s  return wrong == 0 ? 0 : 1;
}
"""


def without_comments(text: str) -> str:
    return re.sub(r"//[^\n]*|/\*.*?\*/", "", text, flags=re.S)


def fields(body: str, structs: dict[str, str], path: str = "") -> list[str]:
    """Access paths of the leaves, in order; a struct within is opened, an array is one leaf."""
    found: list[str] = []
    for inner, name, plain in re.findall(r"struct\s*\{([^}]*)\}\s*(\w+)\s*;|([^;{}]+);", body):
        if inner:
            found += fields(inner, structs, f"{path}{name}.")
            continue
        if re.match(r"\s*(static|using)\b", plain):
            continue
        kind, *more = re.split(r",", re.sub(r"=.*", "", plain.strip()))
        for declared in [kind, *more]:
            leaf = re.search(r"(\w+)\s*(\[[^;]*\])?\s*$", declared)
            type_name = re.match(r"\s*(?:struct\s+)?([\w:]+)", kind)[1]
            nested = structs.get(type_name) if not leaf[2] and "*" not in declared else None
            found += fields(nested, structs, f"{path}{leaf[1]}.") if nested else [path + leaf[1]]
    return found


def their_structs(header: str) -> dict[str, str]:
    bodies = re.findall(r"typedef\s+struct\s*\w*\s*\{((?:[^{}]|\{[^{}]*\})*)\}\s*(\w+)\s*;", header)
    aliases = re.findall(r"typedef\s+(nvml\w+_t)\s+(nvml\w+_t)\s*;", header)
    found = {name: body for body, name in bodies}
    return found | {alias: found[name] for name, alias in aliases if name in found}


def our_structs(text: str) -> list[tuple[str, str, str, str]]:
    """(struct or union, ours, theirs, body); the comment at its head names NVML's type."""
    heads = re.finditer(r"((?:^///?[^\n]*\n)*)^(struct|union) (\w+) \{([^\n]*)\n(.*?)^\};", text, re.M | re.S)
    return [(head[2], head[3], re.search(r"nvml\w+_t", head[4] + head[1])[0], without_comments(head[5])) for head in heads]


def compare_structs(header: str, text: str) -> tuple[list[str], list[str], list[str]]:
    theirs, ours = their_structs(header), our_structs(text)
    own_bodies = {name: body for kind, name, _, body in ours if kind == "struct"}
    lines, compared, missing = [], [], []
    for _, name, nvml, body in ours:
        if not re.search(rf"\b{nvml}\b", header):
            missing.append(nvml)
            continue
        check = "at_least" if nvml in GROWING else "same"
        lines.append(f'{check}("sizeof {name}, {nvml}", sizeof(ours::{name}), sizeof({nvml}));')
        compared.append(nvml)
        if nvml not in theirs:
            continue  # the union: its size is what counts
        left, right = fields(body, own_bodies), fields(theirs[nvml], theirs)
        if len(left) != len(right):
            lines.append(f'same("fields of {name}, {nvml}", {len(left)}, {len(right)});')
            continue
        for own, their in zip(left, right):
            lines.append(f'same("offset {name}.{own}, {their}", offsetof(ours::{name}, {own}), offsetof({nvml}, {their}));')
            lines.append(f'{check}("size {name}.{own}, {their}", sizeof(ours::{name}::{own}), sizeof((({nvml}*)0)->{their}));')
    return lines, compared, missing


def candidates(enum: str, name: str, comment: str) -> list[str]:
    words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name.removeprefix("k")).upper()
    alias = ALIASES.get(name, "")
    return [alias, alias.replace("ClocksEventReason", "ClocksThrottleReason")] * bool(alias) + re.findall(r"NVML_\w+", comment) + \
        [prefix.format(words) for prefix in PREFIXES.get(enum, ["NVML_{}", "NVML_FI_DEV_{}", "NVML_FI_{}", "NVML_GPM_METRIC_{}"])]


def our_constants(text: str) -> list[tuple[str, str, str]]:
    """(enumeration, name, comment)"""
    enums = [(enum, name, "") for enum, body in re.findall(r"enum (?:class )?(\w+)[^{]*\{(.*?)\};", text, re.S)
             for name in re.findall(r"\b(k\w+)", without_comments(body))]
    return enums + [("", name, comment) for declared, comment in re.findall(r"inline constexpr \w+ (k\w+ = [^;]*);([^\n]*)", text)
                    for name in re.findall(r"\b(k\w+) =", declared)]


def compare_constants(header: str, text: str) -> tuple[list[str], list[str], list[str]]:
    lines, compared, missing = [], [], []
    for enum, name, comment in our_constants(text):
        nvml = next((word for word in candidates(enum, name, comment) if re.search(rf"\b{word}\b", header)), None)
        if nvml is None:
            missing.append(name)
            continue
        limit = "at_least" if name.startswith("kMost") else "same"
        lines.append(f'{limit}("{name}, {nvml}", static_cast<unsigned long long>(ours::{name}), static_cast<unsigned long long>({nvml}));')
        compared.append(name)
    return lines, compared, missing


def compare_numbers(header: str, found: list[tuple[str, str, str]]) -> tuple[list[str], list[str], list[str]]:
    lines, compared, missing = [], [], []
    for where, nvml, number in found:
        if not re.search(rf"\b{nvml}\b", header):
            missing.append(nvml)
            continue
        value = f"static_cast<unsigned long long>({nvml})"
        earlier = abi_numbers.earlier_number(nvml, int(number))
        lines.append(f'either("{where}, {nvml}", {number}, {earlier}, {value});' if earlier else f'same("{where}, {nvml}", {number}, {value});')
        compared.append(nvml)
    return lines, compared, missing


def compare_versions(header: str, structs: dict[str, str]) -> tuple[list[str], list[str], list[str]]:
    """NVML's macro for the version of nvmlMemory_v2_t is nvmlMemory_v2."""
    lines, compared, missing = [], [], []
    for struct, version in abi_numbers.versions():
        nvml = structs[struct].removesuffix("_t")
        if re.search(rf"#define\s+{nvml}\b", header) and re.search(rf"\b{nvml}_t\s*;", header):
            lines.append(f'same("version of {struct}, {nvml}", ours::version_of<ours::{struct}>({version}), {nvml});')
            compared.append(nvml)
        else:
            missing.append(nvml)
    return lines, compared, missing


def run_program(lines: list[str], traits: str, include: Path) -> int:
    with tempfile.TemporaryDirectory() as folder:
        source, binary = Path(folder, "abi.cpp"), Path(folder, "abi")
        source.write_text(PROGRAM % (traits, "".join(f"  {line}\n" for line in lines)))
        subprocess.run([os.environ.get("CXX", "c++"), "-std=c++20", "-w", f"-I{ROOT}", f"-I{include}", str(source), "-o", str(binary)],
                       check=True, timeout=120)
        return subprocess.run([str(binary)], timeout=10).returncode


def main() -> int:
    header = Path(os.environ.get("NVML_HEADER", ""))
    if not header.is_file() or header.name != "nvml.h":
        print("skipped: $NVML_HEADER names no nvml.h")
        return 77
    theirs = without_comments(header.read_text(errors="replace"))
    our_text = (OURS / "nvml/abi.hpp").read_text().partition("struct NvmlFunctions")[0]
    kinds = {"structs": compare_structs(theirs, our_text), "constants": compare_constants(theirs, (OURS / "nvml/constants.hpp").read_text()),
             "prototypes": abi_prototypes.compare(theirs),
             "versions": compare_versions(theirs, {name: nvml for _, name, nvml, _ in our_structs(our_text)})}
    for kind, found in abi_numbers.numbers().items():
        lines, compared, missing = compare_numbers(theirs, found)
        before = kinds.get(kind, ([], [], []))
        kinds[kind] = (before[0] + lines, before[1] + compared, before[2] + missing)
    known = [(name, nvml) for kind, name, nvml, _ in our_structs(our_text) if kind == "struct"]
    lines = [line for compared in kinds.values() for line in compared[0]]
    result = run_program(lines, abi_prototypes.traits(known, theirs), header.parent)
    for kind, (_, compared, missing) in kinds.items():
        print(f"{kind}: {len(compared)} compared; not in this header: {' '.join(dict.fromkeys(missing)) or 'none'}")
    least = {"structs": 10, "constants": 30, "prototypes": 50, "field ids": 90, "GPM ids": 10, "enum orders": 20}
    if any(len(kinds[kind][1]) < count for kind, count in least.items()):
        print("too little was compared: is this an nvml.h?")
        return 1
    return result


if __name__ == "__main__":
    sys.exit(main())
