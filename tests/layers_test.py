#!/usr/bin/env python3
"""The layer order of the folders, held to by reading every #include. Lower never includes higher, siblings never
include each other, and a heavy header is seen by three .cpp files at the most and by no header."""
import re
import sys
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
MAY_INCLUDE = {  # folder -> the project's folders it may include beside itself
    "collectors/api": [],
    "collectors/support": ["collectors/api"],
    "collectors/*": ["collectors/api", "collectors/support"],  # a vendor
    "collectors/jobs": ["collectors/api", "collectors/support"],
    "collectors/workloads": ["collectors/api", "collectors/support"],
    "collectors": ["collectors/api", "collectors/*"],  # the table of vendors
    "exporter": ["collectors/api"],
    "config": [],
    "systemd": [],
    "daemon/jobs": ["collectors/api", "collectors/support", "collectors/jobs", "collectors/workloads", "exporter", "config", "systemd"],
    "daemon": ["collectors", "collectors/api", "collectors/support", "collectors/jobs", "collectors/workloads",
               "exporter", "config", "systemd", "daemon/jobs"],
}
# Calls that may hang -> the only files that may make them: those run on threads that are left behind then.
MAY_HANG = {r"\bf(data)?sync\(": ["daemon/device_directory_file.cpp"],
            r"\bDeviceDirectory::save\(|\.save\(\)": ["daemon/device_directory_file.cpp", "daemon/state_keeper.cpp"],
            r"\bget(pw|gr)\w+\(|\bgetaddrinfo\(": ["daemon/jobs/known_users.cpp", "daemon/jobs/user_names.cpp", "exporter/listen_address.cpp",
                                                "exporter/listen_socket.cpp"],
            r"\bsend_to_journal\(|\bspdlog::logger\b": ["daemon/log_sinks.cpp", "daemon/log_output.cpp", "systemd/journal.cpp", "systemd/journal.hpp"],
            r"\b(cerr|clog|stderr|STDERR_FILENO)\b": ["daemon/log_sinks.cpp", "daemon/log_output.cpp", "daemon/standard_streams.cpp",
                                                     "daemon/main.cpp", "daemon/actions.cpp", "daemon/once.cpp"]}
HEAVY = ("yaml-cpp/", "nlohmann/", "CLI/", "spdlog/")


def layer(path: str) -> str:
    folder = path.rpartition("/")[0]
    return folder if folder in MAY_INCLUDE else "collectors/*" if folder.startswith("collectors/") else folder


def main() -> int:
    wrong, heavy = [], defaultdict(set)
    files = [f for top in ("collectors", "exporter", "config", "systemd", "daemon") for f in (ROOT / top).rglob("*.[ch]pp")]
    for file in files:
        name = file.relative_to(ROOT).as_posix()
        for target in re.findall(r'^\s*#\s*include\s+[<"]([^>"]+)[>"]', file.read_text(), re.M):
            sibling = layer(name) == layer(target) and name.rpartition("/")[0] != target.rpartition("/")[0]
            if (ROOT / target).exists() and (sibling or layer(target) not in [layer(name), *MAY_INCLUDE[layer(name)]]):
                wrong.append(f"{name} includes {target}: {layer(name)} may include only {MAY_INCLUDE[layer(name)]}")
            for library in (h for h in HEAVY if target.startswith(h)):
                heavy[library].add(name)
        code = re.sub(r"//.*|\"[^\"\n]*\"", "", file.read_text())
        wrong += [f"{name} calls {found[0]}, which may hang: only {files} may" for call, files in MAY_HANG.items()
                  if name not in files and (found := re.search(call, code))]
    for library, names in heavy.items():
        wrong += [f"{name} is a header and includes {library}" for name in names if name.endswith(".hpp")]
        if len(names) > 3:
            wrong.append(f"{library} is included by {len(names)} files, three at the most: {sorted(names)}")
    print("\n".join(wrong) or f"{len(files)} files keep the layer order")
    return 1 if wrong or not files else 0


if __name__ == "__main__":
    sys.exit(main())
