#!/usr/bin/env python3
"""The programs have the compiler's and the linker's protections: those of the build, and those of the .deb in $GPUMETER_DEB."""
import os
import platform
import re
import subprocess
import sys
import tempfile
import unittest
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
BINARY = Path(os.environ.get("GPUMETER_BINARY", str(ROOT / "build/release/gpumeter")))
DEB = os.environ.get("GPUMETER_DEB")
X86 = platform.machine() == "x86_64"


@cache
def output(*command: str) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=120, env={**os.environ, "LC_ALL": "C"}).stdout


def missing(program: Path) -> list[str]:
    """The protections that the program lacks."""
    header, dynamic = output("readelf", "-hW", str(program)), output("readelf", "-dW", str(program))
    segments, symbols = output("readelf", "-lW", str(program)), output("readelf", "-W", "--dyn-syms", str(program))
    stack = re.search(r"GNU_STACK.*", segments)
    code = output("objdump", "-d", "--no-show-raw-insn", str(program)) if X86 else ""
    checks = {
        "position-independent executable": re.search(r"Type:\s+DYN", header) and re.search(r"FLAGS_1\).*\bPIE\b", dynamic),
        "read-only relocations": "GNU_RELRO" in segments,
        "immediate binding": re.search(r"FLAGS_1\).*\bNOW\b", dynamic),
        "stack without execution": stack and "E" not in stack[0].split("0x")[-2].split()[-1],
        "no segment both writable and executable": not re.search(r"LOAD.*\bRWE\b", segments),
        "no library path of its own": not re.search(r"\((RPATH|RUNPATH)\)", dynamic),
        "stack protector": "__stack_chk_fail" in symbols,
        "fortified functions": re.search(r"\b__\w+_chk\b(?<!__stack_chk)", symbols.replace("__stack_chk_fail", "")),
        "marked targets of indirect branches": not X86 or code.count("endbr64") > 100,
    }
    return [name for name, holds in checks.items() if not holds]


def compiled(text: str, folder: str, *options: str) -> Path:
    """A small program, for the tests of the checks."""
    source, program = Path(folder, "program.cpp"), Path(folder, "program")
    source.write_text(text)
    subprocess.run(["c++", *options, str(source), "-o", str(program)], check=True, timeout=60)
    return program


def missing_in_static(program: Path) -> list[str]:
    """The protections that a program without libraries lacks. It has to have its symbols."""
    header, dynamic = output("readelf", "-hW", str(program)), output("readelf", "-dW", str(program))
    segments, symbols = output("readelf", "-lW", str(program)), output("nm", str(program))
    stack = re.search(r"GNU_STACK.*", segments)
    checks = {
        "position-independent executable": re.search(r"Type:\s+DYN", header) and re.search(r"FLAGS_1\).*\bPIE\b", dynamic),
        "no library and no loader": "NEEDED" not in dynamic and "INTERP" not in segments,
        "read-only relocations": "GNU_RELRO" in segments,
        "immediate binding": re.search(r"FLAGS_1\).*\bNOW\b", dynamic),
        "stack without execution": stack and "E" not in stack[0].split("0x")[-2].split()[-1],
        "no segment both writable and executable": not re.search(r"LOAD.*\bRWE\b", segments),
        "stack protector": "__stack_chk_fail" in symbols,
    }
    return [name for name, holds in checks.items() if not holds]


class HardeningTest(unittest.TestCase):
    def test_roots_program_of_the_build(self) -> None:
        self.assertEqual(missing_in_static(BINARY.with_name("gpumeter-held")), [])

    def test_the_programs_of_the_build(self) -> None:
        for program in (BINARY, *map(BINARY.with_name, ("gpumeter-benchmark", "gpumeter-commands", "gpumeter-nccl", "gpumeter-profiler", "gpumeter-servers", "gpumeter-top"))):
            with self.subTest(program=program.name):
                self.assertEqual(missing(program), [])

    @unittest.skipUnless(X86, "the instructions are those of x86-64")
    def test_a_large_stack_frame_touches_each_of_its_pages(self) -> None:
        """-fstack-clash-protection: no function moves the stack pointer by more than a page without a probe of the page. Sixteen digits are a
        negative number."""
        code = output("objdump", "-d", "--no-show-raw-insn", str(BINARY))
        self.assertRegex(code, r"sub +\$0x1000,%rsp\n[^\n]*orq +\$0x0,\(%rsp\)")
        self.assertEqual(re.findall(r"sub +\$(0x[0-9a-f]{5,15}),%rsp", code), [])

    @unittest.skipUnless(DEB, "$GPUMETER_DEB names no package: ./dev package builds one")
    def test_the_programs_of_the_package(self) -> None:
        folder = self.enterContext(tempfile.TemporaryDirectory(prefix="gpumeter-test-"))
        subprocess.run(["dpkg-deb", "-x", str(DEB), folder], check=True, timeout=60)
        programs = sorted(Path(folder, "usr/bin").iterdir())
        scripts = [program for program in programs if program.is_symlink()]
        self.assertEqual([program.resolve() for program in scripts], [Path(folder, "usr/share/gpumeter/python/gpumeter-import").resolve()])
        programs = [program for program in programs if program not in scripts]
        self.assertEqual([program.name for program in programs], ["gpumeter", "gpumeter-benchmark", "gpumeter-commands", "gpumeter-nccl", "gpumeter-profiler", "gpumeter-servers", "gpumeter-top"])
        for program in programs:
            with self.subTest(program=program.name):
                self.assertEqual(missing(program), [])

    @unittest.skipUnless(DEB, "$GPUMETER_DEB names no package: ./dev package builds one")
    def test_roots_program_of_the_package(self) -> None:
        folder = self.enterContext(tempfile.TemporaryDirectory(prefix="gpumeter-test-"))
        subprocess.run(["dpkg-deb", "-x", str(DEB), folder], check=True, timeout=60)
        self.assertEqual([program.name for program in Path(folder, "usr/sbin").iterdir()], ["gpumeter-held"])
        # It is stripped, and without its symbols the stack protector cannot be seen.
        self.assertEqual(missing_in_static(Path(folder, "usr/sbin/gpumeter-held")), ["stack protector"])

    def test_a_bare_program_lacks_each_protection(self) -> None:
        folder = self.enterContext(tempfile.TemporaryDirectory(prefix="gpumeter-test-"))
        program = compiled("int main() {}", folder, "-no-pie", "-Wl,-z,norelro", "-Wl,-z,lazy", "-Wl,-z,execstack", "-Wl,-rpath,/tmp",
                           "-Wl,--disable-new-dtags")
        expected = ["position-independent executable", "read-only relocations", "immediate binding", "stack without execution",
                    "no library path of its own", "stack protector", "fortified functions"]
        self.assertEqual([name for name in missing(program) if name in expected], expected)


if __name__ == "__main__":
    if subprocess.run(["which", "readelf", "objdump", "c++"], capture_output=True).returncode != 0:
        print("skipped: binutils are not installed")
        sys.exit(77)
    unittest.main(verbosity=2)
