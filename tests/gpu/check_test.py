#!/usr/bin/env python3
"""tests/gpu/check without a GPU: what it reads, compares and concludes, and the whole of it against a machine made of an
nvidia-smi that repeats an H200's words, a page, and a small libnvidia-ml."""
import http.server
import json
import os
import re
import subprocess
import sys
import tempfile
import threading
import unittest
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path.insert(0, str(HERE))
from gpucheck import compare, load, meters, nvml, overhead, rows, smi  # noqa: E402
from gpucheck.daemon import Daemon  # noqa: E402
from gpucheck.page import Page, delta  # noqa: E402

CAPTURES = Path(os.environ.get("GPUMETER_CAPTURES", ROOT.parent / "shared/captures")) / "nvidia"
UUID = "GPU-1"
# An idle H200 on driver 590.48.01, and its page.
TOLD = {
    "uuid": UUID, "name": "NVIDIA H200", "driver_version": "590.48.01", "pci.bus_id": "00000000:83:00.0", "compute_mode": "Default",
    "persistence_mode": "Enabled", "mig.mode.current": "Disabled", "fan.speed": "[N/A]", "pstate": "P0", "memory.total": "143771",
    "power.draw": "77.71", "enforced.power.limit": "700.00", "temperature.gpu": "28", "clocks.max.sm": "1980", "utilization.gpu": "0",
    "remapped_rows.failure": "No", "fabric.state": "Completed",
    "ecc.errors.corrected.volatile.total": "3",
}
PAGE = """# HELP gpu_info Static facts of the device, as labels; always 1.
gpu_info{gpu="0",uuid="GPU-1",vendor="nvidia",model="NVIDIA H200",driver_version="590.48.01",pci_address="0000:83:00.0"} 1
gpu_mode{gpu="0",uuid="GPU-1",mode="compute",state="default"} 1
gpu_mode{gpu="0",uuid="GPU-1",mode="compute",state="prohibited"} 0
gpu_mode{gpu="0",uuid="GPU-1",mode="persistence",state="enabled"} 1
gpu_mode{gpu="0",uuid="GPU-1",mode="mig",state="disabled"} 1
gpu_performance_state{gpu="0",uuid="GPU-1"} 0
gpu_memory_size_bytes{gpu="0",uuid="GPU-1",memory="vram"} 150754820096
gpu_power_watts{gpu="0",uuid="GPU-1"} 78.5
gpu_power_limit_watts{gpu="0",uuid="GPU-1",limit="enforced"} 700
gpu_temperature_celsius{gpu="0",uuid="GPU-1",sensor="core"} 29
gpu_clock_max_hertz{gpu="0",uuid="GPU-1",clock="sm"} 1.98e+09
gpu_utilization_ratio{gpu="0",uuid="GPU-1"} 0
gpu_row_remap_failed{gpu="0",uuid="GPU-1"} 0
gpu_throttle_reason_seconds_total{gpu="0",uuid="GPU-1",cause="power",reason="sw_power_cap"} 1.5
gpu_fabric_state{gpu="0",uuid="GPU-1",state="completed"} 1
gpu_memory_errors_total{gpu="0",uuid="GPU-1",severity="corrected",location="dram"} 2
gpu_memory_errors_total{gpu="0",uuid="GPU-1",severity="corrected",location="sram"} 1
gpu_temperature_celsius{gpu="1",uuid="GPU-2",sensor="core"} 90
"""
# A GPU that has drawn 100 W since the first call, by the sensor and by the counter.
LIBRARY = """#include <string.h>
#include <time.h>
typedef struct { unsigned field, scope; long long timestamp, latency; unsigned type, result; union { double d; unsigned u; unsigned long long l; } value; } Field;
int nvmlInit_v2(void) { return 0; }
int nvmlShutdown(void) { return 0; }
int nvmlDeviceGetCount_v2(unsigned* count) { *count = 2; return 0; }
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void** device) { *device = (void*)(index ? 1l : 2l); return 0; }
int nvmlDeviceGetUUID(void* device, char* text, unsigned length) { strncpy(text, device == (void*)1 ? "GPU-1" : "GPU-2", length); return 0; }
int nvmlDeviceGetPowerUsage(void* device, unsigned* milliwatts) { *milliwatts = 100000; return device == (void*)1 ? 0 : 2; }
int nvmlDeviceGetCurrentClocksEventReasons(void* device, unsigned long long* reasons) { *reasons = 4; return device == (void*)1 ? 0 : 2; }
int nvmlDeviceGetFieldValues(void* device, int count, Field* fields) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  unsigned long long nanoseconds = now.tv_sec * 1000000000ull + now.tv_nsec;
  for (int i = 0; i < count; ++i) {
    fields[i].result = 0;
    if (fields[i].field == 83) { fields[i].type = 3; fields[i].value.l = nanoseconds / 10000; }
    else if (fields[i].field == 185 || fields[i].field == 186) { fields[i].type = 1; fields[i].value.u = 100000; }
    else if (fields[i].field == 74) { fields[i].type = 3; fields[i].value.l = nanoseconds; }
    else fields[i].result = 3;
  }
  return device == (void*)1 ? 0 : 2;
}
"""

