#!/usr/bin/env python3
"""The list of materials in the .deb is a valid SPDX 2.3 document and names each library that the programs load."""
import hashlib
import json
import os
import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

DEB = os.environ.get("GPUMETER_DEB")
# Required by SPDX 2.3 (spdx.github.io/spdx-spec/v2.3), sections 6 to 8 and 11.
OF_DOCUMENT = {"spdxVersion", "dataLicense", "SPDXID", "name", "documentNamespace", "creationInfo", "packages", "relationships"}
OF_PACKAGE = {"SPDXID", "name", "downloadLocation"}
OF_FILE = {"SPDXID", "fileName", "checksums"}
RELATIONS = {"DESCRIBES", "CONTAINS", "DYNAMIC_LINK", "STATIC_LINK"}
LICENCE = re.compile(r"NOASSERTION|[\w.-]+( (AND|OR|WITH) [\w.-]+)*")


def output(*command: str) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=60, env={**os.environ, "LC_ALL": "C"}).stdout


def owner(path: str) -> str:
    """The package of a library; dpkg may know the path by its name before the merge of /usr."""
    for known in (path, path.removeprefix("/usr"), os.path.realpath(path)):
        found = subprocess.run(["dpkg-query", "-S", known], capture_output=True, text=True).stdout
        if found:
            return found.split(":")[0]
    raise AssertionError(f"no package contains {path}")


def compiled(folder: Path) -> list[Path]:
    """All programs but `gpumeter-import`, a link to a program in Python whose file is the source."""
    programs = sorted(folder.iterdir())
    assert [path.name for path in programs if path.is_symlink()] == ["gpumeter-import"] * (folder.name == "bin"), programs
    return [path for path in programs if not path.is_symlink()]


class SbomTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls) -> None:
        cls.folder = Path(cls.enterClassContext(tempfile.TemporaryDirectory(prefix="gpumeter-test-")))
        subprocess.run(["dpkg-deb", "-x", str(DEB), str(cls.folder)], check=True, timeout=60)
        cls.document = json.loads((cls.folder / "usr/share/doc/gpumeter/sbom.spdx.json").read_text())
        cls.packages = {package["SPDXID"]: package for package in cls.document["packages"]}

    def related(self, element: str, kind: str) -> set[str]:
        return {self.packages[relation["relatedSpdxElement"]]["name"] for relation in self.document["relationships"]
                if relation["spdxElementId"] == element and relation["relationshipType"] == kind}

    def test_required_fields(self) -> None:
        self.assertLessEqual(OF_DOCUMENT, set(self.document))
        self.assertEqual((self.document["spdxVersion"], self.document["dataLicense"]), ("SPDX-2.3", "CC0-1.0"))
        self.assertRegex(self.document["documentNamespace"], r"^https://[^#]+$")
        self.assertRegex(self.document["creationInfo"]["created"], r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$")
        self.assertRegex(self.document["creationInfo"]["creators"][0], r"^Tool: \S")
        for entries, required in ((self.document["packages"], OF_PACKAGE), (self.document["files"], OF_FILE)):
            for entry in entries:
                self.assertLessEqual(required, set(entry))

    def test_identifiers_are_unique_and_relations_refer_to_them(self) -> None:
        names = ["SPDXRef-DOCUMENT"] + [entry["SPDXID"] for entry in (*self.document["packages"], *self.document["files"])]
        self.assertEqual(len(names), len(set(names)))
        for name in names:
            self.assertRegex(name, r"^SPDXRef-[A-Za-z0-9.-]+$")
        for relation in self.document["relationships"]:
            self.assertLessEqual({relation["spdxElementId"], relation["relatedSpdxElement"]}, set(names))
            self.assertIn(relation["relationshipType"], RELATIONS)

    def test_each_needed_library_is_named_with_its_version(self) -> None:
        for program in compiled(self.folder / "usr/bin"):
            needed = re.findall(r"\(NEEDED\).*\[(.+)\]", output("readelf", "-dW", str(program)))
            paths = dict(re.findall(r"^\s*(\S+) => (/\S+)", output("ldd", str(program)), re.M))
            self.assertGreaterEqual(len(needed), 4)  # also of a program that needs only the language
            self.assertEqual(self.related(f"SPDXRef-file-{program.name}", "DYNAMIC_LINK"), {owner(paths[name]) for name in needed})
        self.assertEqual(self.related("SPDXRef-file-gpumeter-held", "STATIC_LINK"),
                         {owner(os.path.realpath(output("c++", f"-print-file-name={name}").strip())) for name in ("libc.a", "libstdc++.a")})
        for package in self.document["packages"]:
            if package["name"] != "gpumeter":
                self.assertEqual(package["versionInfo"], output("dpkg-query", "-W", "-f", "${Version} ", package["name"]).split()[0])

    def test_libraries_that_are_only_headers_are_named(self) -> None:
        self.assertLessEqual({"libprotozero-dev", "nlohmann-json3-dev"}, self.related("SPDXRef-gpumeter", "STATIC_LINK"))

    def test_checksums_are_those_of_the_programs(self) -> None:
        named = {entry["fileName"]: {item["algorithm"]: item["checksumValue"] for item in entry["checksums"]}["SHA256"]
                 for entry in self.document["files"]}
        real = {f"./usr/{folder}/{path.name}": hashlib.sha256(path.read_bytes()).hexdigest() for folder in ("bin", "sbin")
                for path in compiled(self.folder / "usr" / folder)}
        self.assertEqual(named, real)

    def test_version_and_licences(self) -> None:
        own = self.packages["SPDXRef-gpumeter"]
        self.assertEqual(own["versionInfo"], output("dpkg-deb", "--field", str(DEB), "Version").strip())
        self.assertEqual(own["licenseDeclared"], "Apache-2.0")
        for package in self.document["packages"]:
            self.assertRegex(package["licenseDeclared"], f"^(?:{LICENCE.pattern})$")
        known = [package for package in self.document["packages"] if package["licenseDeclared"] != "NOASSERTION"]
        self.assertGreater(len(known), len(self.packages) / 2)


if __name__ == "__main__":
    if not DEB:
        print("skipped: $GPUMETER_DEB names no package: ./dev package builds one")
        sys.exit(77)
    unittest.main(verbosity=2)
