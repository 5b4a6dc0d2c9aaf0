#!/usr/bin/env python3
"""Turns the output of `nvidia-smi -q` into a scenario of the fake NVML.

usage: from_nvidia_smi.py CAPTURE [--section idle|load] > scenario.yaml

CAPTURE is the output of `nvidia-smi -q`, or a capture of nvidia_gpu_exporter's with sections; of these the symbols of
the library (`missing:`), the list of MIG devices and the state of NVLink are read too. What is printed as N/A is not
in the scenario, so that the fake says NOT_SUPPORTED; lines that are not known are passed over. Sums are made where NVML
has one and nvidia-smi prints its parts: the totals of ECC.
"""
import argparse
import re
import sys
from pathlib import Path
from typing import Any

import yaml

sys.path.insert(0, str(Path(__file__).resolve().parent))
from nvidia_smi_keys import ATTRIBUTES, HEALTH, PLAIN, POWER_SCOPES, REASONS, RECOVERY, WORDS  # noqa: E402
from nvidia_smi_tree import Node, parse, section  # noqa: E402

FUNCTIONS = Path(__file__).resolve().parents[3] / "collectors/nvidia/nvml/abi.hpp"
Scenario = dict[str, Any]


def put(device: Scenario, path: str, value: Any) -> None:
    if value is None:
        return
    *groups, key = path.split(".")
    for group in groups:
        device = device.setdefault(group, {})
    device[int(key) if key.isdigit() else key] = value


def memory(gpu: Node, *titles: str) -> Scenario:
    node = next((gpu.at(title) for title in titles if gpu.all(title)), Node(""))
    read = {key: node.at(key).read() for key in ("Total", "Reserved", "Used", "Free")}
    return {key.lower(): value for key, value in read.items() if value is not None}


def of_scopes(whole: Any, parts: dict[int, Any]) -> Any:
    """A field that nvidia-smi also prints for parts of the GPU."""
    told = {scope: value for scope, value in parts.items() if value is not None}
    return whole if not told else {"scopes": told} if whole is None else {"value": whole, "scopes": told}


def power(device: Scenario, gpu: Node) -> None:
    node = gpu.at("GPU Power Readings") if gpu.all("GPU Power Readings") else gpu.at("Power Readings")
    limit = node.deep("Enforced Power Limit", "Current Power Limit", "Power Limit").read()
    instant, average = node.deep("Instantaneous Power Draw").read(), node.deep("Average Power Draw").read()
    lowest, highest = node.deep("Min Power Limit").read(), node.deep("Max Power Limit").read()
    default = node.deep("Default Power Limit").read()
    draw = average or node.deep("Power Draw").read() or instant
    for path, value in (("power.draw", draw), ("power.limit", limit), ("power.default_limit", default),
                        ("power.min_limit", lowest), ("power.max_limit", highest), ("fields.185", average),
                        ("fields.186", instant), ("fields.187", lowest), ("fields.188", highest), ("fields.189", default),
                        ("fields.190", limit), ("fields.192", node.deep("Requested Power Limit").read())):
        put(device, path, value)
    for field, title in ((185, "Average Power Draw"), (186, "Instantaneous Power Draw")):
        parts = {scope: gpu.at(group, title).read() for scope, group in POWER_SCOPES.items()}
        put(device, f"fields.{field}", of_scopes(device.get("fields", {}).get(field), parts))


def reasons(device: Scenario, gpu: Node) -> None:
    node = next((gpu.at(title) for title in ("Clocks Event Reasons", "Clocks Throttle Reasons") if gpu.all(title)), None)
    states = {word: node.deep(title).read() for title, word in REASONS.items()} if node else {}
    supported = [word for word, state in states.items() if state in ("Active", "Not Active")]
    if supported:
        put(device, "clocks.reasons", [word for word in supported if states[word] == "Active"])
        put(device, "clocks.supported_reasons", supported)


def number(node: Node) -> int | None:
    value = node.read()
    return int(value) if isinstance(value, str) and value.isdecimal() else None