BINARY = os.environ.get("GPUMETER_BINARY", str(ROOT / "build/release/gpumeter"))
# What of torch is used, with a product of a millisecond.
TORCH = """import time
bfloat16 = None
class Matrix:
    def __matmul__(self, other): time.sleep(0.001)
def randn(*shape, device, dtype): return Matrix()
class cuda:
    @staticmethod
    def is_available(): return True
    @staticmethod
    def synchronize(): pass
"""


def row(field: str) -> rows.Row:
    return next(one for one in rows.ROWS if one.field == field)


def verdict(field: str, text: "str | None", *pages: str) -> str:
    return compare.compare(row(field), {field: text}, [Page(page) for page in pages], UUID).verdict


def watts(value: float) -> str:
    return f'gpu_power_watts{{uuid="GPU-1"}} {value}\n'


class Reading(unittest.TestCase):
    def test_csv(self):
        told = smi.parse("GPU-1, NVIDIA H200, 77.71, [N/A]\nGPU-2, Tesla T4, [Unknown Error], N/A\n", ["uuid", "name", "power.draw", "fan.speed"])
        self.assertEqual(told, {"GPU-1": {"uuid": "GPU-1", "name": "NVIDIA H200", "power.draw": "77.71", "fan.speed": None},
                                "GPU-2": {"uuid": "GPU-2", "name": "Tesla T4", "power.draw": None, "fan.speed": None}})
        self.assertEqual(smi.parse("No devices were found\n", ["uuid", "name"]), {})

    def test_help(self):
        text = 'List of "--query-gpu":\n\n"name" or "gpu_name"\nThe "official" name.\n"pci.bus_id"\n'
        self.assertEqual(smi.parse_help(text), {"name", "gpu_name", "pci.bus_id"})

    def test_page(self):
        page = Page('# TYPE a gauge\na{uuid="GPU-1",x="q\\"}, "} 1\na{uuid="GPU-1",x="y"} 2.5\nb 3\n')
        self.assertEqual((page.total("a", UUID), page.total("a", UUID, x="y"), page.total("a", UUID, x="z"), page.total("b", UUID)),
                         (3.5, 2.5, None, None))
        self.assertEqual(delta(Page(watts(1)), Page(watts(3)), "gpu_power_watts", UUID), 2)
        self.assertIsNone(delta(page, Page(watts(3)), "gpu_power_watts", UUID))

    def test_words_and_numbers(self):
        self.assertEqual([compare.number(text) for text in ("77.71", "P8", "Not Active", "Yes", "-3", "0x4", "Default")],
                         [77.71, 8, 0, 1, -3, None, None])
        self.assertEqual((compare.word("Exclusive Process"), compare.word("Exclusive_Process")), ("exclusive_process",) * 2)
        self.assertEqual((compare.pci_address("00000000:0F:00.0"), compare.pci_address("00010000:0F:00.0")), ("0000:0f:00.0", "00010000:0f:00.0"))


