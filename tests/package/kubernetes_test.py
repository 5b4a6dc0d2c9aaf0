#!/usr/bin/env python3
"""The manifests and the chart of packaging/kubernetes, without a cluster: rights and their reasons, references, and the archives.

`./dev interop kubernetes` decodes every object by the types of Kubernetes and of the Prometheus operator, and renders the chart."""
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

try:
    import yaml
    from pod import KUBERNETES, container, daemon_set
except ImportError:
    print("skipped: python3-yaml is not installed")
    sys.exit(77)

ROOT = Path(__file__).resolve().parents[2]
BINARY = os.environ.get("GPUMETER_BINARY", str(ROOT / "build/release/gpumeter"))
VERSION = re.findall(r"^project\(gpumeter VERSION (\S+)", (ROOT / "CMakeLists.txt").read_text(), re.M)[0]
KINDS = {"Namespace", "ServiceAccount", "ConfigMap", "DaemonSet", "Service", "NetworkPolicy", "PodMonitor", "PrometheusRule"}
MOST_OF_AN_OBJECT = 1 << 20  # etcd's limit of a request is 1.5 MiB


def objects(text: str) -> list[dict[str, Any]]:
    return [entry for entry in yaml.safe_load_all(text) if entry]


def plain() -> dict[str, dict[str, Any]]:
    files = [path for name in ("manifests", "monitoring") for path in (KUBERNETES / name).glob("*.yaml") if path.name != "kustomization.yaml"]
    return {entry["kind"]: entry for path in files for entry in objects(path.read_text())}


