#!/usr/bin/env python3
"""`gpumeter explain` reads the lines of kernel logs from public threads (tests/fixtures/kernel_log), in all formats of the tools that print
logs; it judges by the catalogue, and says nothing of lines that are no event or that user space wrote."""
import json
import resource
import subprocess
import unittest

from harness import BINARY, ROOT, is_sanitized, run

COLUMNS = ("vendor", "pci", "kind", "code", "subcode", "link", "severity", "action")
KEYS = ["line", *COLUMNS]
STRONG = {"drain", "reset", "reboot", "replace"}
HEADS = ("", "[  123.456789] ", "[Tue Nov 24 17:00:00 2026] ", "kern  :err   : [  123.456789] ", "kern  :warn  : 2026-11-24T17:00:00,123456+00:00 ",
         "<4>[  123.456789] ", "Nov 24 17:00:00 node kernel: ", "Nov 24 17:00:00.123456 node kernel: [  123.456789] ",
         "2026-11-24T17:00:00+0000 node kernel: ", "[12345.678901] node kernel: ", "Tue 2026-11-24 17:00:00 UTC node kernel: ",
         "<4>1 2026-11-24T17:00:00.000Z node kernel - - - ", "4,1234,5678901,-;", "2026-11-24T17:00:00.000000000Z stderr F [  1.2] ",
         "\x1b[32m[  123.456789] \x1b[0m\x1b[31m")
OF_USERS = ("Nov 24 17:00:00 node app[7]: ", "Nov 24 17:00:00 node app: ", "12,1234,5678901,-;", "user  :notice: [  123.456789] ", "<13>[  1.2] ",
            "<13>1 2026-11-24T17:00:00.000Z node app - - - ", "[12345.678901] node app[7]: ", "Nov 24 17:00:00 node kernel: usb 1-1: Product: ")


def corpus() -> list[dict]:
    lines = (ROOT / "tests/fixtures/kernel_log/lines.tsv").read_text().splitlines()
    rows = [line.split("\t") for line in lines if not line.startswith("#")]
    return [dict(zip(("source", "says", *COLUMNS, "text"), row, strict=True)) for row in rows]


def expected(row: dict) -> dict | None:
    if row["kind"] == "-":
        return None
    numbers = {"code", "subcode", "link"}
    return {key: None if row[key] == "-" else int(row[key]) if key in numbers else row[key] for key in COLUMNS}


def explain(text: str) -> dict[int, dict]:
    """The events of a log, by their lines."""
    done = subprocess.run([BINARY, "explain", "--json"], input=text.encode(), capture_output=True, timeout=60, check=True)
    events = [json.loads(line) for line in done.stdout.splitlines()]
    assert all(list(event) == KEYS for event in events), events
    return {event.pop("line"): event for event in events}