def ecc(device: Scenario, errors: Node) -> None:
    for period in ("Volatile", "Aggregate"):
        for severity, old, new in (("corrected", "Single Bit", "Correctable"), ("uncorrected", "Double Bit", "Uncorrectable")):
            of, base = errors.at(period), f"ecc.{severity}.{period.lower()}."
            parts: dict[str, int] = {}
            for location, titles in (("sram", [f"SRAM {new}", f"SRAM {new} Parity", f"SRAM {new} SEC-DED"]),
                                     ("dram", [f"DRAM {new}"])):
                counts = [count for count in (number(of.at(title)) for title in titles) if count is not None]
                if counts:
                    parts[location] = sum(counts)
            for location, title in (("dram", "Device Memory"), ("register", "Register File"), ("l1", "L1 Cache"),
                                    ("l2", "L2 Cache"), ("texture", "Texture Memory"), ("cbu", "CBU")):
                if (count := number(of.at(old, title))) is not None:
                    parts[location] = count
            total = number(of.at(old, "Total"))
            if parts or total is not None:
                parts["total"] = sum(parts.values()) if total is None else total
                put(device, f"fields.{3 + (severity == 'uncorrected') + 2 * (period == 'Aggregate')}", parts["total"])
            for location, count in parts.items():
                put(device, base + location, count)


def processes(node: Node) -> Scenario:
    found: Scenario = {"compute": [], "graphics": [], "mps": []}
    instance: Scenario = {}
    for child in node.children:
        key, value = child.key.lower(), number(child)
        if key.endswith("instance id"):
            instance["gi" if key.startswith("gpu") else "ci"] = value
        if key != "process id" or value is None:
            continue
        process = {"pid": value, "memory": child.at("Used GPU Memory").read(), **instance}
        kept = {name: part for name, part in process.items() if part is not None}
        kind = child.at("Type").value
        for letter, name in (("C", "compute"), ("G", "graphics"), ("M", "mps")):
            found[name] += [dict(kept)] if letter in kind else []
        instance = {}
    return found


def instance(node: Node, product: str, listed: dict[str, tuple[str, str]]) -> Scenario:
    index = str(number(node.at("Index")) or 0)
    found: Scenario = {}
    for key, title in (("index", "Index"), ("gi", "GPU Instance ID"), ("ci", "Compute Instance ID")):
        put(found, key, number(node.at(title)))
    profile, uuid = listed.get(index, ("", f"MIG-00000000-0000-0000-0000-{index:0>12}"))
    found |= {"uuid": uuid, "name": f"{product} MIG {profile}".strip()}
    for key, title in ATTRIBUTES.items():
        put(found, "attributes." + key, number(node.at("Device Attributes").deep(title)))
    found["memory"] = memory(node, "Shared FB Memory Usage", "FB Memory Usage")
    found["bar1"] = memory(node, "Shared BAR1 Memory", "BAR1 Memory Usage", "Shared BAR1 Memory Usage")
    put(found, "attributes.memory", found["memory"].get("total"))
    ecc(found, node.at("ECC Errors"))
    return found


def links(device: Scenario, text: str, index: int) -> None:
    """`nvidia-smi nvlink -s` of this GPU."""
    of = re.split(r"^GPU \d+:.*$", text, flags=re.M)
    speeds = re.findall(r"Link (\d+): ([\d.]+) GB/s|Link (\d+): <inactive>", of[index + 1]) if index + 1 < len(of) else []
    if not speeds:
        return
    put(device, "nvlink.count", len(speeds))
    put(device, "fields.91", len(speeds))
    for active, speed, _ in ((int(a or c), s, c) for a, s, c in speeds):
        put(device, f"nvlink.links.{active}.state", "active" if speed else "inactive")
        if speed:
            put(device, f"fields.164.scopes.{active}", round(float(speed) * 1000))


