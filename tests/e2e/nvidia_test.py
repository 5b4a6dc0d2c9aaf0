#!/usr/bin/env python3
"""The daemon over the fake NVML: GPUs that are lost and hang, a storm of XIDs, drivers that come and go, MIG."""
import signal
import sys
import time
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "fakes/nvml"))
from hang_test import Watch, observed, values_of  # noqa: E402
from harness import OF_THE_HOST, STOP, Daemon, Page, run, wait_until  # noqa: E402
from machine import SCENARIOS, Machine  # noqa: E402
from workloads_test import machine as processes  # noqa: E402

EIGHT = "include: h100_8.yaml\n"
OTHERS = tuple("0124567")
# On a busy machine eight GPUs are read after many seconds, and what lasts for a few is not seen.
LOST = EIGHT + """
change: {3: {lost: {from: 12, until: 20}}}
events: [{at: 11.8, device: 3, type: xid, data: 79}]
"""
HUNG = EIGHT + "change: {3: {hang: {function: all, after: 10, for: forever}}}\n"
UNREAD = EIGHT + "change: {3: {errors: {all: {steps: [[0, ok], [6, {error: unknown}], [16, ok]]}}}}\n"
ALL_HUNG = EIGHT + "hang: {function: all, after: 10, for: forever}\n"
STORM_RATE, STORM_SECONDS = 1000, 5
STORM = EIGHT + f"storms: [{{from: 3, until: {3 + STORM_SECONDS}, rate: {STORM_RATE}, device: 3, type: xid, data: 31}}]\n"
OPERATIONAL = EIGHT + """
change: {0: {operational_events: yes}, 1: {operational_events: {error: no_permission}}, 2: {operational_events: {error: no_permission}}}
events:
  - {at: 4, device: 0, type: xid, data: 119}
  - {at: 4.2, device: 0, type: operational, module: GPU-GSP, code: 1, severity: 40, contexts: [119]}
  - {at: 4.4, device: 0, type: operational, module: GPU-BUS, code: 3, severity: 40, attributes: 64, contexts: [79]}
  - {at: 6, device: 1, type: xid, data: 31}
hang: {function: nvmlEventSetWait_v3, after: 10, for: forever}
"""
DRIVER = EIGHT + """
errors: {all: {steps: [[0, {error: driver_not_loaded}], [2, ok], [12, {error: unknown}], [12.5, {error: driver_not_loaded}], [20, ok]]}}
"""
# GPU instance 7 is recreated with another size.
MIG = """
include: h200_mig7.yaml
change:
  0:
    mig:
      instances:
        - {uuid: MIG-a, gi: 7, ci: 0, name: H200 MIG 1g.18gb, present: {steps: [[0, yes], [5, no]]},
           memory: {total: 16384 MiB, reserved: 0 MiB, used: 1 MiB, free: 9000 MiB}}
        - {uuid: MIG-b, gi: 7, ci: 0, name: H200 MIG 2g.35gb, present: {steps: [[0, no], [5, yes]]},
           memory: {total: 33280 MiB, reserved: 0 MiB, used: 2 MiB, free: 9000 MiB}}
        - {uuid: MIG-c, gi: 9, ci: 0, name: H200 MIG 1g.18gb,
           memory: {total: 16384 MiB, reserved: 0 MiB, used: 3 MiB, free: 9000 MiB}}
"""
# The same, and the driver reports it.
MIG_EVENT = MIG + """
    supported_events: [xid, mig_config_change]
events: [{at: 5.1, device: 0, type: mig_config_change}]
"""


JOB = "/system.slice/slurmstepd.scope/job_4711"


def with_job(pid: int) -> str:
    """The process of a job of 4 s."""
    present = "{steps: [[0, 0], [3, 1], [7, 0]]}"
    return EIGHT + f"change: {{0: {{processes: {{compute: [{{pid: {pid}, memory: 1024 MiB, present: {present}}}]}}}}}}\n"


def up(page: Page) -> list[float | None]:
    return [page.one("gpu_up", gpu=str(i)) for i in range(8)]


def has_gpu_up_alone(page) -> bool:
    """Workloads, which a thread of their own looks after each second, are gone too."""
    return {name for name, _ in page if name.startswith("gpu_") and not name.startswith(("gpu_health", *OF_THE_HOST))} == {"gpu_up"}