class ExplainTest(unittest.TestCase):
    maxDiff = None

    def test_lines_of_public_threads(self) -> None:
        rows = corpus()
        found = explain("".join(row["text"] + "\n" for row in rows))
        for number, row in enumerate(rows, 1):
            with self.subTest(line=number, source=row["source"]):
                self.assertEqual(found.get(number), expected(row), row["text"])
        self.assertGreater(len(rows), 300)
        self.assertGreater(len(found), 200)

    def test_the_corpus_asks_for_nothing_where_its_source_sees_no_harm(self) -> None:
        for row in corpus():
            with self.subTest(row["text"]):
                self.assertFalse(row["says"] in {"none", "harmless", "recovered", "up", "job"} and row["action"] in STRONG)
                self.assertEqual(row["says"] == "none", row["kind"] == "-" and row["says"] != "harmless")

    def test_each_format_of_the_tools(self) -> None:
        rows = [row for row in corpus() if row["text"].startswith(("NVRM: Xid (PCI", "amdgpu 0", "xe 0", "i915 0", "pcieport 0", "nvidia-nvs"))]
        self.assertGreater(len(rows), 60)
        for head in HEADS:
            found = explain("".join(f"{head}{row['text']}\r\n" for row in rows))
            self.assertEqual([found.get(number) for number in range(1, len(rows) + 1)], [expected(row) for row in rows], head)
        for wrap in (lambda text: json.dumps({"_TRANSPORT": "kernel", "PRIORITY": "4", "MESSAGE": text}),
                     lambda text: json.dumps({"MESSAGE": list(text.encode()), "_TRANSPORT": "kernel"}),
                     lambda text: json.dumps({"log": f"[  1.2] {text}\n", "stream": "stdout", "labels": {"a": [1, "}"]}})):
            found = explain("".join(wrap(row["text"]) + "\n" for row in rows))
            self.assertEqual([found.get(number) for number in range(1, len(rows) + 1)], [expected(row) for row in rows])

    def test_what_user_space_wrote_is_none(self) -> None:
        texts = [row["text"] for row in corpus() if row["text"].startswith("NVRM: Xid (PCI")]
        for head in OF_USERS:
            self.assertEqual(explain("".join(f"{head}{text}\n" for text in texts)), {}, head)
        for fields in ({"_TRANSPORT": "stdout"}, {"_TRANSPORT": "syslog", "SYSLOG_IDENTIFIER": "kernel"},
                       {"_TRANSPORT": "kernel", "SYSLOG_FACILITY": "3"}, {}):
            self.assertEqual(explain("".join(json.dumps({**fields, "MESSAGE": text}) + "\n" for text in texts)), {}, fields)

    def test_the_text_names_line_device_and_remedy(self) -> None:
        log = "hello\n[ 1.2] NVRM: Xid (PCI:0018:01:00): 149, NETIR_LINK_EVT Fatal XC0 i0 Link 09 (0x025525c6 0x0)\n"
        said = subprocess.run([BINARY, "explain"], input=log, capture_output=True, text=True, timeout=30, check=True).stdout
        self.assertEqual(said, "line 2: 0018:01:00.0 failed: xid 149.37, link 9: NVLINK: NETIR Error (look at the device at the other end of the link); "
                               "action: reset\n")
        said = subprocess.run([BINARY, "explain"], input="hello\n", capture_output=True, text=True, timeout=30, check=True).stdout
        self.assertEqual(said, "no event in 1 lines\n")

    def test_codes_and_reasons(self) -> None:
        self.assertEqual(run("explain", "xid", "79").stdout,
                         "XID 79: GPU has fallen off the bus\n  severity: failed\n  concerns: all jobs on the GPU; it must not get new ones before the "
                         "action\n  action: reboot (reboot the machine)\n  NVIDIA's resolution bucket: RESTART_BM\n")
        self.assertIn("    RLW_REMAP, sub-code any, status bits of 0xc0: RESET_GPU\n", run("explain", "xid", "145").stdout)
        self.assertIn("  action: reset (", run("explain", "sxid", "20034").stdout)
        links = run("explain", "reason", "links_down").stdout
        self.assertRegex(links, r"\Alinks_down: link N is down\n  severity: failed\n")
        self.assertIn("  runbook: docs/runbooks.md#gpulinksdown\n", links)
        self.assertEqual(json.loads(run("explain", "--json", "xid", "13").stdout)["action"], "restart_job")

    def test_wrong_words(self) -> None:
        for words, code, message in ((("reason", "nothing"), 1, 'no condition has the reason "nothing"'), (("xid", "x"), 1, "xid requires a number"),
                                     (("xid",), 2, "explain xid requires a code"), (("nothing", "1"), 2, "KIND: must be xid, sxid or reason")):
            said = run("explain", *words)
            self.assertEqual((said.returncode, message in said.stderr), (code, True), said)

    def test_a_long_line_takes_little_memory(self) -> None:
        """Three lines of 64 MiB, the second of which begins with an event."""
        with subprocess.Popen([BINARY, "explain", "--json"], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
            for front in (b"", b"\nNVRM: Xid (PCI:0000:3d:00): 79, ", b'\n{"MESSAGE":"'):
                process.stdin.write(front)
                for _ in range(64):
                    process.stdin.write(b"[" * (1 << 20))
            process.stdin.close()
            self.assertEqual([json.loads(line)["line"] for line in process.stdout], [2])
        if not is_sanitized():
            self.assertLess(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss, 64 << 10)  # KiB


if __name__ == "__main__":
    unittest.main(verbosity=2)
