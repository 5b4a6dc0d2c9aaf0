#!/usr/bin/env python3
"""Checks the layer order of the folders by reading every #include. Lower never includes higher, siblings never
include each other, and at most four .cpp files of a program and no header include a heavy header."""
import re
import sys
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
MAY_INCLUDE = {  # folder, with its sub-folders -> the other folders of the project that it may include
    "base": [],
    "collectors/api": ["base"],
    # The catalogue of events and the reader of log lines, which need nothing; the rest of the folder is a part.
    "collectors/events/xids": ["base"],
    "collectors/events/catalogue": ["base", "collectors/events/xids"],
    "collectors/events/line": ["base", "collectors/events/catalogue"],
    "collectors/events/log": ["base", "collectors/events/line"],
    "collectors/table": ["base", "collectors/api"],
    "collectors/sources": ["base", "collectors/api"],
    "collectors/files": ["base", "collectors/api", "collectors/table", "collectors/sources"],
    "collectors/*": ["base", "collectors/api", "collectors/events/xids", "collectors/table", "collectors/sources", "collectors/files"],  # a vendor
    "collectors": ["base", "collectors/api", "collectors/*"],  # the table of vendors
    "exporter/store": ["base", "collectors/api"],
    "exporter/text": ["base", "collectors/api", "exporter/store"],
    "exporter/dcgm": ["base", "collectors/api", "exporter/store", "exporter/text"],
    "exporter/health": ["base", "collectors/api", "collectors/events/xids", "exporter/store"],
    "exporter/history": ["base", "collectors/api", "exporter/store"],
    "exporter/otlp": ["base", "collectors/api", "collectors/sources", "exporter/store", "exporter/text"],
    "exporter/json": ["base", "collectors/api", "collectors/events/xids", "exporter/store", "exporter/health", "exporter/history"],
    "exporter/web": ["base", "collectors/api", "exporter/store", "exporter/text", "exporter/health", "exporter/history", "exporter/json"],
    "exporter/access": ["base"],
    "exporter/tls": ["base", "exporter/access"],
    "exporter/listen": ["base"],
    "exporter/http": ["base", "exporter/access", "exporter/tls", "exporter/listen", "collectors/api", "exporter/store", "exporter/health", "exporter/history", "exporter/text", "exporter/dcgm", "exporter/json",
                      "exporter/web"],
    "programs/client": ["base"],
    # The host of the other programs: one part in a process of its own.
    "programs/service": ["base", "collectors/api", "collectors/attribution", "collectors/jobs", "exporter/store", "exporter/text", "exporter/health", "config", "systemd",
                         "programs/client"],
    "programs/profiler/settings": ["base", "collectors/api"],
    "programs/profiler": ["base", "programs/profiler/settings", "collectors/api", "collectors/sources", "collectors/attribution", "collectors/grpc", "collectors/jobs", "exporter/store", "config", "systemd",
                          "programs/client", "programs/service"],
    "programs/servers/settings": ["base", "collectors/api"],  # the keys of a program in gpumeter.yaml, which the daemon knows too
    "programs/servers": ["base", "programs/servers/settings", "collectors/api", "collectors/sources", "collectors/attribution", "collectors/jobs", "exporter/store", "programs/client", "programs/service"],
    "programs/top": ["base", "programs/client"],
    "collectors/attribution": ["base", "collectors/api", "collectors/sources", "exporter/store"],
    "collectors/grpc": ["base"],
    "collectors/part": ["base", "collectors/api", "collectors/events/catalogue", "collectors/events/line", "collectors/sources", "collectors/attribution", "collectors/grpc", "exporter/store"],
    "collectors/jobs": ["base", "collectors/api", "collectors/sources", "collectors/attribution", "exporter/store"],
    "programs/benchmark": ["base", "collectors/api", "collectors/sources", "collectors/*", "programs/client"],
    "programs/held": ["base", "collectors/attribution"],  # without threads, root's
    "programs/nccl/settings": ["base", "collectors/api"],  # the keys of a program in gpumeter.yaml, which the daemon knows too
    "programs/nccl": ["base", "programs/nccl/settings", "collectors/api", "collectors/sources", "collectors/attribution", "collectors/jobs", "exporter/store", "programs/service"],
    "config": ["base", "exporter/access", "exporter/tls"],
    "systemd": ["base"],
    "daemon": ["base", "collectors", "collectors/api", "collectors/events/xids", "collectors/events/catalogue", "collectors/sources", "collectors/part", "collectors/jobs", 
               "collectors/attribution",
               "exporter/store", "exporter/health", "exporter/history", "exporter/otlp", "exporter/text", "exporter/json", "exporter/web", "exporter/http",
               "exporter/access", "exporter/tls", "exporter/listen", "config", "systemd", "programs/nccl/settings", "programs/profiler/settings", "programs/servers/settings"],
    # The commands that need what the daemon knows: its configuration, its state folder, its collectors, and of NVIDIA's its calls.
    "programs/commands": ["base", "collectors", "collectors/api", "collectors/*", "collectors/events/catalogue", "collectors/events/line", "collectors/events/log", "collectors/attribution", "collectors/part", "exporter/health", "exporter/http", "exporter/json", "exporter/store", "config", "daemon", "programs/client"],
}
# Calls that may hang -> the only files that may make them: those run on threads that are left behind then.
MAY_HANG = {r"\bf(data)?sync\(": ["base/folder.cpp"],
            r"\bDeviceDirectory::save\(|\bdirectory\.save\(\)|\bunwritten_->save\(\)": ["daemon/fleet/device_directory.cpp", "daemon/fleet/state_keeper.cpp", "programs/commands/forget.cpp"],
            r"\bget(pw|gr)\w+\(|\bgetaddrinfo\(": ["base/users.cpp", "collectors/attribution/names/user_names.cpp", "exporter/listen/socket.cpp"],
            r"\bsend_to_journal\(|\bspdlog::logger\b": ["base/log.cpp", "base/log.hpp", "systemd/notify.cpp", "systemd/notify.hpp"],
            r"\b(cerr|clog|stderr|STDERR_FILENO)\b": ["base/log.cpp", "daemon/app.cpp", "base/program.cpp",
                                                     "daemon/main.cpp", "daemon/cli/actions.cpp", "daemon/cli/companion.cpp", "daemon/cli/once.cpp", "programs/profiler/main.cpp"]}