class RightsTest(unittest.TestCase):
    def test_each_mount_has_its_reason(self) -> None:
        for name in ("manifests/daemonset.yaml", "kubelet-sockets/daemonset.yaml", "chart/templates/daemonset.yaml"):
            lines = (KUBERNETES / name).read_text().splitlines()
            mounts = [index for index, line in enumerate(lines) if "mountPath:" in line]
            self.assertGreater(len(mounts), 1)
            for index in mounts:
                with self.subTest(file=name, mount=lines[index].strip()):
                    self.assertRegex(lines[index - 1], r"^ +# \S.{10,}")
                    self.assertNotEqual("readOnly: true" in lines[index], "# Written: " in lines[index - 1])

    def test_nothing_has_a_role_or_a_token(self) -> None:
        self.assertLessEqual(set(plain()), KINDS)
        self.assertIs(plain()["ServiceAccount"]["automountServiceAccountToken"], False)
        for sockets in (False, True):
            spec = daemon_set(sockets=sockets)["spec"]["template"]["spec"]
            self.assertIs(spec["automountServiceAccountToken"], False)
            self.assertEqual({"hostNetwork", "hostIPC"} & set(spec), set())
        for path in (KUBERNETES / "chart/templates").iterdir():
            self.assertNotRegex(path.read_text(), "ClusterRole|RoleBinding|kind: Role|privileged: true")

    def test_the_daemon_has_no_capability_and_a_read_only_root(self) -> None:
        for sockets, user in ((False, 65532), (True, 0)):
            security = container(daemon_set(sockets=sockets), "gpumeter")["securityContext"]
            self.assertEqual(security, {"runAsNonRoot": user != 0, "runAsUser": user, "runAsGroup": user, "readOnlyRootFilesystem": True,
                                        "allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}})
        self.assertEqual(daemon_set()["spec"]["template"]["spec"]["securityContext"]["seccompProfile"], {"type": "RuntimeDefault"})

    def test_the_folders_belong_to_the_daemons_user(self) -> None:
        for sockets in (False, True):
            pod = daemon_set(sockets=sockets)
            user = container(pod, "gpumeter")["securityContext"]["runAsUser"]
            first, owner, *folders = container(pod, "folders")["command"]
            written = {mount["mountPath"] for mount in container(pod, "gpumeter")["volumeMounts"] if not mount.get("readOnly")}
            self.assertEqual((first, owner, set(folders)), ("/usr/bin/chown", f"{user}:{user}", written))
            self.assertEqual(container(pod, "folders")["securityContext"]["capabilities"], {"drop": ["ALL"], "add": ["CHOWN"]})

    def test_the_policy_admits_the_named_port_only_and_no_connection_of_the_daemon(self) -> None:
        policy = plain()["NetworkPolicy"]["spec"]
        self.assertEqual(set(policy["policyTypes"]), {"Ingress", "Egress"})
        self.assertEqual(policy["egress"], [])
        self.assertEqual([rule["ports"] for rule in policy["ingress"]], [[{"protocol": "TCP", "port": "metrics"}]])
        self.assertTrue(all(peer["namespaceSelector"]["matchLabels"] for rule in policy["ingress"] for peer in rule["from"]))


class ReferencesTest(unittest.TestCase):
    def test_volumes_and_mounts_name_each_other(self) -> None:
        for sockets in (False, True):
            spec = daemon_set(sockets=sockets)["spec"]["template"]["spec"]
            mounted = {mount["name"] for kind in ("containers", "initContainers") for entry in spec[kind] for mount in entry["volumeMounts"]}
            self.assertEqual(mounted, {volume["name"] for volume in spec["volumes"]})
            paths = [mount["mountPath"] for mount in container(daemon_set(sockets=sockets), "gpumeter")["volumeMounts"]]
            self.assertEqual(len(paths), len(set(paths)))

    def test_the_patch_changes_containers_that_exist(self) -> None:
        names = [[entry["name"] for entry in daemon_set(sockets=sockets)["spec"]["template"]["spec"][kind]]
                 for sockets in (False, True) for kind in ("initContainers", "containers")]
        self.assertEqual(names, [["folders"], ["gpumeter"]] * 2)

    def test_all_select_the_pods(self) -> None:
        found = plain()
        labels = found["DaemonSet"]["spec"]["template"]["metadata"]["labels"]
        for selector in (found["DaemonSet"]["spec"]["selector"]["matchLabels"], found["Service"]["spec"]["selector"],
                         found["NetworkPolicy"]["spec"]["podSelector"]["matchLabels"], found["PodMonitor"]["spec"]["selector"]["matchLabels"]):
            self.assertTrue(selector)
            self.assertLessEqual(selector.items(), labels.items())
        ports = {port["name"]: port["containerPort"] for port in container(found["DaemonSet"], "gpumeter")["ports"]}
        self.assertEqual(ports, {"metrics": 10478})
        self.assertEqual([port["targetPort"] for port in found["Service"]["spec"]["ports"]], ["metrics"])
        self.assertEqual([endpoint["port"] for endpoint in found["PodMonitor"]["spec"]["podMetricsEndpoints"]], ["metrics"])

    def test_the_rules_job_is_the_monitors(self) -> None:
        monitor = plain()["PodMonitor"]
        job = plain()["DaemonSet"]["spec"]["template"]["metadata"]["labels"][monitor["spec"]["jobLabel"]]
        self.assertIn(f'up{{job="{job}"}}', (ROOT / "packaging/prometheus/alerts.yml").read_text())

    def test_the_image_has_the_projects_version(self) -> None:
        images = {container(daemon_set(), name)["image"] for name in ("gpumeter", "folders")}
        self.assertEqual(images, {f"gpumeter:{VERSION}"})

    def test_the_daemon_accepts_the_flags_and_the_configuration(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            config = Path(folder, "gpumeter.yaml")
            config.write_text(plain()["ConfigMap"]["data"]["gpumeter.yaml"])
            ended = subprocess.run([BINARY, *container(daemon_set(), "gpumeter")["args"], f"--config.file={config}", "--check-config"],
                                   capture_output=True, text=True, timeout=30)
        self.assertEqual(ended.returncode, 0, ended.stdout + ended.stderr)

    def test_the_chart_has_the_mounts_and_volumes_of_the_manifests(self) -> None:
        """`./dev interop kubernetes` compares the rendered objects as a whole."""
        template = {line.strip() for line in (KUBERNETES / "chart/templates/daemonset.yaml").read_text().splitlines()}
        for name in ("manifests/daemonset.yaml", "kubelet-sockets/daemonset.yaml"):
            lines = [line.strip() for line in (KUBERNETES / name).read_text().splitlines()]
            self.assertLessEqual({line for line in lines if re.search("mountPath|hostPath|httpGet", line)}, template)


class DeviceClaimsTest(unittest.TestCase):
    def test_the_chart_claims_devices_with_admin_access_only_if_asked(self) -> None:
        """`./dev interop kubernetes` renders it and decodes it by its type."""
        values = yaml.safe_load((KUBERNETES / "chart/values.yaml").read_text())["dra"]
        self.assertIs(values["enabled"], False)
        first, *lines, last = (KUBERNETES / "chart/templates/resourceclaimtemplate.yaml").read_text().splitlines()
        self.assertEqual((first, last), ("{{- if .Values.dra.enabled }}", "{{- end }}"))
        text = re.sub(r"{{ \.Values\.dra\.(\w+) }}", lambda found: values[found[1]], "\n".join(line for line in lines if "{{- " not in line))
        claim = yaml.safe_load(text.replace("{{ .Release.Namespace }}", "gpumeter"))
        self.assertEqual((claim["apiVersion"], claim["kind"]), ("resource.k8s.io/v1", "ResourceClaimTemplate"))
        self.assertEqual(claim["spec"], {"spec": {"devices": {"requests": [{"name": "all", "exactly": {
            "deviceClassName": "gpu.nvidia.com", "allocationMode": "All", "adminAccess": True, "tolerations": [{"operator": "Exists"}]}}]}}})
        self.assertIn(f"resourceClaimTemplateName: {claim['metadata']['name']}", (KUBERNETES / "chart/templates/daemonset.yaml").read_text())

    @unittest.skipUnless(shutil.which("jq"), "jq is not installed")
    def test_the_recipe_taints_the_failed_gpu_alone(self) -> None:
        recipe = re.findall(r"^```bash\n(.*?)^```$", (ROOT / "docs/kubernetes.md").read_text(), re.M | re.S)[0]
        devices = [{"name": f"gpu-{index}", "attributes": {"resource.kubernetes.io/pciBusID": {"string": f"0000:{index}f:00.0"}}} for index in (0, 1)]
        slices = {"items": [{"spec": {"nodeName": node, "driver": "gpu.nvidia.com", "pool": {"name": node}, "devices": devices}} for node in ("n1", "n2")]}
        answer = {"data": {"result": [{"metric": {"instance": "n2", "uuid": "GPU-1", "pci_address": "0000:1f:00.0"}, "value": [0, "1"]}]}}
        with tempfile.TemporaryDirectory() as folder:
            for name, script in (("curl", f"cat <<'TEXT'\n{json.dumps(answer)}\nTEXT"),
                                 ("kubectl", f"if [ $1 = get ]; then cat <<'TEXT'\n{json.dumps(slices)}\nTEXT\nelse cat; fi")):
                Path(folder, name).write_text(f"#!/bin/sh\n{script}\n")
                Path(folder, name).chmod(0o755)
            done = subprocess.run(["bash", "-c", recipe], capture_output=True, text=True, timeout=30, env={"PATH": f"{folder}:{os.environ['PATH']}"})
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        [rule] = json.loads(done.stdout)["items"]
        self.assertEqual((rule["apiVersion"], rule["kind"], rule["metadata"]["name"]), ("resource.k8s.io/v1", "DeviceTaintRule", "gpumeter-n2-gpu-1"))
        self.assertEqual(rule["spec"], {"deviceSelector": {"driver": "gpu.nvidia.com", "pool": "n2", "device": "gpu-1"},
                                        "taint": {"key": "gpumeter/health", "value": "failed", "effect": "NoSchedule"}})


class ScalingRecipesTest(unittest.TestCase):
    """`./dev interop kubernetes` checks the two objects against the schemas of Kubernetes and KEDA."""
    INFO = 'gpu_workload_info{instance="n%d",kind="pod",workload="u%d",k8s_namespace="%s",k8s_pod="%s",k8s_owner="%s"}'
    PODS = (("shop", "chat-1", "chat", 60), ("shop", "chat-2", "chat", 30), ("shop", "other-1", "other", 60), ("lab", "chat-1", "chat", 60))
    """Namespace, pod, Deployment, and the seconds of each minute in which its GPU is busy."""

    def setUp(self) -> None:
        self.scaled, adapter, self.autoscaler = map(yaml.safe_load, re.findall(r"^```yaml\n(.*?)^```$", (ROOT / "docs/kubernetes.md").read_text(), re.M | re.S))
        [self.rule] = adapter["rules"]["custom"]

    def adapted(self) -> str:
        """The query that prometheus-adapter makes of its template for two pods."""
        labels = {entry["resource"]: label for label, entry in self.rule["resources"]["overrides"].items()}
        parts = {"Series": self.rule["seriesQuery"].partition("{")[0], "GroupBy": labels["pod"],
                 "LabelMatchers": f'{labels["namespace"]}="shop",{labels["pod"]}=~"chat-1|chat-2"'}
        return re.sub(r"<<\.(\w+)>>", lambda found: parts[found[1]], self.rule["metricsQuery"])

    def test_both_ask_for_the_same_figure_and_target(self) -> None:
        [trigger], [metric] = self.scaled["spec"]["triggers"], self.autoscaler["spec"]["metrics"]
        self.assertEqual((metric["pods"]["metric"]["name"], metric["type"]), (self.rule["name"]["as"], "Pods"))
        self.assertEqual(metric["pods"]["target"], {"type": trigger["metricType"], "averageValue": f"{1000 * float(trigger['metadata']['threshold']):.0f}m"})

    @unittest.skipUnless(shutil.which("promtool"), "promtool is not installed")
    def test_the_queries_count_the_busy_gpus_of_the_deployment_alone(self) -> None:
        series = [{"series": name, "values": values} for index, (*names, seconds) in enumerate(self.PODS) for name, values in (
            (self.INFO % (index, index, *names), "1x10"),
            (f'gpu_workload_busy_seconds_total{{instance="n{index}",uuid="GPU-{index}",kind="pod",workload="u{index}"}}', f"0+{seconds}x10"))]
        cases = [(self.scaled["spec"]["triggers"][0]["metadata"]["query"], [("{}", 1.5)]),
                 (self.adapted(), [('{k8s_pod="chat-1"}', 1), ('{k8s_pod="chat-2"}', 0.5)])]
        test = {"evaluation_interval": "1m", "tests": [{"interval": "1m", "input_series": series, "promql_expr_test": [
            {"expr": query, "eval_time": "10m", "exp_samples": [{"labels": labels, "value": value} for labels, value in found]} for query, found in cases]}]}
        with tempfile.NamedTemporaryFile("w", suffix=".yml") as file:
            json.dump(test, file)
            file.flush()
            done = subprocess.run(["promtool", "test", "rules", file.name], capture_output=True, text=True, timeout=30)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)


class ArchivesTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls) -> None:
        cls.folder = Path(cls.enterClassContext(tempfile.TemporaryDirectory(prefix="gpumeter-kubernetes-")))
        for name in ("first", "second"):
            subprocess.run([sys.executable, "-B", str(KUBERNETES / "build"), str(cls.folder / name)], check=True, capture_output=True, timeout=60)
        cls.files: dict[str, str] = {}
        for path in (cls.folder / "first").iterdir():
            with tarfile.open(path) as tar:
                cls.files.update({entry.name: tar.extractfile(entry).read().decode() for entry in tar})

    def test_the_same_tree_makes_the_same_archives(self) -> None:
        names = sorted(path.name for path in (self.folder / "first").iterdir())
        self.assertEqual(names, [f"gpumeter-{VERSION}.tgz", f"gpumeter-kubernetes-{VERSION}.tar.gz"])
        for name in names:
            self.assertTrue((self.folder / "first" / name).read_bytes() == (self.folder / "second" / name).read_bytes(), name)

    def test_rules_are_those_of_prometheus(self) -> None:
        found = {entry["metadata"]["name"]: entry["spec"] for entry in objects(self.files[f"gpumeter-kubernetes-{VERSION}/monitoring/rules.yaml"])}
        self.assertEqual(found, {f"gpumeter-{name}": yaml.safe_load((ROOT / f"packaging/prometheus/{name}.yml").read_text())
                                 for name in ("alerts", "jobs", "rules")})

    def test_dashboards_are_those_of_grafana(self) -> None:
        found = {name: json.loads(text) for entry in objects(self.files[f"gpumeter-kubernetes-{VERSION}/monitoring/dashboards.yaml"])
                 for name, text in entry["data"].items()}
        self.assertEqual(found, {f"gpumeter-{name}.json": json.loads((ROOT / f"packaging/grafana/{name}.json").read_text())
                                 for name in ("fleet", "gpu", "jobs")})

    def test_every_object_fits_into_etcd(self) -> None:
        for name, text in self.files.items():
            if name.endswith(".yaml") and "/chart/" not in name and not name.startswith("gpumeter/"):
                for entry in objects(text):
                    self.assertLess(len(json.dumps(entry)), MOST_OF_AN_OBJECT, name)

    def test_each_resource_of_a_kustomization_exists(self) -> None:
        top = f"gpumeter-kubernetes-{VERSION}"
        for name in ("manifests", "kubelet-sockets", "monitoring"):
            listed = yaml.safe_load(self.files[f"{top}/{name}/kustomization.yaml"])
            for resource in [*listed["resources"], *(patch["path"] for patch in listed.get("patches", []))]:
                path = os.path.normpath(f"{top}/{name}/{resource}")
                self.assertTrue(path in self.files or f"{path}/kustomization.yaml" in self.files, path)

    def test_the_chart_is_complete(self) -> None:
        chart = yaml.safe_load(self.files["gpumeter/Chart.yaml"])
        self.assertEqual((chart["version"], chart["appVersion"]), (VERSION, VERSION))
        named = set(re.findall(r'"files/%s\.(\w+)"', "".join(text for name, text in self.files.items() if name.startswith("gpumeter/templates/"))))
        self.assertEqual(named, {name.rsplit(".", 1)[1] for name in self.files if name.startswith("gpumeter/files/")})
        self.assertLess((self.folder / f"first/gpumeter-{VERSION}.tgz").stat().st_size, MOST_OF_AN_OBJECT, "Helm keeps it in a Secret")


if __name__ == "__main__":
    unittest.main(verbosity=2)