class Comparing(unittest.TestCase):
    def test_a_moving_value_lies_between_the_pages_or_within_the_tolerance(self):
        # 5 W and 5 % of what nvidia-smi says.
        for said, before, after, expected in ((100, 90, 110, "same"), (100, 110, 110, "same"), (100, 110.1, 120, "differs"),
                                              (100, 80, 89.9, "differs"), (100, 90, 90, "same")):
            self.assertEqual(verdict("power.draw", str(said), watts(before), watts(after)), expected, (said, before, after))

    def test_units(self):
        size = 'gpu_memory_size_bytes{{uuid="GPU-1",memory="vram"}} {}\n'
        self.assertEqual(verdict("memory.total", "143771", size.format(143771 * 2**20)), "same")
        self.assertEqual(verdict("memory.total", "143771", size.format(143771e6)), "differs")
        clock = 'gpu_clock_max_hertz{{uuid="GPU-1",clock="sm"}} {}\n'
        self.assertEqual(verdict("clocks.max.sm", "1980", clock.format("1.98e+09")), "same")
        self.assertEqual(verdict("clocks.max.sm", "1980", clock.format("1.981e+09")), "differs")

    def test_absent_is_not_zero_and_not_told_is_no_failure(self):
        self.assertEqual(verdict("power.draw", "0", "", ""), "absent")
        self.assertEqual(verdict("power.draw", None, "", ""), "not told")
        self.assertEqual(verdict("temperature.gpu", "90", PAGE), "differs")  # 90 is the other GPU's

    def test_states(self):
        self.assertEqual(verdict("compute_mode", "Default", PAGE), "same")
        self.assertEqual(verdict("compute_mode", "Prohibited", PAGE), "differs")
        self.assertEqual(verdict("ecc.mode.current", "Enabled", PAGE), "absent")

    def test_rounds(self):
        same, differs, none = (compare.Result("f", "s", "1", "1", word) for word in ("same", "differs", "not told"))
        moving, still = row("power.draw"), row("memory.total")
        self.assertEqual(compare.over_rounds(moving, [same, differs])[0].verdict, "same")
        self.assertEqual(compare.over_rounds(moving, [same, differs, differs])[0].verdict, "differs")
        self.assertEqual(compare.over_rounds(still, [same, same, differs])[0].verdict, "differs")
        self.assertEqual(compare.over_rounds(still, [none, same]), (same, 1))
        self.assertEqual(compare.over_rounds(still, [none, none]), (none, 0))

    def test_each_row_is_of_a_family_that_exists(self):
        catalogue = set(re.findall(r'(?:gauge|counter)\("(\w+)"', (ROOT / "collectors/api/catalog.hpp").read_text()))
        self.assertEqual({one.family for one in rows.ROWS} - catalogue, set())
        self.assertEqual(len({(one.field, one.family) for one in rows.ROWS}), len(rows.ROWS))

    @unittest.skipUnless(CAPTURES.is_dir(), "no captures of nvidia-smi here")
    def test_each_row_is_a_field_of_some_nvidia_smi_and_its_words_are_understood(self):
        valid: set[str] = set()
        for path in sorted(CAPTURES.glob("*.txt")):
            text = path.read_text()
            valid |= smi.parse_help(text)
            queries = re.findall(r"^# \$ nvidia-smi --query-gpu=(\S+) --format=csv\n#+\n.*\n(GPU|\d.*)$", text, re.M)
            self.assertGreater(len(queries), 0, path.name)
            for fields, line in queries:
                told, = smi.parse(re.sub(r"(?<=\d) (MiB|MHz|W|%|us)(?=,|$)", "", line), fields.split(",")).values()
                for one in rows.ROWS:
                    if not (one.label or one.state) and told.get(one.field) is not None:
                        self.assertIsNotNone(compare.number(told[one.field]), (path.name, one.field, told[one.field]))
        self.assertEqual({one.field for one in rows.ROWS} - valid, set())


