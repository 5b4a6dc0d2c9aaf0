"""The running service: reloads, the journal of a lost device, drivers that are closed on request."""
import subprocess

from machine import UNIT, becomes, check, configure, given, gpus, is_active, journal, restart, run, show, simulated, value

RELOADED = "gpumeter_config_last_reload_successful"
RELEASED = 'gpumeter_collector_released{collector="simulated"}'


def reload() -> None:
    given("when the configuration asks for a simulated GPU and the service is reloaded:")
    pid = show("MainPID")
    configure(simulated(devices=1))
    run("systemctl", "reload", "gpumeter")
    becomes("it is on the page", lambda: gpus(up=1), 1)
    check("the last reload was a good one", value(RELOADED), "1")

    given("when it is reloaded with a log level that does not exist, and 3 GPUs:")
    configure(simulated(devices=3) + "log:\n  level: loud\n")
    check("the reload fails", subprocess.run(["systemctl", "reload", "gpumeter"], stderr=subprocess.DEVNULL).returncode, 1)
    check("the service goes on", is_active(), "active")
    by_hand = subprocess.run(["gpumeter", f"--reload={show('MainPID')}"], capture_output=True, text=True)
    check("by hand it fails and prints file, line and key", (by_hand.returncode, "/etc/gpumeter/gpumeter.yaml:5: log.level: must be" in
                                                             by_hand.stderr), (1, True))
    becomes("the last reload was a bad one", lambda: value(RELOADED), "0")
    check("there is still one GPU", gpus(up=1), 1)
    said = journal("configuration not reloaded")[0]
    check("the journal names file, line and key", "/etc/gpumeter/gpumeter.yaml:5: log.level: must be" in str(said), True)
    check("as an error", said["PRIORITY"], "3")

    given("when it is mended, asks for 2 GPUs and is reloaded:")
    configure(simulated(devices=2))
    run("systemctl", "reload", "gpumeter")
    becomes("there are 2 GPUs", lambda: gpus(up=1), 2)
    becomes("the last reload was a good one", lambda: value(RELOADED), "1")
    check("it was the same process all along", (is_active(), show("MainPID")), ("active", pid))


def lost_device() -> None:
    given("when one of 2 GPUs is lost:")
    configure(simulated(devices=2, events='"lose 1 after 1s"'))
    restart()
    becomes("its gpu_up is 0, the other's 1", lambda: (gpus(up=0), gpus(up=1)), (1, 1))
    becomes("the journal has one line of it", lambda: len(journal("device lost")), 1)
    entry, = journal("device lost")
    fields = {name: entry.get(name) for name in ("COLLECTOR", "GPU", "GPU_UUID", "GPU_VENDOR", "PRIORITY", "_SYSTEMD_UNIT")}
    check("with its fields", fields, {"COLLECTOR": "simulated", "GPU": "1", "GPU_UUID": "SIM-1-1", "GPU_VENDOR": "simulated",
                                      "PRIORITY": "3", "_SYSTEMD_UNIT": UNIT})


def release() -> None:
    configure(simulated(devices=2))
    restart()
    given("when SIGUSR1 closes the drivers of 2 GPUs:")
    becomes("(they were read, and not released)", lambda: (gpus(up=1), value(RELEASED)), (2, "0"))
    run("systemctl", "kill", "--kill-whom=main", "--signal=USR1", "gpumeter")
    becomes("the page says that they are not read, and that it is on purpose", lambda: (gpus(up=0), value(RELEASED)), (2, "1"))
    run("systemctl", "kill", "--kill-whom=main", "--signal=USR2", "gpumeter")
    becomes("after SIGUSR2 they are read again", lambda: (gpus(up=1), value(RELEASED)), (2, "0"))