def device_of(gpu: Node, listed: dict[str, tuple[str, str]]) -> Scenario:
    device: Scenario = {}
    for path, title in PLAIN.items():
        value = gpu.at(*title.split("/")).read()
        put(device, path, str(value) if isinstance(value, str) else value)
    for path, title in WORDS.items():
        put(device, path, gpu.at(*title.split("/")).word())
    put(device, "architecture", str(gpu.at("Product Architecture").word() or "").split("_")[0] or None)
    put(device, "temperature.margin", gpu.at("Temperature").deep("GPU Current T.Limit Temp", "GPU T.Limit Temp").read())
    put(device, "temperature.thresholds.acoustic_current",
        gpu.at("Temperature").deep("GPU Target Temperature", "GPU Target Temperature Specification").read())
    put(device, "fields.230", RECOVERY.get(str(gpu.at("GPU Recovery Action").word())))
    device["memory"] = memory(gpu, "FB Memory Usage")
    device["bar1"] = memory(gpu, "BAR1 Memory Usage")
    power(device, gpu)
    reasons(device, gpu)
    ecc(device, gpu.at("ECC Errors"))
    histogram = gpu.at("Remapped Rows", "Bank Remap Availability Histogram")
    for bank in histogram.children:
        put(device, "remapped_rows.banks." + bank.key.lower(), number(Node(bank.key, bank.value.split(" ")[0])))
    if (fan := gpu.at("Fan Speed").read()) is not None:
        device["fans"] = [{"percent": fan}]
    if gpu.at("Fabric", "State").read() is not None:
        bits = {"True": 1, "False": 2}
        device["fabric"]["health_mask"] = sum(bits.get(gpu.at("Fabric", "Health", key).value, 0) << shift
                                              for key, shift in HEALTH.items())
    device["processes"] = processes(gpu.at("Processes"))
    instances = [instance(node, str(device.get("name", "")), listed) for node in gpu.all("MIG Device")]
    if "mig" in device:
        device["mig"] |= {"most": 7, "instances": instances}
    return device


def listed_instances(text: str) -> list[dict[str, tuple[str, str]]]:
    """`nvidia-smi -L`: of each GPU its MIG devices by index, profile and UUID."""
    gpus: list[dict[str, tuple[str, str]]] = []
    for line in text.splitlines():
        if line.startswith("GPU "):
            gpus.append({})
        if gpus and (found := re.match(r"\s+MIG (\S+)\s+Device\s+(\d+): \(UUID: (\S+)\)", line)):
            gpus[-1][found[2]] = (found[1], found[3])
    return gpus


def scenario_of(capture: str, which: str) -> Scenario:
    root = parse(section(capture, f"{which} :: query (-q)") or capture)
    listed = listed_instances(section(capture, "capabilities :: list (-L)") or "")
    devices = [device_of(gpu, listed[i] if i < len(listed) else {}) for i, gpu in enumerate(root.all("GPU"))]
    uuids = [device.get("uuid") for device in devices]
    for i, device in enumerate(devices):
        links(device, section(capture, "capabilities :: nvlink -s") or "", i)
        if uuids.count(device.get("uuid")) > 1:  # masked: all alike
            device["uuid"] = f"GPU-00000000-0000-0000-0000-{i:012d}"
    versions = [version for title in ("KMD Version", "Driver Version")
                if isinstance(version := root.at(title).read(), str)]
    driver = versions[0].split()[0] if versions else "0"
    scenario: Scenario = {"system": {"driver_version": driver, "nvml_version": driver}, "devices": devices}
    cuda = [version for title in ("CUDA UMD Version", "CUDA Version") if isinstance(version := root.at(title).read(), str)]
    put(scenario["system"], "cuda_version", cuda[0].split()[0] if cuda else None)
    symbols = section(capture, "capabilities :: nvml-symbols")
    if symbols:
        ours = re.findall(r"^  X\((nvml\w+),", FUNCTIONS.read_text(), re.M)
        scenario["missing"] = sorted(set(ours) - set(symbols.split()))
    return scenario


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("capture", type=Path)
    parser.add_argument("--section", choices=("idle", "load"), default="idle")
    arguments = parser.parse_args()
    scenario = scenario_of(arguments.capture.read_text(errors="replace"), arguments.section)
    yaml.safe_dump(scenario, sys.stdout, sort_keys=False, width=120, allow_unicode=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