class Concluding(unittest.TestCase):
    def test_an_integral(self):
        self.assertEqual(meters.integral([(0, 100), (1, 300), (3, 300)]), 800)
        self.assertEqual(meters.integral([]), 0)

    def test_energy(self):
        polled = [(float(at), {83: at * 100e3, 185: 100e3, 186: 120e3}, 0) for at in range(11)]
        page = 'gpu_energy_joules_total{{uuid="GPU-1"}} {}\n'
        found = meters.energy(polled, Page(page.format(50)), Page(page.format(1100)), UUID)
        # 1000 J counted; 1200 J by the instant power, 1000 J by the average; ours gained 1050.
        self.assertEqual([finding.verdict for finding in found], ["differs", "same", "same"])
        self.assertEqual([finding.verdict for finding in meters.energy(polled, Page(""), Page(""), UUID)], ["differs", "same", "not told"])

    def test_the_unit_of_a_throttle_counter(self):
        for gained, seconds, held, unit in ((10e9, 10, 1, "ns"), (10e6, 10, 1, "us"), (5e6, 10, 0.5, "us"), (2e9, 10, 0.2, "ns"),
                                            (10.2e6, 10, 1, "us"), (9e6, 10, 0, "us or ns"), (0, 10, 1, "no gain")):
            self.assertEqual(meters.unit(gained, seconds, held), unit, (gained, held))

    def test_throttled_time_gained(self):
        page = 'gpu_throttle_reason_seconds_total{{uuid="GPU-1",cause="power",reason="sw_power_cap"}} {}\n'
        field = "clocks_event_reasons_counters.sw_power_cap"
        # An hour before the daemon knew the card, then 20 s.
        first, last = {field: "3600000000"}, {field: "3620000000"}
        for gained, expected in ((20, "same"), (21.9, "same"), (22.1, "differs"), (0.02, "differs")):
            found, *others = meters.reason_times(first, last, Page(page.format(1)), Page(page.format(1 + gained)), UUID)
            self.assertEqual(found.verdict, expected, gained)
            self.assertEqual({other.verdict for other in others}, {"not told"})
        self.assertEqual(meters.reason_times(first, last, Page(""), Page(""), UUID)[0].verdict, "absent")

    def test_quantiles(self):
        values = [float(value) for value in range(100, 0, -1)]
        self.assertEqual((nvml.quantile(values, 0.5), nvml.quantile(values, 0.99), nvml.quantile([7.0], 0.99)), (51, 100, 7))


class Whole(unittest.TestCase):
    """The program itself: tools found by PATH and LD_LIBRARY_PATH, the page by --url."""

    def setUp(self) -> None:
        self.folder = Path(self.enterContext(tempfile.TemporaryDirectory(prefix="gpucheck-")))
        (self.folder / "nvml.c").write_text(LIBRARY)
        subprocess.run(["cc", "-shared", "-fPIC", "-o", str(self.folder / "libnvidia-ml.so.1"), str(self.folder / "nvml.c")], check=True, timeout=60)
        self.serve(PAGE)

    def serve(self, page: str) -> None:
        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self.send_response(200)
                self.end_headers()
                self.wfile.write(page.encode())

            def log_message(self, *_: object) -> None:
                pass
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.addCleanup(self.server.server_close)
        self.addCleanup(self.server.shutdown)

    def machine(self, told: dict[str, str]) -> None:
        (self.folder / "nvidia-smi").write_text(f"""#!/usr/bin/python3
import sys
told = {told!r}
option, _, asked = sys.argv[1].partition("=")
if option == "-L": print("GPU 0: NVIDIA H200 (UUID: GPU-1)")
if option == "--help-query-gpu": print("\\n".join(f'"{{field}}"' for field in told))
if option == "--query-gpu": print(", ".join(told[field] for field in asked.split(",")))
""")
        (self.folder / "nvidia-smi").chmod(0o755)

    def check(self) -> tuple[int, str, dict]:
        report = self.folder / "report.json"
        said = subprocess.run([sys.executable, "-B", str(HERE / "check"), f"--url=http://127.0.0.1:{self.server.server_port}", f"--json={report}",
                               "--rounds=1", "--seconds=1", "--no-load"], capture_output=True, text=True, timeout=120,
                              env={**os.environ, "PATH": f"{self.folder}:/usr/bin:/bin", "LD_LIBRARY_PATH": str(self.folder)})
        return said.returncode, said.stdout + said.stderr, json.loads(report.read_text()) if report.exists() else {}

    def test_no_gpu(self):
        code, text, report = self.check()
        self.assertEqual((code, report), (77, {}), text)

    def test_all_agree(self):
        self.machine(TOLD)
        code, text, report = self.check()
        self.assertEqual(code, 0, text)
        verdicts = {row["field"]: row["verdict"] for row in report["comparisons"]}
        self.assertEqual(verdicts, {field: "not told" if field == "fan.speed" else "same" for field in TOLD if field != "uuid"})
        energy, _, ours, *units = report["idle"]["findings"]
        self.assertEqual((energy["verdict"], ours["verdict"]), ("same", "not told"), text)
        self.assertRegex(units[0]["got"], r"gained .*: ns$")
        self.assertEqual({one["verdict"] for one in units[1:]}, {"not told"}, units)
        self.assertEqual({name: cost["code"] for name, cost in report["idle"]["calls"].items()},
                         {"nvmlDeviceGetPowerUsage": 0, "nvmlDeviceGetCurrentClocksEventReasons": 0, "nvmlDeviceGetFieldValues": 0})
        self.assertEqual(report["idle"]["unknown_field_code"], 3)

    def test_one_differs(self):
        self.machine({**TOLD, "temperature.gpu": "35"})
        code, text, report = self.check()
        self.assertEqual(code, 1)
        self.assertEqual([row["field"] for row in report["comparisons"] if row["verdict"] == "differs"], ["temperature.gpu"])
        self.assertRegex(text, r"differs +0/1 +temperature\.gpu +35 +29 ")
        self.assertIn("\n1 failed\n", text)


