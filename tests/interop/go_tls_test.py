#!/usr/bin/env python3
"""A Go client's handshakes with gpumeter and with Go's own TLS server of the same settings: both admit the same clients and choose the
same version. Requires a Go compiler: $GO, go on the PATH, /usr/local/go, or Debian's golang-go."""
import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path.insert(0, str(ROOT / "tests/e2e"))
from harness import Daemon, wait_until  # noqa: E402
from pki import Pki  # noqa: E402

GO = next((found for name in (os.environ.get("GO"), "go", "/usr/local/go/bin/go", "/usr/lib/go/bin/go") if name and (found := shutil.which(name))), None)
TLS10, TLS12, TLS13 = 0x301, 0x303, 0x304
AUTH = ("NoClientCert", "RequestClientCert", "RequireAnyClientCert", "VerifyClientCertIfGiven", "RequireAndVerifyClientCert")  # Go's numbers
CURVES = {"CurveP256": 23, "CurveP384": 24, "CurveP521": 25, "X25519": 29}
VERSIONS = {TLS10: "TLS10", TLS12: "TLS12", TLS13: "TLS13"}
RSA = ["TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256", "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384"]


def settings(**changed) -> dict:
    return {"Min": TLS12, "Max": TLS13, "Suites": [], "Curves": [], "ClientAuth": 0, "ClientCA": "", "Names": [], **changed}


CASES = {
    "default": settings(),
    "oldest": settings(Min=TLS10),
    "only TLS 1.2": settings(Max=TLS12),
    "only TLS 1.3": settings(Min=TLS13),
    "two suites": settings(Suites=RSA),
    "two suites, TLS 1.2": settings(Suites=RSA, Max=TLS12),
    "CBC, TLS 1.2": settings(Suites=["TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA"], Max=TLS12),
    "ChaCha": settings(Suites=["TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256"], Max=TLS12),
    "suites of TLS 1.3 only": settings(Suites=["TLS_AES_128_GCM_SHA256"], Min=TLS13),
    "suites for another key": settings(Suites=["TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256"]),
    **{f"curve {name}": settings(Curves=[number]) for name, number in CURVES.items()},
    **{f"{name}, {ca or 'no CA'}": settings(ClientAuth=number, ClientCA=ca) for number, name in enumerate(AUTH) if number
       for ca in ("", "tls-ca-chain.pem", "client_selfsigned.pem")},
    "allowed names": settings(ClientAuth=4, ClientCA="tls-ca-chain.pem", Names=["x", "spiffe://cluster/scraper"]),
    "other names": settings(ClientAuth=4, ClientCA="tls-ca-chain.pem", Names=["spiffe://cluster/scraper/"]),
}


def web_config(case: dict) -> str:
    server = {"cert_file": "server.crt", "key_file": "server.key", "min_version": VERSIONS[case["Min"]], "max_version": VERSIONS[case["Max"]],
              "cipher_suites": case["Suites"], "curve_preferences": [name for name, number in CURVES.items() if number in case["Curves"]],
              "client_auth_type": AUTH[case["ClientAuth"]]}
    if case["ClientCA"]:
        server["client_ca_file"] = case["ClientCA"]
    if case["Names"]:
        server["client_allowed_sans"] = case["Names"]
    return json.dumps({"tls_server_config": {key: value for key, value in server.items() if value != []}})


@unittest.skipUnless(GO, "no Go compiler")
class GoTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls) -> None:
        folder = cls.enterClassContext(tempfile.TemporaryDirectory(prefix="gpumeter-test-"))
        cls.pki = Pki(folder)
        cls.program = f"{folder}/go_tls"
        environment = {**os.environ, "GO111MODULE": "off", "GOFLAGS": "", "GOCACHE": f"{folder}/cache", "GOPATH": f"{folder}/path"}
        subprocess.run([GO, "build", "-o", cls.program, str(HERE / "go_tls/main.go")], check=True, timeout=300, env=environment)

    def outcomes(self, name: str) -> list[dict]:
        config = self.pki.write(web_config(CASES[name]))
        with Daemon("--simulate=1", f"--web.config.file={config}", wait=False) as daemon:
            wait_until(lambda: "Listening on" in daemon.log or daemon.process.poll() is not None, "it listens")
            self.assertIsNone(daemon.process.poll(), daemon.log)
            done = subprocess.run([self.program, str(self.pki.folder), f"127.0.0.1:{daemon.port}", json.dumps(CASES[name])], check=True,
                                  stdout=subprocess.PIPE, text=True, timeout=120)
        return [json.loads(line) for line in done.stdout.splitlines()]

    def test_both_servers_admit_the_same_clients(self) -> None:
        count = admitted = 0
        for name in CASES:
            with self.subTest(name):
                outcomes = self.outcomes(name)
                count += len(outcomes)
                admitted += sum(each["Ours"] != "refused" for each in outcomes)
                different = [each for each in outcomes if each["Ours"][:len("TLS 1.2")] != each["Go"][:len("TLS 1.2")]]
                self.assertEqual(different, [])
        print(f"{count} handshakes in {len(CASES)} configurations, {admitted} admitted, as by Go's own server")


if __name__ == "__main__":
    if not GO:
        print("skipped: no Go compiler")
        sys.exit(77)
    unittest.main(verbosity=2)