def are_read(page: Page) -> bool:
    return up(page) == [1.0] * 8 and all((observed(page, str(i)) or 0) > 0 for i in range(8))


def are_heard(page: Page) -> bool:
    """The event thread registers for the events of a GPU in its own time; until then they have no series."""
    return are_read(page) and len(page.of("gpu_events_total", event="single_bit_ecc")) == 8


def nudge(daemon: Daemon) -> None:
    """A driver that is loaded is found by its uevents, or at the look once a minute; this has it looked for at once."""
    daemon.send(signal.SIGUSR1)
    wait_until(lambda: daemon.page().one("gpumeter_collector_released", collector="nvidia") == 1, "the drivers are closed")
    daemon.send(signal.SIGUSR2)


def cpu_seconds(daemon: Daemon) -> float:
    fields = Path(f"/proc/{daemon.process.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / 100  # utime, stime (proc(5)); USER_HZ is 100 on Linux


class NvidiaTest(unittest.TestCase):
    maxDiff = None

    def assert_counters_went_on(self, before: Page, after: Page, gpu: str) -> None:
        counters = [key for key in before.counters() if ("gpu", gpu) in key[1] and key[0].startswith("gpu_")]
        self.assertGreater(len(counters), 50)
        for counter in counters:
            self.assertGreaterEqual(after.get(counter, -1), before[counter], counter)

    def assert_keeps_up(self, watch: Watch, before: tuple[Page, float], after: tuple[Page, float]) -> None:
        for gpu in OTHERS:
            counted = observed(after[0], gpu) - observed(before[0], gpu)
            self.assertAlmostEqual(counted, after[1] - before[1], delta=2.5, msg=f"gpu {gpu} lost time")
        print(f"largest gap of the other seven {watch.largest_gap:.2f} s, slowest page {watch.slowest * 1e3:.0f} ms")

    def assert_ended_well(self, daemon: Daemon, machine: Machine, not_given_back: str = "") -> None:
        code, seconds = daemon.stop()
        self.assertEqual(code, 0, daemon.log)
        self.assertLess(seconds, STOP)
        # Closed, and no rule of NVML broken: of a driver that is gone nothing can be given back.
        self.assertRegex(machine.report.read_text(), rf"^(shutdown \d+\n{not_given_back})+$")

    def test_a_gpu_that_falls_off_the_bus_and_returns(self):
        with Machine(LOST) as machine, Daemon(*machine.arguments, env=machine.env) as daemon:
            watch = Watch(daemon, OTHERS)
            before = watch.until(are_read, "all are read", 30)

            def is_lost(page: Page) -> bool:
                is_lost.last = page if values_of(page, "3") else is_lost.last
                return page.one("gpu_up", gpu="3") == 0

            is_lost.last = before[0]
            lost, lost_at = watch.until(is_lost, "GPU 3 is lost", 30)
            self.assertEqual(values_of(lost, "3"), set())
            self.assertEqual([lost.one("gpu_up", gpu=gpu) for gpu in OTHERS], [1] * 7)
            back = watch.until(are_heard, "GPU 3 is back", 60)
            self.assertEqual(back[0].of("gpu_up").keys(), before[0].of("gpu_up").keys())
            self.assert_counters_went_on(is_lost.last, back[0], "3")
            self.assert_keeps_up(watch, before, back)
            print(f"GPU 3 was away for {back[1] - lost_at:.1f} s")
            for event in ("bus_lost", "returned"):
                counts = [back[0].one("gpu_events_total", gpu=str(i), event=event) for i in range(8)]
                self.assertEqual(counts, [0, 0, 0, 1, 0, 0, 0, 0], event)
            xids = {dict(key[1])["gpu"] + "/" + dict(key[1])["xid"]: count
                    for key, count in back[0].of("gpu_xid_errors_total").items() if count > 0}
            self.assertEqual(xids, {"3/79": 1})
            self.assertEqual(daemon.log.count("the driver reports xid 79"), 1, daemon.log)
            self.assertEqual(daemon.log.count("device lost"), 1, daemon.log)
            self.assert_ended_well(daemon, machine)

    def test_a_gpu_that_hangs(self):
        with Machine(HUNG) as machine, Daemon(*machine.arguments, env=machine.env) as daemon:
            watch = Watch(daemon, OTHERS)
            before = watch.until(are_read, "all are read", 30)
            hung = watch.until(lambda page: page.one("gpu_up", gpu="3") == 0, "GPU 3 is given up", 30)
            self.assertEqual(values_of(hung[0], "3"), set())
            later = watch.until(lambda page: observed(page, "0") > observed(hung[0], "0") + 4, "the others go on", 30)
            self.assertEqual(up(later[0]), [1, 1, 1, 0, 1, 1, 1, 1])
            self.assert_keeps_up(watch, before, later)
            self.assertEqual(daemon.log.count("device does not answer"), 1, daemon.log)
            code, seconds = daemon.stop()
            self.assertEqual(code, 0, daemon.log)
            self.assertLess(seconds, STOP)
            print(f"one of eight hung: SIGTERM to exit {seconds:.2f} s")

    def test_a_gpu_whose_every_call_fails(self):
        with Machine(UNREAD) as machine, Daemon(*machine.arguments, env=machine.env) as daemon:
            watch = Watch(daemon, OTHERS)
            before = watch.until(are_read, "all are read", 30)
            down, down_at = watch.until(lambda page: page.one("gpu_up", gpu="3") == 0, "GPU 3 is down", 15)
            self.assertEqual(values_of(down, "3"), set())
            back, back_at = watch.until(are_read, "GPU 3 is back", 30)
            lost = back_at - before[1] - (observed(back, "3") - observed(before[0], "3"))
            self.assertGreater(lost, back_at - down_at - 1)  # the time without a reading is not observed
            self.assert_counters_went_on(before[0], watch.until(are_heard, "and goes on", 30)[0], "3")
            errors = {gpu: sum(back.of("gpumeter_read_errors_total", gpu=gpu).values()) for gpu in "0123"}
            self.assertGreater(errors.pop("3"), 0)
            self.assertEqual(errors, {"0": 0, "1": 0, "2": 0})
            self.assertIn("every read fails: failed", daemon.log)

    def test_all_gpus_hang(self):
        with Machine(ALL_HUNG) as machine, Daemon(*machine.arguments, env=machine.env) as daemon:
            watch = Watch(daemon, ())
            watch.until(are_read, "all are read", 30)
            watch.until(lambda page: up(page) == [0.0] * 8, "all are given up", 40)
            watch.until(has_gpu_up_alone, "nothing else of them stays", 5)
            self.assertEqual(daemon.fetch("/-/healthy").status, 200)
            code, seconds = daemon.stop()
            self.assertEqual(code, 0, daemon.log)
            self.assertLess(seconds, STOP)
            print(f"all hung: slowest page {watch.slowest * 1e3:.0f} ms, SIGTERM to exit {seconds:.2f} s")

    def test_a_storm_of_xids(self):
        expected = STORM_RATE * STORM_SECONDS
        with Machine(STORM) as machine, Daemon(*machine.arguments, env=machine.env) as daemon:
            count = lambda: daemon.page().one("gpu_xid_errors_total", gpu="3", xid="31") or 0  # noqa: E731
            wait_until(count, "the storm is counted", 30)
            cpu, began = cpu_seconds(daemon), time.monotonic()
            time.sleep(STORM_SECONDS - 1)
            share = (cpu_seconds(daemon) - cpu) / (time.monotonic() - began)
            wait_until(lambda: count() >= expected, "all of them are counted", 30, every=0.5)
            time.sleep(1.5)  # a pass more: no more come
            self.assertEqual(count(), expected)
            self.assertEqual(daemon.log.count("the driver reports xid 31"), 1, daemon.log)
            self.assert_ended_well(daemon, machine)
            print(f"{STORM_RATE} XIDs a second: the daemon takes {share:.1%} of a CPU, the fake included")

    def test_operational_events_next_to_xids(self):
        with Machine(OPERATIONAL) as machine, Daemon(*machine.arguments, env=machine.env) as daemon:
            has_all = lambda page: page.one("gpu_xid_errors_total", gpu="1", xid="31") and len(page.of("gpu_operational_events_total")) == 2  # noqa: E731
            page = wait_until(lambda: has_all(p := daemon.page()) and p, "all events", 30)
            self.assertEqual(page.one("gpu_operational_events_total", gpu="0", module="GPU-GSP", code="0x0001", severity="fatal"), 1)
            self.assertEqual(page.one("gpu_operational_events_total", gpu="0", module="GPU-BUS", code="0x0003", severity="fatal"), 1)
            self.assertEqual({xid: page.one("gpu_xid_errors_total", gpu="0", xid=xid) for xid in ("119", "79")}, {"119": 1, "79": 1})
            self.assertEqual({gpu: page.one("gpu_operational_event_overflows_total", gpu=gpu) for gpu in "013"}, {"0": 1, "1": None, "3": None})
            self.assertEqual(daemon.log.count("CAP_SYS_ADMIN"), 1, daemon.log)
            self.assertIn("the driver reports operational event GPU-GSP 0x0001, fatal, of xid 119", daemon.log)
            time.sleep(5)  # the call hangs now: only the thread of the events waits for it
            before = daemon.page()
            later = lambda page: all((observed(page, str(i)) or 0) > (observed(before, str(i)) or 0) + 2 for i in range(8))  # noqa: E731
            self.assertEqual(up(wait_until(lambda: later(p := daemon.page()) and p, "all GPUs are read", 30)), [1.0] * 8)
            code, seconds = daemon.stop()
            self.assertEqual(code, 0, daemon.log)
            self.assertLess(seconds, STOP)

    def test_a_driver_that_comes_goes_and_returns(self):
        with Machine(DRIVER) as machine, Daemon(*machine.arguments, env=machine.env) as daemon:
            page = wait_until(lambda: (p := daemon.page()).of("gpumeter_collector_up", collector="nvidia") and p, "a first look")
            self.assertEqual(page.one("gpumeter_collector_up", collector="nvidia"), 0)
            self.assertEqual(page.of("gpu_up"), {})
            self.assertEqual(daemon.log.count("the kernel module is not loaded: modprobe nvidia"), 1, daemon.log)
            time.sleep(2.2)
            nudge(daemon)
            there = wait_until(lambda: are_heard(p := daemon.page()) and p, "all are read", 30)
            self.assertEqual(there.one("gpumeter_collector_up", collector="nvidia"), 1)
            wait_until(lambda: up(daemon.page()) == [0.0] * 8, "all are lost", 30)
            wait_until(lambda: has_gpu_up_alone(daemon.page()), "nothing else of them stays", 5)
            back = wait_until(lambda: are_heard(p := daemon.page()) and p, "all are read again", 60)
            self.assertEqual(back.of("gpu_up").keys(), there.of("gpu_up").keys())
            self.assert_counters_went_on(there, back, "3")
            self.assert_ended_well(daemon, machine, "(nvmlShutdown before nvml(GpmSample|EventSet)Free\n)*")

    def test_library_and_driver_of_different_versions(self):
        with Machine(SCENARIOS / "driver_mismatch.yaml") as machine, Daemon(*machine.arguments, env=machine.env) as daemon:
            for _ in range(3):  # three looks
                nudge(daemon)
                wait_until(lambda: daemon.page().one("gpumeter_collector_released", collector="nvidia") == 0, "a look")
            self.assertEqual(daemon.page().one("gpumeter_collector_up", collector="nvidia"), 0)
            told = [line for line in daemon.log.splitlines() if "reboot needed" in line]
            self.assertEqual(len(told), 1, daemon.log)
            self.assertEqual(daemon.stop()[0], 0)

    def test_drivers_are_released_on_request(self):
        with Machine(SCENARIOS / "h100_8.yaml") as machine, Daemon(*machine.arguments, env=machine.env) as daemon:
            before = wait_until(lambda: are_heard(p := daemon.page()) and p, "all are read", 30)
            self.assertFalse(machine.report.exists())
            daemon.send(signal.SIGUSR1)
            released = lambda: daemon.page().one("gpumeter_collector_released", collector="nvidia")  # noqa: E731
            wait_until(lambda: released() == 1, "the drivers are closed", 10)
            # Nothing of NVML's is open any more, and nothing was open or under way as it was closed.
            self.assertRegex(wait_until(lambda: machine.report.exists() and machine.report.read_text(), "shut down", 5),
                             r"^shutdown \d+\n$")
            daemon.send(signal.SIGUSR2)
            back = wait_until(lambda: are_heard(p := daemon.page()) and p, "all are read again", 30)
            self.assert_counters_went_on(before, back, "3")
            for event in ("bus_lost", "returned"):
                self.assertEqual(sum(back.of("gpu_events_total", event=event).values()), 0, event)
            self.assert_ended_well(daemon, machine)

    def test_a_gpu_that_is_divided_anew(self):
        def instances(page: Page) -> dict[str, str]:
            return {dict(labels)["partition"]: dict(labels)["mig_uuid"] for _, labels in page.of("gpu_partition_info")}

        with Machine(MIG, sampling="{normal: 1s}") as machine, Daemon(*machine.arguments, env=machine.env) as daemon:
            before = wait_until(lambda: (p := daemon.page()).of("gpu_partition_memory_size_bytes") and p, "the first ones", 30)
            self.assertEqual(instances(before), {"1g.18gb:7": "MIG-a", "1g.18gb:9": "MIG-c"})
            after = wait_until(lambda: "2g.35gb:7" in instances(p := daemon.page()) and p, "the new ones", 30)
            self.assertEqual(instances(after), {"2g.35gb:7": "MIG-b", "1g.18gb:9": "MIG-c"})
            sizes = {dict(key[1])["partition"]: value / 2**20
                     for key, value in after.of("gpu_partition_memory_size_bytes", memory="vram").items()}
            self.assertEqual(sizes, {"2g.35gb:7": 33280, "1g.18gb:9": 16384})
            self.assertEqual(after.one("gpu_events_total", gpu="0", event="bus_lost"), 0)
            energy = [page.one("gpu_energy_joules_total", gpu="0") for page in (before, after)]
            self.assertGreater(energy[1], energy[0])
            self.assert_ended_well(daemon, machine)

    def test_a_new_division_that_the_driver_reports_is_read_at_once(self):
        """The tier that looks for a new division has its next turn in five minutes, discovery in one."""
        with Machine(MIG_EVENT, sampling="{normal: 5m, slow: 5m}") as machine, Daemon(*machine.arguments, env=machine.env) as daemon:
            names = lambda page: {dict(labels)["partition"] for _, labels in page.of("gpu_partition_info")}
            wait_until(lambda: "1g.18gb:7" in names(daemon.page()), "the first ones", 30)
            page = wait_until(lambda: "2g.35gb:7" in names(p := daemon.page()) and p, "the new ones", 30)
            self.assertEqual(page.one("gpu_events_total", gpu="0", event="mig_config_change"), 1)
            self.assert_ended_well(daemon, machine)

    def test_virtual_machines_share_the_gpu_of_their_host(self):
        with Machine(SCENARIOS / "vgpu_host.yaml", sampling="{normal: 2s}") as machine, \
                Daemon(*machine.arguments, env=machine.env) as daemon:
            busy = lambda page: {dict(labels)["workload"]: value
                                 for (_, labels), value in page.of("gpu_workload_busy_seconds_total", kind="vm").items()}
            page = wait_until(lambda: sum(busy(p := daemon.page()).values()) > 1 and p, "the machines are busy", 30)
            times, shares = busy(page), page.of("gpu_workload_share_ratio", kind="vm")
            first, second = "7a1c2b3d-1111-4222-8333-944455556666", "0f9e8d7c-aaaa-4bbb-8ccc-9dddeeeeffff"
            self.assertEqual(times.keys(), {first, second, "vgpu-3251634215"})
            self.assertAlmostEqual(times[first] / times[second], 40 / 26)
            self.assertEqual(times["vgpu-3251634215"], 0)
            self.assertAlmostEqual(sum(shares.values()), 1)
            energy = sum(page.of("gpu_workload_energy_joules_total").values())
            self.assertAlmostEqual(energy, page.one("gpu_energy_joules_total"), places=3)
            memory = sum(page.of("gpu_workload_memory_used_bytes").values())
            self.assertEqual(memory, page.one("gpu_memory_used_bytes", memory="vram"))
            self.assert_ended_well(daemon, machine)

    def test_links_by_themselves_after_a_reload(self):
        with Machine(SCENARIOS / "h100_8.yaml") as machine, Daemon(*machine.arguments, env=machine.env) as daemon:
            before = wait_until(lambda: are_read(p := daemon.page()) and p, "all are read", 30)
            self.assertEqual(before.of("gpu_link_up"), {})
            machine.configure(links="each")
            daemon.send(signal.SIGHUP)
            after = wait_until(lambda: (p := daemon.page()).of("gpu_link_up", gpu="7") and are_read(p) and p, "links", 30)
            self.assertEqual(len(after.of("gpu_link_up", gpu="3")), 18)
            self.assertEqual(len(after.of("gpu_link_received_bytes_total", gpu="3")), 18)
            self.assertEqual(after.of("gpu_up").keys(), before.of("gpu_up").keys())
            machine.configure(links="some")
            daemon.send(signal.SIGHUP)
            wait_until(lambda: daemon.page().one("gpumeter_config_last_reload_successful") == 0, "a bad value is refused", 10)
            wait_until(lambda: 'links: must be sum or each, not "some"' in daemon.log.replace("\\", ""), "the log says why", 5)
            self.assert_ended_well(daemon, machine)

    def test_list_devices(self):
        buses = ("1b", "43", "52", "61", "9d", "c3", "d1", "df")
        lines = [f"{i}    GPU-a100000{i}-0000-4000-8000-00000000000{i}  NVIDIA H100 80GB HBM3  0000:{bus}:00.0  nvidia  nvidia\n"
                 for i, bus in enumerate(buses)]
        head = "GPU  UUID                                      MODEL                  PCI ADDRESS   DRIVER  COLLECTOR\n"
        devices, sources = self.listed("h100_8").split("\n\n")
        self.assertEqual(devices + "\n", head + "".join(lines))
        self.assertEqual([line.split(maxsplit=1)[1] for line in sources.splitlines() if line.startswith("0")][1:],
                         ["utilization          read   nvmlDeviceGetUtilizationRates",
                          "energy counter       read   NVML_FI_DEV_TOTAL_ENERGY_CONSUMPTION",
                          "throttle counters    read   NVML_FI_DEV_PERF_POLICY_POWER",
                          "performance metrics  read   nvmlGpmQueryDeviceSupport",
                          "memory errors        read   nvmlDeviceGetEccMode",
                          "events               read   nvmlDeviceGetSupportedEventTypes"])
        divided = self.listed("h200_mig7").splitlines()
        self.assertIn("0    utilization          absent  nvmlDeviceGetUtilizationRates "
                      "(not available for a divided GPU (MIG): see gpu_partition_*)", divided)
        self.assertRegex(self.listed("driver_mismatch"), "^no GPU found\nnvidia: .*: reboot needed: ")

    def listed(self, scenario: str) -> str:
        with Machine(SCENARIOS / f"{scenario}.yaml") as machine:
            said = run("--list-devices", *machine.arguments, f"--path.state={machine.folder}", env=machine.env)
        self.assertEqual(said.returncode, 0, said.stderr)
        return said.stdout


class ShortJobTest(unittest.TestCase):
    def test_a_job_of_four_seconds_is_seen_although_processes_are_listed_once_a_minute(self) -> None:
        with processes() as running:
            scenario = with_job(running.start(JOB + "/step_0/user/task_0"))
            with Machine(scenario, sampling="{normal: 60s, slow: 60s}") as machine:
                groups = machine.folder / "sys/fs/cgroup"
                (groups / JOB[1:]).parent.mkdir(parents=True)
                (groups / "cgroup.controllers").touch()
                with Daemon(*machine.arguments, f"--path.procfs={running.procfs}", env=machine.env) as daemon:
                    job = lambda: daemon.page().of("gpu_workload_memory_used_bytes", kind="slurm_job", workload="4711")
                    time.sleep(2)  # the group is watched
                    self.assertFalse(job())
                    (groups / JOB[1:]).mkdir()
                    wait_until(job, "the job is seen", 10)
                    self.assertEqual(daemon.stop()[0], 0)


if __name__ == "__main__":
    unittest.main(verbosity=2)
