#!/usr/bin/env python3
"""The wire format: given these calls, exactly these datagrams."""
from __future__ import annotations

import fractions
import logging
import sys
import types
import unittest
from typing import Any
from unittest import mock

from receiver import STARTED, Clock, Receiver, gpumeter, run_at

START = f"_e{{9,8}}:run_start|resnet50|d:{STARTED}|#run:resnet50"


class LinesTest(unittest.TestCase):
    def setUp(self) -> None:
        self.receiver = self.enterContext(Receiver())
        self.clock = Clock()
        logging.disable(logging.CRITICAL)
        self.addCleanup(logging.disable, logging.NOTSET)

    def started(self, environ: dict[str, str] | None = None, **info: str) -> gpumeter.Run:
        """A run whose first datagram is read."""
        run = run_at(self.receiver.path, self.clock, environ, **info)
        self.addCleanup(run.stop)
        self.receiver.datagrams()
        return run

    def sent(self) -> list[str]:
        """A second on, and at the next call."""
        self.clock.now += 1
        for run in list(gpumeter._process.open_runs):
            run._out.flush_if_due()
        return self.receiver.lines()

    def test_start_and_stop(self) -> None:
        with run_at(self.receiver.path, self.clock, framework="pytorch", version="2.5.1", model="resnet50"):
            self.assertEqual(self.receiver.datagrams(), [START + ",framework:pytorch,version:2.5.1,model:resnet50\n"])
            self.clock.now += 90
        self.assertEqual(self.receiver.datagrams(), [
            START + ",framework:pytorch,version:2.5.1,model:resnet50\n"
            f"_e{{8,7}}:run_stop|success|d:{STARTED + 90}|#run:resnet50\n"])

    def test_one_duration_a_second_names_its_trace(self) -> None:
        """tests/interop/otlp_collector_test.py has OpenTelemetry's own spans."""
        span = types.SimpleNamespace(trace_id=0x4BF92F3577B34DA6A3CE929D0E0E4736, span_id=0xF067AA0BA902B7, is_valid=True, trace_flags=1)
        tracing = types.SimpleNamespace(get_current_span=lambda: types.SimpleNamespace(get_span_context=lambda: span))
        plain, traced = "|d|#run:resnet50", "|d|#run:resnet50,trace_id:4bf92f3577b34da6a3ce929d0e0e4736,span_id:00f067aa0ba902b7"
        run = self.started()
        with mock.patch.dict(sys.modules, {"opentelemetry.trace": tracing}):
            for _ in range(2):
                for seconds in (0.5, 0.75, 0.25):
                    run.inference(seconds, ttft=0.125 if seconds == 0.75 else None, samples=None)
                self.assertEqual(self.sent(), [f"ml.infer.seconds:0.5{traced}", f"ml.infer.seconds:0.75:0.25{plain}", f"ml.ttft.seconds:0.125{traced}"])
            span.trace_flags = 0
            run.inference(0.5, samples=None)
            self.assertEqual(self.sent(), [f"ml.infer.seconds:0.5{plain}"], "the tracer does not keep it")
            span.is_valid = False
            run.inference(0.5, samples=None)
            self.assertEqual(self.sent(), [f"ml.infer.seconds:0.5{plain}"], "no span")
            del span.is_valid
            run.inference(0.5, samples=None)
            self.assertEqual(self.sent(), [f"ml.infer.seconds:0.5{plain}"], "another interface")

    def test_the_trace_that_started_the_process(self) -> None:
        trace, span = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
        tags = f",trace_id:{trace},span_id:{span}"
        for parent, expected in {f"00-{trace}-{span}-01": tags, f"cc-{trace}-{span}-01-more": tags, f"00-{trace}-{span}-00": "",
                                 f"ff-{trace}-{span}-01": "", f"00-{'0' * 32}-{span}-01": "", f"00-{trace}-{span}": "", "": ""}.items():
            run = self.started({"TRACEPARENT": parent})
            run.inference(0.5, samples=None)
            self.assertEqual(self.sent(), [f"ml.infer.seconds:0.5|d|#run:resnet50{expected}"], parent)
            run.stop()
            self.receiver.datagrams()

    def test_steps(self) -> None:
        run = self.started()
        self.clock.now += 0.5
        run.step(samples=256)
        self.assertEqual(self.receiver.datagrams(), ["ml.step:1|g|#run:resnet50\n"
                                                     "ml.steps:1|c|#run:resnet50,split:train\n"
                                                     "ml.samples:256|c|#run:resnet50,split:train\n"], "the first, at once")
        for _ in range(4):
            self.clock.now += 0.25
            run.step(samples=256, tokens=1048576, flops=3.1e15, loss=2.125)
        self.assertEqual(self.receiver.datagrams(), ["ml.step:5|g|#run:resnet50\n"
                                                     "ml.steps:4|c|#run:resnet50,split:train\n"
                                                     "ml.step.seconds:0.25:0.25:0.25:0.25|d|#run:resnet50,split:train\n"
                                                     "ml.samples:1024|c|#run:resnet50,split:train\n"
                                                     "ml.tokens:4194304|c|#run:resnet50,split:train,kind:train\n"
                                                     "ml.flops:1.24e+16|c|#run:resnet50,dtype:bf16\n"
                                                     "ml.loss:2.125|g|#run:resnet50,split:train\n"], "the rest, as one")

    def test_flops_have_the_precision_of_the_run(self) -> None:
        run = self.started(facts={"precision": "32-true"})
        run.step(flops=1.0, seconds=1)
        run.facts(precision="mixed")  # names no type
        run.count(flops=1.0)
        run.count(flops=1.0, dtype="fp8")
        self.assertEqual([line.rpartition(":")[2] for line in self.sent() if line.startswith("ml.flops")], ["fp32", "bf16", "fp8"])

    def test_the_start_has_milliseconds(self) -> None:
        self.clock.now += 0.38
        run_at(self.receiver.path, self.clock).stop()
        self.assertEqual(self.receiver.datagrams()[0].partition("\n")[0], START.replace("|#", "|ms:380|#"))

    def test_steps_of_other_splits(self) -> None:
        run = self.started()
        run.step(samples=50, seconds=0.0625, split="eval")
        run.step(tokens=7, split="infer")
        self.assertEqual(self.sent(), ["ml.steps:1|c|#run:resnet50,split:eval",
                                       "ml.step.seconds:0.0625|d|#run:resnet50,split:eval",
                                       "ml.samples:50|c|#run:resnet50,split:eval",
                                       "ml.steps:1|c|#run:resnet50,split:infer",
                                       "ml.tokens:7|c|#run:resnet50,split:infer,kind:input"])

    def test_counts(self) -> None:
        run = self.started()
        run.count(samples=3, split="eval")
        run.count(tokens=10, kind="output", split="infer")
        run.count(flops=2e12, dtype="fp8")
        self.assertEqual(self.sent(), ["ml.samples:3|c|#run:resnet50,split:eval",
                                       "ml.tokens:10|c|#run:resnet50,split:infer,kind:output",
                                       "ml.flops:2000000000000.0|c|#run:resnet50,dtype:fp8"])

    def test_a_step_has_the_time_that_no_phase_outside_of_it_has(self) -> None:
        run = self.started()
        run.begin_step()
        with run.phase("data_loading"):
            self.clock.now += 0.25
        with run.phase("eval"):
            with run.phase("checkpoint_save"):
                self.clock.now += 0.125
            self.clock.now += 0.03125
        with run.phase("forward"):
            self.clock.now += 0.5
        self.clock.now += 0.0625
        run.phase_took("checkpoint_load", 0.0625)
        self.receiver.datagrams()
        run.step()
        self.assertEqual(self.receiver.lines(), ["ml.phase.seconds:0.125|d|#run:resnet50,phase:checkpoint_save",
                                                 "ml.phase.seconds:0.03125|d|#run:resnet50,phase:eval",
                                                 "ml.phase.seconds:0.5|d|#run:resnet50,phase:forward",
                                                 "ml.phase.seconds:0.0625|d|#run:resnet50,phase:checkpoint_load",
                                                 "ml.step:1|g|#run:resnet50",
                                                 "ml.steps:1|c|#run:resnet50,split:train",
                                                 "ml.step.seconds:0.75|d|#run:resnet50,split:train"])

    def test_phases(self) -> None:
        run = self.started()
        for name in sorted(gpumeter.PHASES) + ["lunch"]:
            with run.phase(name):
                self.clock.now += 0.03125
        lines = self.sent()
        for name in sorted(gpumeter.PHASES - {"other"}):
            self.assertIn(f"ml.phase.seconds:0.03125|d|#run:resnet50,phase:{name}", lines)
        self.assertIn("ml.phase.seconds:0.03125:0.03125|d|#run:resnet50,phase:other", lines)

    def test_what_is_collected_goes_before_a_phase_that_may_be_long(self) -> None:
        run = self.started()
        run.count(samples=1)
        with run.phase("data_loading"):
            self.assertEqual(self.receiver.datagrams(), [])
        with run.phase("checkpoint_save"):
            self.assertEqual(self.receiver.lines(), ["ml.samples:1|c|#run:resnet50,split:train",
                                                     "ml.phase.seconds:0|d|#run:resnet50,phase:data_loading"])

    def test_evaluations_go_at_once(self) -> None:
        run = self.started()
        run.eval("top1", 0.71, target=0.759)
        run.eval("error rate", 12, target=9.5, direction="min")
        run.eval("top5", 0.9)
        self.assertEqual(self.receiver.datagrams(), [
            "ml.target:0.759|g|#run:resnet50,metric:top1,direction:max\nml.eval:0.71|g|#run:resnet50,metric:top1\n",
            "ml.target:9.5|g|#run:resnet50,metric:error rate,direction:min\n"
            "ml.eval:12|g|#run:resnet50,metric:error rate,direction:min\n",
            "ml.eval:0.9|g|#run:resnet50,metric:top5\n"])

    def test_directions(self) -> None:
        """A target always has one; an evaluation that is given none leaves it to the daemon, which has the same rule."""
        run = self.started()
        run.eval("top1", 0.5, direction="max")
        run.eval("edits", 3, direction="min")
        for metric in ("loss", "eval_loss", "val/Perplexity", "word error rate", "test-WER", "rate", "top1", "lossless"):
            run.target(metric, 1)
        run.eval("edits", 3, direction="up")
        self.assertEqual([line for line in self.sent() if "metric:" in line], [
            "ml.eval:0.5|g|#run:resnet50,metric:top1,direction:max", "ml.eval:3|g|#run:resnet50,metric:edits,direction:min",
            "ml.target:1|g|#run:resnet50,metric:loss,direction:min", "ml.target:1|g|#run:resnet50,metric:eval_loss,direction:min",
            "ml.target:1|g|#run:resnet50,metric:val/Perplexity,direction:min",
            "ml.target:1|g|#run:resnet50,metric:word error rate,direction:min",
            "ml.target:1|g|#run:resnet50,metric:test-WER,direction:min",
            "ml.target:1|g|#run:resnet50,metric:rate,direction:max", "ml.target:1|g|#run:resnet50,metric:top1,direction:max",
            "ml.target:1|g|#run:resnet50,metric:lossless,direction:max"])
        self.assertEqual(run.dropped, {"refused": 1})

    def test_inference(self) -> None:
        run = self.started()
        run.inference(0.5, ttft=0.125, itl=[0.0625, 0.03125], input_tokens=100, output_tokens=3)
        run.inference(0.25, itl=0.0625)
        self.assertEqual(self.sent(), ["ml.infer.seconds:0.5:0.25|d|#run:resnet50",
                                       "ml.ttft.seconds:0.125|d|#run:resnet50",
                                       "ml.itl.seconds:0.0625:0.03125:0.0625|d|#run:resnet50",
                                       "ml.samples:2|c|#run:resnet50,split:infer",
                                       "ml.tokens:100|c|#run:resnet50,split:infer,kind:input",
                                       "ml.tokens:3|c|#run:resnet50,split:infer,kind:output"])

    def test_gauges_have_their_last_value(self) -> None:
        run = self.started()
        run.loss(3)
        run.loss(-2.5)
        run.loss(1.5, split="eval")
        run.batch_size(4096)
        run.world_size(8)
        self.assertEqual(self.sent(), ["ml.loss:-2.5|g|#run:resnet50,split:train",
                                       "ml.loss:1.5|g|#run:resnet50,split:eval",
                                       "ml.batch_size:4096|g|#run:resnet50",
                                       "ml.world_size:8|g|#run:resnet50"])

    def test_a_run_that_goes_on(self) -> None:
        run = self.started()
        run.resume(1200)
        self.assertEqual(self.receiver.datagrams(), ["_e{7,4}:restart|1200|#run:resnet50\nml.step:1200|g|#run:resnet50\n"])
        run.step()
        run.step(step=1300)
        self.assertEqual(self.sent()[0], "ml.step:1300|g|#run:resnet50")
        run.step()
        self.assertEqual(self.sent()[0], "ml.step:1301|g|#run:resnet50")

    def test_a_daemon_started_anew_is_reminded(self) -> None:
        run = self.started({"WORLD_SIZE": "2"})
        run.target("top1", 0.759)
        run.batch_size(512)
        self.sent()
        self.clock.now += gpumeter._outbox.REMIND_SECONDS
        run.count(samples=5)
        self.assertEqual(self.receiver.datagrams(), [START + "\n"
                                                     "ml.world_size:2|g|#run:resnet50\n"
                                                     "ml.target:0.759|g|#run:resnet50,metric:top1,direction:max\n"
                                                     "ml.batch_size:512|g|#run:resnet50\n"
                                                     "ml.samples:5|c|#run:resnet50,split:train\n"])

    def test_one_rank_speaks_for_the_run_and_one_for_each_machine(self) -> None:
        def told(**environ: str) -> set[str]:
            run = self.started(environ)
            run.step(samples=1, loss=2)
            run.eval("top1", 0.5, target=0.75)
            run.batch_size(64)
            lines = {line.split(":")[0] for line in self.sent()} & {"ml.step", "ml.steps", "ml.samples", "ml.loss", "ml.eval",
                                                                    "ml.target", "ml.batch_size"}
            run.stop()
            return lines
        every = {"ml.step", "ml.steps", "ml.samples"}
        of_the_run = {"ml.loss", "ml.eval", "ml.target"}
        self.assertEqual(told(), every | of_the_run | {"ml.batch_size"})
        self.assertEqual(told(RANK="0", LOCAL_RANK="0"), every | of_the_run | {"ml.batch_size"})
        self.assertEqual(told(RANK="3", LOCAL_RANK="3"), every)
        self.assertEqual(told(RANK="8", LOCAL_RANK="0"), every | {"ml.batch_size"})
        self.assertEqual(told(SLURM_PROCID="3", SLURM_LOCALID="1"), every)
        self.assertEqual(told(RANK="first"), every | of_the_run | {"ml.batch_size"})

    def test_the_number_of_processes_is_known_from_the_environment(self) -> None:
        for environ in ({"WORLD_SIZE": "16"}, {"SLURM_NTASKS": "16", "SLURM_PROCID": "0"}):
            with run_at(self.receiver.path, self.clock, environ):
                self.assertEqual(self.receiver.lines(), [START, "ml.world_size:16|g|#run:resnet50"])
            self.receiver.datagrams()

    def test_names(self) -> None:
        given: Any
        for given, told in (("a b:c/d@e", "a b:c/d@e"), ("a|b,c\nd\x7fe\ud800", "a_b_c_d_e_"), ("", "_"), (None, "None"),
                            ("x" * 64, "x" * 64), ("é" * 40, "é" * 27 + "~da5a8f25"),
                            ("x" + "é" * 40, "x" + "é" * 27 + "~21e77707"),
                            ("x" * 200, "x" * 55 + "~b3e4b6e5")):
            with gpumeter.Run(given, path=self.receiver.path, environ={}, wall=self.clock.wall):
                size = len(told.encode())
                self.assertEqual(self.receiver.lines(), [f"_e{{9,{size}}}:run_start|{told}|d:{STARTED}|#run:{told}"])
            self.receiver.datagrams()

    def test_what_the_daemon_would_refuse_is_not_sent(self) -> None:
        run: Any = self.started()
        for value in (float("nan"), float("inf"), -1, 1.1e18, "7", object(), [1]):
            run.step(samples=value)
        run.loss(float("nan"))
        run.eval("top1", float("nan"))
        run.step(split="test")
        run.step(sample=1)
        run.count(tokens=1, kind="all")
        run.eval("top1", 0.5, target=0.7, direction="up")
        run.stop("done")
        self.assertEqual(run.dropped, {"refused": 14})
        lines = self.sent()
        self.assertEqual([line for line in lines if "samples" in line or "loss" in line], [])
        self.assertEqual([line for line in lines if "ml.eval" in line], ["ml.eval:0.5|g|#run:resnet50,metric:top1"])
        self.assertEqual(sum(int(line.split(":")[1].split("|")[0]) for line in lines if "dropped" in line), 14)

    def test_other_numbers(self) -> None:
        run: Any = self.started()
        run.step(samples=fractions.Fraction(3, 2), flops=True)
        self.assertEqual(self.receiver.lines()[2:], ["ml.samples:1.5|c|#run:resnet50,split:train",
                                                     "ml.flops:1.0|c|#run:resnet50,dtype:bf16"])

    def test_after_the_end_nothing_is_sent(self) -> None:
        run = self.started()
        run.stop("aborted")
        self.assertEqual(self.receiver.lines(), [f"_e{{8,7}}:run_stop|aborted|d:{STARTED}|#run:resnet50"])
        run.stop()
        run.step(samples=1)
        run.eval("top1", 1)
        self.clock.now += 100
        run.loss(1)
        self.assertEqual((self.receiver.datagrams(), run.dropped), ([], {"stopped": 5}))

    def test_no_datagram_is_larger_than_8_KiB(self) -> None:
        run = self.started()
        for number in range(90):
            run.target(f"{number:064}", 1)
            run.inference(1.234567e-05, itl=[1.234567e-05, 1.234567e-05])
        self.clock.now += 1
        run.count()
        datagrams = self.receiver.datagrams()
        self.assertEqual([line.count(":1.234567e-05") for line in "".join(datagrams).splitlines() if ".itl." in line], [180])
        self.assertEqual(["ml.target" in datagram for datagram in datagrams], [True, True])
        self.assertLessEqual(max(map(len, datagrams)), 8192)


if __name__ == "__main__":
    unittest.main(warnings="error")
