"""Installation and removal of the package."""
import grp
import pwd
import subprocess
from pathlib import Path

from machine import (CONFIG, DROP_INS, IPV4, IPV6, UNIT, check, given, is_active, is_enabled, process_status, run,
                     show, status_of)

CAP_PERFMON = 1 << 38  # linux/capability.h
FOLDERS = ("/etc", "/usr", "/var/lib", "/var/cache", "/run", "/opt", "/srv")


def named_gpumeter() -> set[str]:
    """Files named after the package in the folders that packages and services use."""
    return set(run("find", *FOLDERS, "-xdev", "-name", "*gpumeter*").splitlines())


def account_exists() -> bool:
    return any(entry.pw_name == "gpumeter" for entry in pwd.getpwall()) or any(g.gr_name == "gpumeter" for g in grp.getgrall())


def install(package: str) -> None:
    given("when the package is installed on a machine that never had it:")
    # Images of Debian for containers forbid that an installation starts services.
    Path("/usr/sbin/policy-rc.d").unlink(missing_ok=True)
    check("there was no account gpumeter before", account_exists(), False)
    run("apt-get", "install", "--yes", package)
    check("it is active, so READY=1 was seen (Type=notify)", (is_active(), show("Type")), ("active", "notify"))
    check("systemctl status has its words", show("StatusText"), "0 of 0 GPUs are read")
    check("it and its socket start at the next boot",
          (is_enabled(UNIT), is_enabled("gpumeter.socket"), is_active("gpumeter.socket")), ("enabled", "enabled", "active"))
    check("127.0.0.1 and ::1 are served", (status_of(IPV4), status_of(IPV6)), (200, 200))
    check("its configuration is a conffile that it finds right",
          (str(CONFIG) in run("dpkg-query", "--show", "--showformat=${Conffiles}", "gpumeter"),
           run("gpumeter", "--check-config", f"--config.file={CONFIG}").count("\n") < 2), (True, True))


def sandbox() -> None:
    given("given the service as installed, its process")
    status, account = process_status(), pwd.getpwnam("gpumeter")
    groups = sorted([account.pw_gid, grp.getgrnam("video").gr_gid, grp.getgrnam("render").gr_gid])
    check("is gpumeter's", [set(status[name].split()) for name in ("Uid", "Gid")], [{str(account.pw_uid)}, {str(account.pw_gid)}])
    check("is in the groups video and render", sorted(map(int, status["Groups"].split())), groups)
    # The generator gives one where this machine has a GPU of Intel.
    given_one = CAP_PERFMON if Path("/run/systemd/generator/gpumeter.service.d/50-intel.conf").exists() else 0
    check("has no capability, or the generator's", int(status["CapEff"], 16), given_one)
    check("and can get none", (int(status["CapBnd"], 16), status["NoNewPrivs"]), (given_one, "1"))
    check("has its system calls filtered", status["Seccomp"], "2")


def purge(before: set[str]) -> None:
    given("when the package is purged:")
    run("apt-get", "purge", "--yes", "gpumeter")
    check("nobody serves", (status_of(IPV4), is_active(), is_active("gpumeter.socket"), is_active("gpumeter-jobs.socket")),
          (0, "inactive", "inactive", "inactive"))
    unit = subprocess.run(["systemctl", "cat", UNIT], capture_output=True, text=True)
    check("systemd knows no unit of it", "No files found" in unit.stdout + unit.stderr, True)
    check("the account is gone", account_exists(), False)
    # The administrator's drop-ins are no part of the package, and dpkg leaves /etc/systemd alone.
    left = sorted(path for path in named_gpumeter() - before if not path.startswith(str(DROP_INS)))
    check("nothing is left but what the administrator put there", left, [])
    check("dpkg has forgotten it", subprocess.run(["dpkg-query", "--show", "gpumeter"], capture_output=True).returncode, 1)
