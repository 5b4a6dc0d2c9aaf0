#!/usr/bin/env python3
"""The chart and the manifests by the programs that a cluster's owner uses: Helm's engine renders the chart, kustomize builds the
kustomizations, and each object is decoded strictly by its type in k8s.io/api or in the Prometheus operator. Objects of Kubernetes are also
checked against its published JSON schemas, and the recipe for KEDA against the definition in KEDA's module. Chart and manifests result in
the same objects. Requires Go (as go_tls) of the version in kubernetes/go.mod, and the Go modules named there."""
from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import unittest
from pathlib import Path
from typing import Any

import jsonschema
import kubernetes_validate
import yaml

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
GO = next((found for name in (os.environ.get("GO"), "go", "/usr/local/go/bin/go", "/usr/lib/go/bin/go") if name and (found := shutil.which(name))), None)
ALL = {"podMonitor": {"enabled": True}, "prometheusRule": {"enabled": True}, "dashboards": {"enabled": True}}
KEDA = "github.com/kedacore/keda/v2@v2.21.0"
# What packaging/kubernetes names as the oldest for DRA's claims, and the newest.
VERSIONS = ("1.34", "1.37")
# Each value of the chart that adds or removes a field.
CASES: dict[str, dict[str, Any]] = {
    "default": {},
    "monitoring": {**ALL, "podMonitor": {"enabled": True, "labels": {"release": "prometheus"}}, "prometheusRule": {"enabled": True, "labels": {"role": "rules"}}},
    "service": {"serviceMonitor": {"enabled": True, "labels": {"release": "prometheus"}}},
    "sockets": {"kubelet": {"sockets": True}},
    "dra": {"dra": {"enabled": True}},
    "capabilities": {"capabilities": ["SYS_PTRACE", "PERFMON"]},
    "others": {"image": {"repository": "registry.example/gpumeter", "digest": "sha256:" + "0" * 64}, "imagePullSecrets": [{"name": "pull"}],
               "runtimeClassName": "nvidia", "seLinuxOptions": {"type": "spc_t"}, "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [
                   {"matchExpressions": [{"key": "nvidia.com/gpu.present", "operator": "Exists"}]}]}}},
               "podAnnotations": {"a": "b"}, "podLabels": {"c": "d"}, "extraArgs": ["--log.level=debug"], "extraEnv": [{"name": "E", "value": "1"}],
               "extraVolumes": [{"name": "v", "emptyDir": {}}], "extraVolumeMounts": [{"name": "v", "mountPath": "/v"}],
               "config": {"devices": {"expected": 8}, "sampling": {"fast": "2s"}}, "tolerations": [], "nodeSelector": {"gpu": "yes"}},
    "nothing": {"service": {"enabled": False}, "networkPolicy": {"enabled": False}},
}


def output(*command: str | Path, **options: Any) -> str:
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=120, **options)
    if done.returncode:
        raise AssertionError(f"{' '.join(map(str, command))}: {done.stderr}")
    return done.stdout


def objects(text: str) -> dict[tuple[str, str], dict[str, Any]]:
    return {(entry["kind"], entry["metadata"]["name"]): entry for entry in yaml.safe_load_all(text) if entry}


def strict(schema: Any) -> Any:
    """A structural schema that refuses fields which it does not name, as the API server does with fieldValidation=Strict."""
    if not isinstance(schema, dict):
        return schema
    closed = {"additionalProperties": False} if "properties" in schema and "x-kubernetes-preserve-unknown-fields" not in schema else {}
    return {**{name: strict(value) if name != "properties" else {key: strict(entry) for key, entry in value.items()}
               for name, value in schema.items()}, **closed}


def comparable(entry: dict[str, Any]) -> dict[str, Any]:
    """The object without what only a chart has: labels of the release, and an annotation that restarts pods if the configuration changes.
    Volumes and mounts are in no particular order."""
    result = json.loads(json.dumps(entry))
    for metadata in (result["metadata"], result.get("spec", {}).get("template", {}).get("metadata", {})):
        for name in ("app.kubernetes.io/version", "app.kubernetes.io/managed-by", "helm.sh/chart"):
            metadata.get("labels", {}).pop(name, None)
        metadata.get("annotations", {}).pop("checksum/config", None)
        if metadata.get("annotations") == {}:
            del metadata["annotations"]
    pod = result.get("spec", {}).get("template", {}).get("spec", {})
    for container in (*pod.get("containers", []), *pod.get("initContainers", [])):
        container.pop("imagePullPolicy", None)
        container["volumeMounts"].sort(key=lambda mount: mount["mountPath"])
    pod.get("volumes", []).sort(key=lambda volume: volume["name"])
    return result


class KubernetesTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls) -> None:
        cls.folder = Path(cls.enterClassContext(tempfile.TemporaryDirectory(prefix="gpumeter-kubernetes-")))
        for archive in output(sys.executable, "-B", ROOT / "packaging/kubernetes/build", cls.folder).splitlines():
            with tarfile.open(archive) as tar:
                tar.extractall(cls.folder)
            if archive.endswith(".tgz"):
                cls.chart = archive
        [cls.tree] = [path for path in cls.folder.glob("gpumeter-kubernetes-*") if path.is_dir()]

    def rendered(self, name: str) -> str:
        values = self.folder / f"{name}.values.yaml"
        values.write_text(yaml.safe_dump(CASES[name]))
        return output(PROGRAM, "render", self.chart, "gpumeter", "gpumeter", values)

    def kustomized(self, name: str) -> str:
        return output(PROGRAM, "kustomize", self.tree / name)

    def test_every_object_has_its_type(self) -> None:
        texts = {**{f"chart-{name}": self.rendered(name) for name in CASES},
                 **{name: self.kustomized(name) for name in ("manifests", "kubelet-sockets", "monitoring")}}
        for name, text in texts.items():
            with self.subTest(name=name):
                path = self.folder / f"{name}.yaml"
                path.write_text(text)
                decoded = output(PROGRAM, "decode", path).splitlines()
                self.assertEqual(sorted(decoded), sorted(f"{kind} {known}" for kind, known in objects(text)))
                print(f"{name}: {len(decoded)} objects")

    def test_a_field_that_no_type_has_is_refused(self) -> None:
        path = self.folder / "wrong.yaml"
        path.write_text(self.kustomized("manifests").replace("readOnlyRootFilesystem", "readOnlyRootFileSystem"))
        with self.assertRaisesRegex(AssertionError, "readOnlyRootFileSystem"):
            output(PROGRAM, "decode", path)

    def test_every_object_of_kubernetes_fits_its_published_schema(self) -> None:
        known = 0
        recipes = re.findall(r"^```yaml\n(.*?)^```$", (ROOT / "docs/kubernetes.md").read_text(), re.M | re.S)
        for text in (*map(self.rendered, CASES), *map(self.kustomized, ("manifests", "kubelet-sockets", "monitoring")), *recipes):
            for entry in yaml.safe_load_all(text):
                if entry and "apiVersion" in entry and entry["apiVersion"].partition("/")[0] not in ("monitoring.coreos.com", "keda.sh"):
                    known += 1
                    for version in VERSIONS:
                        with self.subTest(kind=entry["kind"], version=version):
                            self.assertEqual(kubernetes_validate.validate(entry, version, strict=True), version)
        print(f"{known} objects fit the schemas of Kubernetes {' and '.join(VERSIONS)}")
        with self.assertRaisesRegex(kubernetes_validate.ValidationError, "clusterIp"):
            kubernetes_validate.validate({"apiVersion": "v1", "kind": "Service", "spec": {"clusterIp": "None"}}, VERSIONS[-1], strict=True)

    def test_the_recipe_for_keda_fits_its_definition(self) -> None:
        folder = Path(json.loads(output(GO, "mod", "download", "-json", KEDA, cwd=self.folder, env={**os.environ, "GOFLAGS": ""}))["Dir"])
        [version] = yaml.safe_load((folder / "config/crd/bases/keda.sh_scaledobjects.yaml").read_text())["spec"]["versions"]
        [recipe] = re.findall(r"^```yaml\n(apiVersion: keda.*?)^```$", (ROOT / "docs/kubernetes.md").read_text(), re.M | re.S)
        schema = strict(version["schema"]["openAPIV3Schema"])
        schema["properties"]["metadata"] = {"type": "object"}
        jsonschema.validate(yaml.safe_load(recipe), schema)
        with self.assertRaisesRegex(jsonschema.ValidationError, "maxReplicas"):
            jsonschema.validate(yaml.safe_load(recipe.replace("maxReplicaCount", "maxReplicas")), schema)

    def test_pods_are_scraped_by_one_monitor(self) -> None:
        pods, [service] = objects(self.rendered("monitoring")), [entry for (kind, _), entry in objects(self.rendered("service")).items() if kind == "ServiceMonitor"]
        self.assertEqual(service["spec"]["endpoints"], pods["PodMonitor", "gpumeter"]["spec"]["podMetricsEndpoints"])
        CASES["both"] = {kind: {"enabled": True} for kind in ("podMonitor", "serviceMonitor")}
        self.addCleanup(CASES.pop, "both")
        with self.assertRaisesRegex(AssertionError, "enable one of them"):
            self.rendered("both")

    def same(self, chart: dict[tuple[str, str], dict[str, Any]], plain: dict[tuple[str, str], dict[str, Any]]) -> None:
        self.assertEqual(sorted(chart), sorted(key for key in plain if key[0] != "Namespace"))
        for key, entry in chart.items():
            self.assertEqual(comparable(entry), comparable(plain[key]), key)

    def test_the_chart_makes_the_objects_of_the_manifests(self) -> None:
        self.maxDiff = None
        self.same(objects(self.rendered("default")), objects(self.kustomized("manifests")))
        self.same(objects(self.rendered("sockets")), objects(self.kustomized("kubelet-sockets")))

    def test_the_chart_has_the_same_rules_and_dashboards(self) -> None:
        plain = objects(self.kustomized("monitoring"))
        chart = objects(self.rendered("monitoring"))
        for key, entry in plain.items():
            self.assertEqual(chart[key].get("spec"), entry.get("spec"), key)
            self.assertEqual(chart[key].get("data"), entry.get("data"), key)

    def test_root_has_only_the_capabilities_that_were_named(self) -> None:
        [pod] = [entry for (kind, _), entry in objects(self.rendered("capabilities")).items() if kind == "DaemonSet"]
        security = pod["spec"]["template"]["spec"]["containers"][0]["securityContext"]
        self.assertEqual((security["runAsUser"], security["runAsNonRoot"], security["capabilities"]),
                         (0, False, {"drop": ["ALL"], "add": ["SYS_PTRACE", "PERFMON"]}))
        self.assertEqual(pod["spec"]["template"]["spec"]["initContainers"][0]["command"][1], "0:0")

    def test_each_pod_claims_all_devices_if_asked(self) -> None:
        found = objects(self.rendered("dra"))
        [request] = found["ResourceClaimTemplate", "gpumeter"]["spec"]["spec"]["devices"]["requests"]
        self.assertEqual(request["exactly"], {"deviceClassName": "gpu.nvidia.com", "allocationMode": "All", "adminAccess": True,
                                              "tolerations": [{"operator": "Exists"}]})
        pod = found["DaemonSet", "gpumeter"]["spec"]["template"]["spec"]
        self.assertEqual(pod["resourceClaims"], [{"name": "gpus", "resourceClaimTemplateName": "gpumeter"}])
        self.assertEqual(pod["containers"][0]["resources"], {"claims": [{"name": "gpus"}], "limits": {"memory": "512Mi"},
                                                             "requests": {"cpu": "50m", "memory": "64Mi"}})

    def test_values_reach_their_fields(self) -> None:
        found = objects(self.rendered("others"))
        pod = found["DaemonSet", "gpumeter"]["spec"]["template"]["spec"]
        self.assertEqual({container["image"] for container in (*pod["containers"], *pod["initContainers"])},
                         {"registry.example/gpumeter@sha256:" + "0" * 64})
        self.assertEqual(pod["containers"][0]["args"], ["--web.listen-address=:10478", "--log.level=debug"])
        self.assertNotIn("tolerations", pod)
        self.assertEqual(yaml.safe_load(found["ConfigMap", "gpumeter"]["data"]["gpumeter.yaml"])["devices"], {"expected": 8})
        self.assertEqual({kind for kind, _ in objects(self.rendered("nothing"))}, {"ServiceAccount", "ConfigMap", "DaemonSet"})


def build(folder: str) -> str:
    """The program, or the reason why it cannot be built. Go keeps what it compiled, so only the first build takes minutes."""
    program = f"{folder}/kubernetes"
    if not GO:
        return "no Go compiler"
    done = subprocess.run([GO, "build", "-mod=readonly", "-buildvcs=false", "-o", program, "."], cwd=HERE / "kubernetes", capture_output=True,
                          text=True, timeout=850, env={**os.environ, "GOFLAGS": "", "GOTOOLCHAIN": "local"})
    return program if done.returncode == 0 else f"go build: {done.stderr.strip().splitlines()[-1]}"


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as work:
        PROGRAM = build(work)
        if not os.path.exists(PROGRAM):
            print(f"skipped: {PROGRAM}")
            sys.exit(77)
        ended = unittest.main(verbosity=2, exit=False).result
    print("chart and manifests agree" if ended.wasSuccessful() else "failed")
    sys.exit(not ended.wasSuccessful())
