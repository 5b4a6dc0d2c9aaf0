#!/usr/bin/env python3
"""How runs begin, continue and end: real processes that stop, are killed, fork and restart, with a daemon that restarts too, and
runs of one name in several workloads."""
from __future__ import annotations

import time
import unittest

from harness import Daemon, Page, wait_until
from jobs import Folder, Job, shown, value

SLURM = "/system.slice/slurmstepd.scope/job_{}/step_0/user/task_{}"


def stops(page: Page, run: str) -> dict[str, float]:
    """Times by status."""
    return {dict(labels)["status"]: time for (_, labels), time in page.of("ml_run_stop_timestamp_seconds", run=run).items()}


def stopped(daemon: Daemon, run: str) -> Page:
    """The page, as soon as the run is over."""
    return wait_until(lambda: (page := daemon.page()) and stops(page, run) and page, f"{run} is over", 30)


class JobRunsTest(unittest.TestCase):
    def setUp(self) -> None:
        self.folder = self.enterContext(Folder())

    def job(self, name: str, group: str = "") -> Job:
        return self.enterContext(Job(self.folder, name, group))

    def test_a_killed_run_is_lost_until_it_is_started_again(self) -> None:
        with self.folder.daemon() as daemon:
            first = self.job("a")
            first.begin("ml.step:9|g")
            shown(daemon, {'ml_step{run="a"}': 9})
            killed = time.time()
            first.process.kill()  # without a wait: the process is a zombie from now on
            page = stopped(daemon, "a")
            self.assertEqual(list(stops(page, "a")), ["lost"])
            self.assertAlmostEqual(stops(page, "a")["lost"], killed, delta=10)
            second = self.job("a")
            second.begin("ml.step:4|g")
            page = shown(daemon, {'ml_step{run="a"}': 4, 'ml_run_restarts_total{run="a"}': 1,
                                  'ml_run_start_timestamp_seconds{run="a"}': first.start})
            self.assertEqual(stops(page, "a"), {})
            second.stop()
            page = stopped(daemon, "a")
            self.assertEqual(list(stops(page, "a")), ["success"])

    def test_a_run_ends_with_its_last_rank(self) -> None:
        with self.folder.daemon() as daemon:
            leaves, stays = self.job("a"), self.job("a")
            for rank in (leaves, stays):
                rank.begin("ml.steps:1|c", "ml.target:0.5|g|#metric:m")
            stays.say("ml.eval:0.6|g|#metric:m")
            leaves.stop()
            leaves.process.stdin.close()
            leaves.process.wait()
            time.sleep(2.5)
            stays.begin("ml.steps:1|c")
            page = shown(daemon, {'ml_steps_total{run="a"}': 3, 'ml_eval_best_value{run="a"}': 0.6})
            self.assertEqual(stops(page, "a"), {})
            self.assertGreater(value(page, 'ml_run_time_seconds{run="a"}'), 2)
            self.assertIsNotNone(value(page, 'ml_time_to_solution_seconds{run="a"}'))
            stays.stop()
            page = stopped(daemon, "a")
            self.assertEqual(list(stops(page, "a")), ["success"])

    def test_forks_that_end_without_a_word_lose_nothing(self) -> None:
        with self.folder.daemon() as daemon:
            job = self.job("a")
            job.begin()
            for _ in range(3):
                job.begin("ml.phase.seconds:0.5|d|#phase:data_loading", fork=True)
                job.say("ml.phase.seconds:0.5|d|#phase:data_loading", fork=True)
            page = shown(daemon, {'ml_phases_total{run="a"}': 6})
            time.sleep(2.5)  # they are found gone
            self.assertEqual(stops(daemon.page(), "a"), {})
            job.stop()
            page = stopped(daemon, "a")
            self.assertEqual(list(stops(page, "a")), ["success"])
            self.assertEqual(value(page, 'ml_run_restarts_total{run="a"}'), 0)

    def test_a_daemon_that_is_started_before_at_and_after_the_target(self) -> None:
        before, at, after = jobs = [self.job(name) for name in ("before", "at", "after")]
        target = "ml.target:0.7|g|#metric:m"
        with self.folder.daemon() as daemon:
            for job in jobs:
                job.begin(target, "ml.eval:0.5|g|#metric:m")
            time.sleep(3.5)
            after.say("ml.eval:0.8|g|#metric:m")
            page = shown(daemon, {'ml_eval_value{run="after"}': 0.8, 'ml_eval_value{run="at"}': 0.5})
            self.assertGreater(value(page, 'ml_time_to_solution_seconds{run="after"}'), 3)
        with self.folder.daemon() as daemon:
            before.say("ml.eval:0.6|g|#metric:m")
            at.say("ml.eval:0.8|g|#metric:m")
            after.say("ml.eval:0.75|g|#metric:m")
            shown(daemon, {'ml_eval_value{run="after"}': 0.75})
            for job in jobs:  # the client's reminder
                job.begin(target)
            met = time.time()
            before.say("ml.eval:0.8|g|#metric:m")
            page = shown(daemon, {'ml_eval_value{run="before"}': 0.8, **{f'ml_target_value{{run="{job.name}"}}': 0.7 for job in jobs},
                                  **{f'ml_run_start_timestamp_seconds{{run="{job.name}"}}': job.start for job in jobs}})
            self.assertAlmostEqual(value(page, 'ml_time_to_solution_seconds{run="before"}'), met - before.start, delta=1)
            for job in (at, after):
                self.assertIsNone(value(page, f'ml_time_to_solution_seconds{{run="{job.name}"}}'))
                self.assertGreater(value(page, f'ml_run_time_seconds{{run="{job.name}"}}'), 3)

    def test_runs_of_one_name_in_several_jobs_of_slurm(self) -> None:
        with self.folder.daemon(f"--path.procfs={self.folder.path}/proc") as daemon:
            tasks = [self.job("a", SLURM.format(number, task)) for number in (101, 102) for task in (0, 1)]
            for task in tasks:
                task.begin("ml.steps:1|c")
                shown(daemon, {'ml_steps_total{run="a"}': min(2, tasks.index(task) + 1)})
            shown(daemon, {'ml_steps_total{run="a"}': 2, 'ml_steps_total{run="a@102"}': 2})
            for task in tasks[:2]:
                task.process.kill()
                task.process.wait()
            page = stopped(daemon, "a")
            self.assertEqual([list(stops(page, run)) for run in ("a", "a@102")], [["lost"], []])
            requeued = self.job("a", SLURM.format(101, 0))
            requeued.begin("ml.steps:1|c")
            page = shown(daemon, {'ml_steps_total{run="a"}': 3, 'ml_run_restarts_total{run="a"}': 1,
                                  'ml_run_restarts_total{run="a@102"}': 0})
            self.assertEqual(stops(page, "a"), {})


if __name__ == "__main__":
    unittest.main(verbosity=2)
