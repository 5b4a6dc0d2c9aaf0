"""The DaemonSet of packaging/kubernetes, and the OCI configuration by which a kubelet's runtime would start its containers."""
from __future__ import annotations

from copy import deepcopy
from pathlib import Path
from typing import Any

import yaml

KUBERNETES = Path(__file__).resolve().parents[2] / "packaging/kubernetes"
# The lists of a pod that a strategic merge joins by a key (patchMergeKey in k8s.io/api/core/v1).
MERGE_KEYS = {"containers": "name", "initContainers": "name", "volumes": "name", "volumeMounts": "mountPath"}


def daemon_set(*, sockets: bool = False) -> dict[str, Any]:
    base = yaml.safe_load((KUBERNETES / "manifests/daemonset.yaml").read_text())
    return merge(base, yaml.safe_load((KUBERNETES / "kubelet-sockets/daemonset.yaml").read_text())) if sockets else base


def merge(base: Any, patch: Any, field: str = "") -> Any:
    if isinstance(patch, dict):
        return {**base, **{name: merge(base[name], value, name) if name in base else value for name, value in patch.items()}}
    key = MERGE_KEYS.get(field)
    if not key:
        return patch
    known = {entry[key]: entry for entry in base}
    for entry in patch:
        known[entry[key]] = merge(known[entry[key]], entry) if entry[key] in known else entry
    return list(known.values())


def container(pod: dict[str, Any], name: str) -> dict[str, Any]:
    [found] = [entry for kind in ("containers", "initContainers") for entry in pod["spec"]["template"]["spec"][kind] if entry["name"] == name]
    return found


def bind(source: Path, mount: dict[str, Any]) -> dict[str, Any]:
    mode = "ro" if mount.get("readOnly") else "rw"
    return {"destination": mount["mountPath"], "type": "bind", "source": str(source), "options": ["rbind", "rprivate", mode, "nosuid", "nodev"]}


def runtime_config(image: dict[str, Any], pod: dict[str, Any], name: str, sources: dict[str, Path]) -> dict[str, Any]:
    """`image`: the config.json that umoci makes of the image's configuration. `sources`: the folder or file for each volume."""
    settings, config = container(pod, name), deepcopy(image)
    security, process = settings["securityContext"], config["process"]
    process["terminal"] = False
    process["user"] = {"uid": security["runAsUser"], "gid": security["runAsGroup"]}
    process["args"] = settings.get("command") or [*process["args"], *settings.get("args", [])]
    process["noNewPrivileges"] = not security["allowPrivilegeEscalation"]
    added = [f"CAP_{name}" for name in security["capabilities"].get("add", [])]
    # Capabilities that a user other than root is granted are not effective: Kubernetes sets no ambient ones.
    granted = added if security["runAsUser"] == 0 else []
    process["capabilities"] = {"bounding": added, "permitted": granted, "effective": granted}
    config["root"]["readonly"] = security["readOnlyRootFilesystem"]
    hidden = {"network", "pid"} if pod["spec"]["template"]["spec"]["hostPID"] else {"network"}
    config["linux"]["namespaces"] = [space for space in config["linux"]["namespaces"] if space["type"] not in hidden]
    config["mounts"] += [bind(sources[mount["name"]], mount) for mount in settings["volumeMounts"]]
    return config
