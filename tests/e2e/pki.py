"""Certificates for one test, made by openssl, under the file names of exporter-toolkit's test data."""
from __future__ import annotations

import ssl
import subprocess
from pathlib import Path

SERVER_NAMES = "DNS:localhost,IP:127.0.0.1,IP:::1"
RSA, EC = ["rsa:2048"], ["ec", "-pkeyopt", "ec_paramgen_curve:P-256"]


def openssl(*arguments: str, **named) -> subprocess.CompletedProcess:
    return subprocess.run(["openssl", *arguments], check=True, capture_output=True, text=True, timeout=60, **named)


class Pki:
    """In `folder`: tls-ca-chain.pem (a CA), server.crt/.key (RSA, of the CA), client.pem/.key (of the CA), client_selfsigned.pem
    and client2_selfsigned.pem (SAN test3), each its own issuer."""

    def __init__(self, folder: str | Path):
        self.folder = Path(folder)
        self.ca = self.folder / "tls-ca-chain.pem"
        openssl("req", "-x509", "-newkey", *EC, "-nodes", "-days", "30", "-subj", "/CN=test CA", "-keyout", str(self.folder / "ca.key"),
                "-out", str(self.ca), "-addext", "keyUsage=critical,keyCertSign")
        self.issue_server()
        self.issue("client.pem", "client.key", "/CN=scraper", "subjectAltName=DNS:scraper.example,URI:spiffe://cluster/scraper")
        self.self_signed("client_selfsigned", "/CN=test")
        self.self_signed("client2_selfsigned", "/CN=test3", "-addext", "subjectAltName=DNS:test3")

    def self_signed(self, name: str, subject: str, *more: str) -> None:
        openssl("req", "-x509", "-newkey", *EC, "-nodes", "-days", "30", "-subj", subject, "-keyout", str(self.folder / f"{name}.key"),
                "-out", str(self.folder / f"{name}.pem"), *more)

    def issue(self, certificate: str, key: str, subject: str, *extensions: str, newkey=EC, days: int = 30) -> None:
        request, config = self.folder / "request.csr", self.folder / "extensions"
        config.write_text("\n".join(["basicConstraints=critical,CA:FALSE", "keyUsage=critical,digitalSignature,keyEncipherment", *extensions]))
        new_key, new = self.folder / (key + ".new"), self.folder / (certificate + ".new")
        openssl("req", "-newkey", *newkey, "-nodes", "-subj", subject, "-keyout", str(new_key), "-out", str(request))
        openssl("x509", "-req", "-in", str(request), "-CA", str(self.ca), "-CAkey", str(self.folder / "ca.key"), "-CAcreateserial",
                "-days", str(days), "-extfile", str(config), "-out", str(new))
        new_key.rename(self.folder / key)
        new.rename(self.folder / certificate)

    def issue_server(self, subject: str = "/CN=localhost", days: int = 30) -> None:
        """Replaces the server's pair, one file after the other, as certbot does."""
        self.issue("server.crt", "server.key", subject, f"subjectAltName={SERVER_NAMES}", "extendedKeyUsage=serverAuth", newkey=RSA, days=days)

    def context(self, client: str | None = None, version: ssl.TLSVersion | None = None) -> ssl.SSLContext:
        """Of a client that verifies the server, with the certificate CLIENT.pem."""
        context = ssl.create_default_context(cafile=str(self.ca))
        if client:
            context.load_cert_chain(self.folder / f"{client}.pem", self.folder / f"{client}.key")
        if version:
            context.minimum_version = context.maximum_version = version
        return context

    def write(self, text: str, name: str = "web.yml") -> str:
        """Replaces the file at once, as editors and configuration managers do."""
        new = self.folder / (name + ".new")
        new.write_text(text)
        new.rename(self.folder / name)
        return str(self.folder / name)