class Weighing(unittest.TestCase):
    """Load and daemon as processes: the loop is torch's double, the daemon is the real one, on a machine without an NVIDIA GPU."""

    def setUp(self) -> None:
        folder = self.enterContext(tempfile.TemporaryDirectory(prefix="gpucheck-"))
        Path(folder, "torch.py").write_text(TORCH)
        before = os.environ.get("PYTHONPATH")
        os.environ["PYTHONPATH"] = folder
        self.addCleanup(lambda: os.environ.pop("PYTHONPATH") if before is None else os.environ.update(PYTHONPATH=before))

    def test_a_load_says_what_it_did(self):
        self.assertTrue(load.available(UUID))
        with load.Load(UUID, 0.5, 0.05, 0.05) as work:
            result = work.result()
        self.assertEqual(set(result), {"elapsed", "duty", "flops"})
        self.assertTrue(0 < result["duty"] < 1, result)
        # Each product is 2 x 8192^3 operations and takes a millisecond at least.
        self.assertTrue(0 < result["flops"] <= 2 * 8192**3 / 0.001, result)

    def test_a_load_without_torch_says_so(self):
        os.environ["PYTHONPATH"] = "/nonexistent"
        with self.assertRaisesRegex(RuntimeError, "torch could not start"), load.Load(UUID, 0.1):
            pass

    def test_a_duty_cycle_is_found_in_the_counters(self):
        pages = iter([Page('gpu_busy_seconds_total{uuid="GPU-1"} 10\ngpu_observed_seconds_total{uuid="GPU-1",tier="fast"} 20\n'),
                      Page('gpu_busy_seconds_total{uuid="GPU-1"} 15\ngpu_observed_seconds_total{uuid="GPU-1",tier="fast"} 25\n')])
        found, = meters.duty(lambda: next(pages), UUID, 0.1, 0.1)
        self.assertEqual((found.got, found.verdict), ("1.000", "differs"))

    def test_the_daemon_is_weighed_and_stopped(self):
        daemon = Daemon(BINARY)
        try:
            self.assertIsNotNone(daemon.page().samples["gpumeter_build_info"])
            weight = overhead.weight(daemon, 1)
        finally:
            daemon.stop()
        self.assertTrue(2**20 < weight["rss_bytes"] < 2**30, weight)
        self.assertGreaterEqual(weight["cpu_share_of_a_core"], 0)
        self.assertIsNotNone(daemon.process.returncode)

    def test_the_slowdown_alternates(self):
        found = overhead.slowdown(BINARY, UUID, 2, 0.1)
        self.assertEqual((len(found["flops_without"]), len(found["flops_with"])), (2, 2))
        self.assertGreater(found["change"], -1)


if __name__ == "__main__":
    unittest.main(verbosity=2)