# Calls that make, change or remove a name -> the only files that may make them: base/folder follows no path that another user may write.
MAY_WRITE = {r"\bO_(CREAT|TMPFILE)\b|(?<![.>\w])((mkdir|mkfifo|mknod|rename|unlink|symlink)(at2?)?|linkat)\((?!const)|\bl?ch(own|mod)\(|\bfch(own|mod)at\(|\brmdir\(":
             ["base/folder.cpp"],
             r"\b[ow]?fstream\b.*\bios\b.*out|\bofstream\b|\bf(re)?open\(|\bmk(os?|d)?temps?\(|\btruncate\(|\bl?setxattr\(": [],
             r"\b(filesystem|fs)::(create_|remove|rename|permissions|copy|resize)": [],
             # The others bind an abstract name and an address of the network.
             r"\bbind\([^)]*sockaddr|\bbind\(\w+, address, ": ["base/folder.cpp", "programs/profiler/kineto.cpp", "exporter/listen/socket.cpp"]}
CLIENTS = ("programs/benchmark/", "programs/commands/", "programs/held/", "programs/service/", "programs/top/")  # programs that wait only for their own user
HEAVY = ("yaml-cpp/", "nlohmann/", "CLI/", "spdlog/")


def layer(path: str) -> str:
    """The longest folder above the file that has a rule, unless the file and its header have one. A folder of collectors without one is a part's,
    if it has part.hpp, or a vendor's."""
    if (subject := path.rsplit(".", 1)[0]) in MAY_INCLUDE:
        return subject
    parts = path.split("/")[:-1]
    for length in range(len(parts), 0, -1):
        if (folder := "/".join(parts[:length])) in MAY_INCLUDE and (folder != "collectors" or length == len(parts)):
            return folder
    if parts[:1] != ["collectors"]:
        return "/".join(parts)
    return "collectors/part" if (ROOT / "/".join(parts[:2]) / "part.hpp").exists() else "collectors/*"


def main() -> int:
    wrong, heavy = [], defaultdict(set)
    files = [f for top in ("base", "collectors", "exporter", "config", "systemd", "daemon", "programs") for f in (ROOT / top).rglob("*.[ch]pp")]
    for file in files:
        name = file.relative_to(ROOT).as_posix()
        for target in re.findall(r'^\s*#\s*include\s+[<"]([^>"]+)[>"]', file.read_text(), re.M):
            sibling = layer(name) == layer(target) in ("collectors/*", "collectors/part") and name.split("/")[1] != target.split("/")[1]
            if (ROOT / target).exists() and (sibling or layer(target) not in [layer(name), *MAY_INCLUDE[layer(name)]]):
                wrong.append(f"{name} includes {target}: {layer(name)} may include only {MAY_INCLUDE[layer(name)]}")
            for library in (h for h in HEAVY if target.startswith(h)):
                heavy[library, next((c for c in CLIENTS if name.startswith(c)), "")].add(name)
        code = re.sub(r"//.*|\"[^\"\n]*\"", "", file.read_text())
        wrong += [f"{name} has {found[0]}: only {files or 'base/folder.cpp'} may write, so that root follows nobody's path"
                  for call, files in MAY_WRITE.items() if name not in files and (found := re.search(call, code))]
        wrong += [f"{name} calls {found[0]}, which may hang: only {files} may" for call, files in MAY_HANG.items()
                  if name not in files and not name.startswith(CLIENTS) and (found := re.search(call, code))]
    for (library, _), names in heavy.items():
        wrong += [f"{name} is a header and includes {library}" for name in names if name.endswith(".hpp")]
        if len(names) > 5:
            wrong.append(f"{library} is included by {len(names)} files, five at the most: {sorted(names)}")
    print("\n".join(wrong) or f"{len(files)} files keep the layer order")
    return 1 if wrong or not files else 0


if __name__ == "__main__":
    sys.exit(main())
