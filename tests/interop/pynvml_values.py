"""This machine's GPUs as read by nvidia-ml-py, NVIDIA's own Python binding: lines of JSON with the daemon's names.

Run with the fake NVML on LD_LIBRARY_PATH. A line is [family, labels, value]; a value of null is one that the driver says it
lacks. Any other error is a line ["refused", {"what": ...}, null]: a fault of the library, or of who calls it.
"""
import json
import statistics
import sys
import time

import pynvml as n

ALL_LINKS = 0xFFFFFFFF
MOST_LINKS = 36
# Results for values that a library lacks; an argument is invalid if it does not support the field, metric or link.
LACKING = (n.NVML_ERROR_NOT_SUPPORTED, n.NVML_ERROR_FUNCTION_NOT_FOUND)
UNKNOWN = (*LACKING, n.NVML_ERROR_INVALID_ARGUMENT)
VALUE_OF_TYPE = {n.NVML_VALUE_TYPE_DOUBLE: "dVal", n.NVML_VALUE_TYPE_UNSIGNED_INT: "uiVal", n.NVML_VALUE_TYPE_UNSIGNED_LONG: "ulVal",
                 n.NVML_VALUE_TYPE_UNSIGNED_LONG_LONG: "ullVal", n.NVML_VALUE_TYPE_SIGNED_LONG_LONG: "sllVal",
                 n.NVML_VALUE_TYPE_SIGNED_INT: "siVal", n.NVML_VALUE_TYPE_UNSIGNED_SHORT: "usVal"}


def say(family: str, labels: dict, value) -> None:
    print(json.dumps([family, labels, value]))


def asked(what: str, *ways, lacking=LACKING):
    """The value of the first call that the driver supports; None if it supports none."""
    for way in ways:
        try:
            return way()
        except n.NVMLError as error:
            if error.value not in lacking:
                say("refused", {"what": f"{what}: {error}"}, None)
    return None


def field(handle, number: int, scope: int = 0):
    value = n.nvmlDeviceGetFieldValues(handle, [(number, scope)])[0]
    if value.nvmlReturn != n.NVML_SUCCESS:
        raise n.NVMLError(value.nvmlReturn)
    return getattr(value.value, VALUE_OF_TYPE[value.valueType])


def summed(of):
    """Of one link after the other, up to the last."""
    total = of(0)
    for link in range(1, MOST_LINKS):
        try:
            total += of(link)
        except n.NVMLError as error:
            if error.value not in UNKNOWN:
                raise
            break
    return total


class Gpu:
    def __init__(self, index: int):
        self.handle = n.nvmlDeviceGetHandleByIndex(index)
        self.labels = {"gpu": str(index)}
        self.engines = {}  # what the calls of single engines said, in percent; in MIG mode they say nothing

    def one(self, family: str, labels: dict, *ways, scale: float = 1, lacking=LACKING) -> None:
        value = asked(f"{family}{labels}", *ways, lacking=lacking)
        say(family, {**self.labels, **labels}, None if value is None else value * scale)

    def call(self, family: str, labels: dict, function, *arguments, scale: float = 1) -> None:
        self.one(family, labels, lambda: function(self.handle, *arguments), scale=scale)

    def fields(self, family: str, labels: dict, number: int, *ways, scope: int = 0, scale: float = 1) -> None:
        self.one(family, labels, lambda: field(self.handle, number, scope), *ways, scale=scale, lacking=UNKNOWN)

    def modes(self, mode: str, value, states) -> None:
        for number, state in enumerate(states):
            say("gpu_mode", {**self.labels, "mode": mode, "state": state}, None if value is None else float(value == number))

    def activity(self) -> None:
        rates = asked("utilization", lambda: n.nvmlDeviceGetUtilizationRates(self.handle))
        say("gpu_utilization_ratio", self.labels, rates and rates.gpu / 100)
        say("gpu_memory_controller_utilization_ratio", self.labels, rates and rates.memory / 100)
        for engine, function in (("encode", n.nvmlDeviceGetEncoderUtilization), ("decode", n.nvmlDeviceGetDecoderUtilization),
                                 ("jpeg", n.nvmlDeviceGetJpgUtilization), ("optical_flow", n.nvmlDeviceGetOfaUtilization)):
            self.engines[engine] = asked(f"{engine} utilization", lambda f=function: f(self.handle)[0])

    def memory(self) -> None:
        self.memory_of(self.handle, "gpu_memory", {})
        for name, part in (("size", "bar1Total"), ("used", "bar1Used"), ("free", "bar1Free")):
            self.one(f"gpu_memory_{name}_bytes", {"memory": "bar1"}, lambda p=part: getattr(n.nvmlDeviceGetBAR1MemoryInfo(self.handle), p))

    def memory_of(self, handle, family: str, labels: dict) -> None:
        lacking = (*LACKING, n.NVML_ERROR_ARGUMENT_VERSION_MISMATCH)  # a driver of a time without the second version
        memory = asked("memory", lambda: n.nvmlDeviceGetMemoryInfo(handle, n.nvmlMemory_v2), lambda: n.nvmlDeviceGetMemoryInfo(handle), lacking=lacking)
        for name, part in (("size", "total"), ("used", "used"), ("free", "free"), ("reserved", "reserved")):
            say(f"{family}_{name}_bytes", {**self.labels, **labels, "memory": "vram"}, getattr(memory, part, None))

    def power(self) -> None:
        h = self.handle
        self.fields("gpu_energy_joules_total", {}, n.NVML_FI_DEV_TOTAL_ENERGY_CONSUMPTION, lambda: n.nvmlDeviceGetTotalEnergyConsumption(h), scale=1e-3)
        self.fields("gpu_power_watts", {}, n.NVML_FI_DEV_POWER_AVERAGE, lambda: n.nvmlDeviceGetPowerUsage(h), scale=1e-3)
        self.fields("gpu_power_instant_watts", {}, n.NVML_FI_DEV_POWER_INSTANT, scale=1e-3)
        self.fields("gpu_power_rail_watts", {"rail": "module"}, n.NVML_FI_DEV_POWER_AVERAGE, scope=n.NVML_POWER_SCOPE_MODULE, scale=1e-3)
        self.fields("gpu_power_rail_watts", {"rail": "memory"}, n.NVML_FI_DEV_POWER_AVERAGE, scope=n.NVML_POWER_SCOPE_MEMORY, scale=1e-3)
        self.one("gpu_power_limit_watts", {"limit": "enforced"}, lambda: n.nvmlDeviceGetEnforcedPowerLimit(h),
                 lambda: field(h, n.NVML_FI_DEV_POWER_CURRENT_LIMIT), scale=1e-3, lacking=UNKNOWN)
        self.call("gpu_power_limit_watts", {"limit": "default"}, n.nvmlDeviceGetPowerManagementDefaultLimit, scale=1e-3)
        for place, limit in enumerate(("min", "max")):
            self.one("gpu_power_limit_watts", {"limit": limit}, lambda p=place: n.nvmlDeviceGetPowerManagementLimitConstraints(h)[p], scale=1e-3)

    def temperature(self) -> None:
        h = self.handle
        threshold = lambda which: n.nvmlDeviceGetTemperatureThreshold(h, which)
        core = lambda: n.nvmlDeviceGetTemperatureV(h, n.NVML_TEMPERATURE_GPU)
        plain = lambda: n.nvmlDeviceGetTemperature(h, n.NVML_TEMPERATURE_GPU)
        now = asked("temperature", core, plain)
        say("gpu_temperature_celsius", {**self.labels, "sensor": "core"}, now)
        self.one("gpu_temperature_celsius", {"sensor": "memory"}, lambda: field(h, n.NVML_FI_DEV_MEMORY_TEMP) or None, lacking=UNKNOWN)
        for limit, offset, which in (("slowdown", n.NVML_FI_DEV_TEMPERATURE_SLOWDOWN_TLIMIT, n.NVML_TEMPERATURE_THRESHOLD_SLOWDOWN),
                                     ("shutdown", n.NVML_FI_DEV_TEMPERATURE_SHUTDOWN_TLIMIT, n.NVML_TEMPERATURE_THRESHOLD_SHUTDOWN),
                                     ("max", n.NVML_FI_DEV_TEMPERATURE_GPU_MAX_TLIMIT, n.NVML_TEMPERATURE_THRESHOLD_GPU_MAX)):
            self.one("gpu_temperature_limit_celsius", {"sensor": "core", "limit": limit},
                     lambda o=offset: now + n.nvmlDeviceGetMarginTemperature(h) - field(h, o), lambda w=which: threshold(w), lacking=UNKNOWN)
        self.one("gpu_temperature_limit_celsius", {"sensor": "core", "limit": "target"}, lambda: threshold(n.NVML_TEMPERATURE_THRESHOLD_ACOUSTIC_CURR))
        self.one("gpu_temperature_limit_celsius", {"sensor": "memory", "limit": "max"}, lambda: threshold(n.NVML_TEMPERATURE_THRESHOLD_MEM_MAX))

        def of_thresholds():
            highest = asked("gpu max", lambda: threshold(n.NVML_TEMPERATURE_THRESHOLD_GPU_MAX))
            slowdown = threshold(n.NVML_TEMPERATURE_THRESHOLD_SLOWDOWN)
            return (slowdown if highest is None else min(highest, slowdown)) - now
        self.one("gpu_temperature_margin_celsius", {"sensor": "core"}, lambda: n.nvmlDeviceGetMarginTemperature(h), of_thresholds)

    def clocks(self) -> None:
        for clock, number in (("graphics", n.NVML_CLOCK_GRAPHICS), ("sm", n.NVML_CLOCK_SM), ("memory", n.NVML_CLOCK_MEM), ("video", n.NVML_CLOCK_VIDEO)):
            self.call("gpu_clock_hertz", {"clock": clock}, n.nvmlDeviceGetClockInfo, number, scale=1e6)
            self.call("gpu_clock_max_hertz", {"clock": clock}, n.nvmlDeviceGetMaxClockInfo, number, scale=1e6)
        self.call("gpu_performance_state", {}, n.nvmlDeviceGetPerformanceState)
        reasons = asked("reasons", lambda: n.nvmlDeviceGetCurrentClocksEventReasons(self.handle), lambda: n.nvmlDeviceGetCurrentClocksThrottleReasons(self.handle))
        supported = asked("supported reasons", lambda: n.nvmlDeviceGetSupportedClocksEventReasons(self.handle), lambda: n.nvmlDeviceGetSupportedClocksThrottleReasons(self.handle))
        for cause, reason, bit in (
                ("power", "sw_power_cap", n.nvmlClocksEventReasonSwPowerCap), ("power", "hw_power_brake", n.nvmlClocksThrottleReasonHwPowerBrakeSlowdown),
                ("thermal", "sw_thermal", n.nvmlClocksEventReasonSwThermalSlowdown), ("thermal", "hw_thermal", n.nvmlClocksThrottleReasonHwThermalSlowdown),
                ("sync", "sync_boost", n.nvmlClocksEventReasonSyncBoost), ("software", "applications_clocks", n.nvmlClocksEventReasonApplicationsClocksSetting),
                ("software", "display_clocks", n.nvmlClocksEventReasonDisplayClockSetting)):
            told = reasons is not None and (supported is None or supported & bit)
            say("gpu_throttle_reason_active", {**self.labels, "cause": cause, "reason": reason}, float(reasons & bit != 0) if told else None)

    def fans(self) -> None:
        for fan in range(asked("fans", lambda: n.nvmlDeviceGetNumFans(self.handle)) or 0):
            self.call("gpu_fan_speed_ratio", {"fan": str(fan)}, n.nvmlDeviceGetFanSpeed_v2, fan, scale=0.01)
            self.one("gpu_fan_speed_rpm", {"fan": str(fan)}, lambda f=fan: self.rpm(f))

    def rpm(self, fan: int) -> int:
        if fan == 0:
            return n.nvmlDeviceGetFanSpeedRPM(self.handle)
        info = n.c_nvmlFanSpeedInfo_t(version=n.nvmlFanSpeedInfo_v1, fan=fan)  # nvidia-ml-py asks for the first fan only
        n._nvmlCheckReturn(n._nvmlGetFunctionPointer("nvmlDeviceGetFanSpeedRPM")(self.handle, n.byref(info)))
        return info.speed

    def health(self) -> None:
        h, switch = self.handle, ("disabled", "enabled")
        pair = lambda what, function, place: (asked(what, lambda: function(h)) or (None, None))[place]
        self.modes("persistence", asked("persistence", lambda: n.nvmlDeviceGetPersistenceMode(h)), switch)
        self.modes("display", asked("display", lambda: n.nvmlDeviceGetDisplayActive(h)), switch)
        for mode, function in (("ecc", n.nvmlDeviceGetEccMode), ("mig", n.nvmlDeviceGetMigMode)):
            self.modes(mode, pair(mode, function, 0), switch)
            self.modes(f"{mode}_pending", pair(mode, function, 1), switch)
        self.modes("compute", asked("compute mode", lambda: n.nvmlDeviceGetComputeMode(h)), ("default", "exclusive_thread", "prohibited", "exclusive_process"))
        state = asked("confidential", n.nvmlSystemGetConfComputeState)
        self.modes("confidential", None if state is None else int(state.ccFeature != n.NVML_CC_SYSTEM_FEATURE_DISABLED), switch)
        self.errors()
        for cause, number in (("single_bit", n.NVML_FI_DEV_RETIRED_SBE), ("double_bit", n.NVML_FI_DEV_RETIRED_DBE)):
            self.fields("gpu_retired_pages", {"cause": cause}, number)
        self.fields("gpu_retired_pages_pending", {}, n.NVML_FI_DEV_RETIRED_PENDING)
        for cause, number in (("corrected", n.NVML_FI_DEV_REMAPPED_COR), ("uncorrected", n.NVML_FI_DEV_REMAPPED_UNC)):
            self.fields("gpu_remapped_rows", {"cause": cause}, number)
        for cause, number in (("corrected", n.NVML_FI_DEV_REMAPPED_ROWS_COR_INACTIVE), ("uncorrected", n.NVML_FI_DEV_REMAPPED_ROWS_UNC_INACTIVE)):
            self.fields("gpu_remapped_rows_inactive", {"cause": cause}, number)
        self.fields("gpu_row_remap_pending", {}, n.NVML_FI_DEV_REMAPPED_PENDING)
        self.fields("gpu_row_remap_failed", {}, n.NVML_FI_DEV_REMAPPED_FAILURE)
        banks = asked("banks", lambda: n.nvmlDeviceGetRowRemapperHistogram(h))
        for left in ("max", "high", "partial", "low", "none"):
            say("gpu_row_remap_banks", {**self.labels, "availability": left}, banks and getattr(banks, left))
        action = asked("recovery", lambda: field(h, n.NVML_FI_DEV_GET_GPU_RECOVERY_ACTION), lacking=UNKNOWN)
        for name, number in (("none", n.NVML_GPU_RECOVERY_ACTION_NONE), ("reset", n.NVML_GPU_RECOVERY_ACTION_GPU_RESET),
                             ("reboot", n.NVML_GPU_RECOVERY_ACTION_NODE_REBOOT), ("drain_p2p", n.NVML_GPU_RECOVERY_ACTION_DRAIN_P2P),
                             ("drain_and_reset", n.NVML_GPU_RECOVERY_ACTION_DRAIN_AND_RESET),
                             ("recover_imex", n.NVML_GPU_RECOVERY_ACTION_RECOVER_IMEX_DOMAIN), ("bus_reset", n.NVML_GPU_RECOVERY_ACTION_BUS_RESET),
                             ("system_reboot", n.NVML_GPU_RECOVERY_ACTION_SYSTEM_REBOOT)):
            say("gpu_recovery_action", {**self.labels, "action": name}, None if action is None else float(action == number))

    def errors(self) -> None:
        parts = (("l1", n.NVML_MEMORY_LOCATION_L1_CACHE), ("l2", n.NVML_MEMORY_LOCATION_L2_CACHE), ("register_file", n.NVML_MEMORY_LOCATION_REGISTER_FILE),
                 ("texture", n.NVML_MEMORY_LOCATION_TEXTURE_MEMORY), ("shared", n.NVML_MEMORY_LOCATION_TEXTURE_SHM), ("cbu", n.NVML_MEMORY_LOCATION_CBU))
        for family, counter in (("gpu_memory_errors_total", n.NVML_VOLATILE_ECC), ("gpu_memory_lifetime_errors_total", n.NVML_AGGREGATE_ECC)):
            for severity, kind in (("corrected", n.NVML_MEMORY_ERROR_TYPE_CORRECTED), ("uncorrected", n.NVML_MEMORY_ERROR_TYPE_UNCORRECTED)):
                of = lambda location: asked("ecc", lambda: n.nvmlDeviceGetMemoryErrorCounter(self.handle, kind, counter, location), lacking=UNKNOWN)
                count = lambda location, value: say(family, {**self.labels, "severity": severity, "location": location}, value)
                whole = of(n.NVML_MEMORY_LOCATION_SRAM)
                count("dram", of(n.NVML_MEMORY_LOCATION_DRAM))
                count("sram", whole)
                for location, number in parts:
                    count(location, None if whole is not None else of(number))

    def pcie(self) -> None:
        for family, function in (("gpu_pcie_link_generation", n.nvmlDeviceGetCurrPcieLinkGeneration), ("gpu_pcie_link_lanes", n.nvmlDeviceGetCurrPcieLinkWidth),
                                 ("gpu_pcie_link_max_generation", n.nvmlDeviceGetMaxPcieLinkGeneration), ("gpu_pcie_link_max_lanes", n.nvmlDeviceGetMaxPcieLinkWidth)):
            self.call(family, {}, function)
        self.fields("gpu_pcie_replays_total", {}, n.NVML_FI_DEV_PCIE_REPLAY_COUNTER, lambda: n.nvmlDeviceGetPcieReplayCounter(self.handle))
        for severity, kind, number in (("correctable", "receiver", n.NVML_FI_DEV_PCIE_COUNT_RECEIVER_ERROR), ("correctable", "bad_tlp", n.NVML_FI_DEV_PCIE_COUNT_BAD_TLP),
                                       ("correctable", "bad_dllp", n.NVML_FI_DEV_PCIE_COUNT_BAD_DLLP), ("nonfatal", "any", n.NVML_FI_DEV_PCIE_COUNT_NON_FATAL_ERROR),
                                       ("fatal", "any", n.NVML_FI_DEV_PCIE_COUNT_FATAL_ERROR)):
            self.fields("gpu_pcie_errors_total", {"severity": severity, "kind": kind}, number)
        for event, number in (("l0_to_recovery", n.NVML_FI_DEV_PCIE_L0_TO_RECOVERY_COUNTER), ("nak_received", n.NVML_FI_DEV_PCIE_COUNT_NAKS_RECEIVED),
                              ("nak_sent", n.NVML_FI_DEV_PCIE_COUNT_NAKS_SENT), ("unsupported_request", n.NVML_FI_DEV_PCIE_COUNT_UNSUPPORTED_REQ),
                              ("lcrc_error", n.NVML_FI_DEV_PCIE_COUNT_LCRC_ERROR), ("lane_error", n.NVML_FI_DEV_PCIE_COUNT_LANE_ERROR),
                              ("replay_rollover", n.NVML_FI_DEV_PCIE_REPLAY_ROLLOVER_COUNTER)):
            self.fields("gpu_pcie_link_events_total", {"event": event}, number)

    def links(self) -> None:
        h, nvlink = self.handle, {"kind": "nvlink"}
        self.fields("gpu_interconnect_transmitted_bytes_total", nvlink, n.NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_TX, scope=ALL_LINKS, scale=1024)
        self.fields("gpu_interconnect_received_bytes_total", nvlink, n.NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_RX, scope=ALL_LINKS, scale=1024)
        self.fields("gpu_interconnect_links", nvlink, n.NVML_FI_DEV_NVLINK_LINK_COUNT)
        self.one("gpu_interconnect_links_up", nvlink, lambda: summed(lambda link: int(n.nvmlDeviceGetNvLinkState(h, link) != 0)), lacking=UNKNOWN)
        self.one("gpu_interconnect_link_speed_bytes_per_second", nvlink, lambda: field(h, n.NVML_FI_DEV_NVLINK_GET_SPEED) or None,
                 lambda: field(h, n.NVML_FI_DEV_NVLINK_SPEED_MBPS_COMMON) or None, scale=1e6, lacking=UNKNOWN)
        for error, number, counter in (
                ("crc_flit", n.NVML_FI_DEV_NVLINK_CRC_FLIT_ERROR_COUNT_TOTAL, n.NVML_NVLINK_ERROR_DL_CRC_FLIT),
                ("crc_data", n.NVML_FI_DEV_NVLINK_CRC_DATA_ERROR_COUNT_TOTAL, n.NVML_NVLINK_ERROR_DL_CRC_DATA),
                ("replay", n.NVML_FI_DEV_NVLINK_REPLAY_ERROR_COUNT_TOTAL, n.NVML_NVLINK_ERROR_DL_REPLAY),
                ("ecc_data", n.NVML_FI_DEV_NVLINK_ECC_DATA_ERROR_COUNT_TOTAL, n.NVML_NVLINK_ERROR_DL_ECC_DATA)):
            self.fields("gpu_interconnect_errors_total", {**nvlink, "error": error}, number,
                        lambda c=counter: summed(lambda link: n.nvmlDeviceGetNvLinkErrorCounter(h, link, c)))
        events = n.NVML_FI_DEV_NVLINK_COUNT_LINK_RECOVERY_SUCCESSFUL_EVENTS  # of the links that no longer count recoveries, Blackwell's
        self.fields("gpu_interconnect_errors_total", {**nvlink, "error": "recovery"}, n.NVML_FI_DEV_NVLINK_RECOVERY_ERROR_COUNT_TOTAL,
                    lambda: summed(lambda link: n.nvmlDeviceGetNvLinkErrorCounter(h, link, n.NVML_NVLINK_ERROR_DL_RECOVERY)),
                    lambda: field(h, events, ALL_LINKS), lambda: summed(lambda link: field(h, events, link)))
        for error, number in (("malformed_packet", n.NVML_FI_DEV_NVLINK_COUNT_MALFORMED_PACKET_ERRORS),
                              ("buffer_overrun", n.NVML_FI_DEV_NVLINK_COUNT_BUFFER_OVERRUN_ERRORS), ("receive", n.NVML_FI_DEV_NVLINK_COUNT_RCV_ERRORS),
                              ("discard", n.NVML_FI_DEV_NVLINK_COUNT_XMIT_DISCARDS),
                              ("local_link_integrity", n.NVML_FI_DEV_NVLINK_COUNT_LOCAL_LINK_INTEGRITY_ERRORS),
                              ("recovery_failed", n.NVML_FI_DEV_NVLINK_COUNT_LINK_RECOVERY_FAILED_EVENTS)):
            self.fields("gpu_interconnect_errors_total", {**nvlink, "error": error}, number, lambda f=number: summed(lambda link: field(h, f, link)), scope=ALL_LINKS)
        self.fabric()

    def fabric(self) -> None:
        def ask(layout):
            info = layout()
            n.nvmlDeviceGetGpuFabricInfoV(self.handle, n.byref(info))
            return info
        info = asked("fabric", lambda: ask(n.c_nvmlGpuFabricInfo_v3_t), lambda: ask(n.c_nvmlGpuFabricInfo_v2_t),
                     lacking=(*LACKING, n.NVML_ERROR_ARGUMENT_VERSION_MISMATCH))
        there = info is not None and info.state != n.NVML_GPU_FABRIC_STATE_NOT_SUPPORTED
        for state, number in (("not_started", n.NVML_GPU_FABRIC_STATE_NOT_STARTED), ("in_progress", n.NVML_GPU_FABRIC_STATE_IN_PROGRESS),
                              ("completed", n.NVML_GPU_FABRIC_STATE_COMPLETED)):
            holds = there and info.state == number and (state != "completed" or info.status == n.NVML_SUCCESS)
            say("gpu_fabric_state", {**self.labels, "state": state}, float(holds) if there else None)
        summary = getattr(info, "healthSummary", 0)
        if there and summary:  # else the daemon sums the mask up by its own rule
            for state, number in (("healthy", n.NVML_GPU_FABRIC_HEALTH_SUMMARY_HEALTHY), ("unhealthy", n.NVML_GPU_FABRIC_HEALTH_SUMMARY_UNHEALTHY),
                                  ("limited_capacity", n.NVML_GPU_FABRIC_HEALTH_SUMMARY_LIMITED_CAPACITY)):
                say("gpu_fabric_health", {**self.labels, "state": state}, float(summary == number))
        mask = getattr(info, "healthMask", 0) if there else 0
        for condition, what, wrong in (
                ("degraded_bandwidth", "DEGRADED_BW", "TRUE"), ("route_recovery", "ROUTE_RECOVERY", "TRUE"), ("route_unhealthy", "ROUTE_UNHEALTHY", "TRUE"),
                ("access_timeout", "ACCESS_TIMEOUT_RECOVERY", "TRUE"), ("partition_unassigned", "PARTITION_ASSIGNED", "FALSE"), ("manager_disconnected", "GFM_STATE", "DISCONNECTED"),
                *((condition, "INCORRECT_CONFIGURATION", wrong) for condition, wrong in (
                    ("wrong_system_guid", "INCORRECT_SYSGUID"), ("wrong_chassis_serial", "INCORRECT_CHASSIS_SN"), ("no_partition", "NO_PARTITION"),
                    ("too_few_links", "INSUFFICIENT_NVLINKS"), ("incompatible_firmware", "INCOMPATIBLE_GPU_FW"), ("invalid_location", "INVALID_LOCATION"),
                    ("invalid_gpu_state", "GPU_STATE_INVALID")))):
            of_mask = lambda part: getattr(n, f"NVML_GPU_FABRIC_HEALTH_MASK_{part}")
            said = mask >> of_mask(f"SHIFT_{what}") & of_mask(f"WIDTH_{what}")
            say("gpu_fabric_condition", {**self.labels, "condition": condition}, float(said == of_mask(f"{what}_{wrong}")) if said else None)

    def settings(self) -> None:
        h, switch = self.handle, ("disabled", "enabled")
        self.fields("gpu_power_limit_watts", {"limit": "requested"}, n.NVML_FI_DEV_POWER_REQUESTED_LIMIT, scale=1e-3)
        self.call("gpu_clock_customer_boost_hertz", {"clock": "graphics"}, n.nvmlDeviceGetMaxCustomerBoostClock, n.NVML_CLOCK_GRAPHICS, scale=1e6)
        protected = asked("protected memory", lambda: n.nvmlDeviceGetConfComputeProtectedMemoryUsage(h))
        for name, part in (("size", "total"), ("used", "used"), ("free", "free")):
            say(f"gpu_protected_memory_{name}_bytes", self.labels, getattr(protected, part, None))
        encoder = asked("encoder", lambda: n.nvmlDeviceGetEncoderStats(h)) or (None,) * 3
        capture = asked("capture", lambda: n.nvmlDeviceGetFBCStats(h))
        captured = (None,) * 3 if capture is None else (capture.sessionsCount, capture.averageFPS, capture.averageLatency)
        for session, (count, frames, latency) in (("encode", encoder), ("capture", captured)):
            labels = {**self.labels, "session": session}
            say("gpu_video_sessions", labels, count)
            say("gpu_video_session_frames_per_second", labels, frames)
            say("gpu_video_session_latency_seconds", labels, latency and latency * 1e-6)
        self.modes("accounting", asked("accounting", lambda: n.nvmlDeviceGetAccountingMode(h)), switch)
        self.modes("addressing", asked("addressing", lambda: n.nvmlDeviceGetAddressingMode(h)), ("none", "hmm", "ats"))
        c2c = asked("C2C", lambda: n.nvmlDeviceGetC2cModeInfoV(h))
        self.modes("c2c", c2c and c2c.isC2cEnabled, switch)
        able = n.c_nvmlDeviceCapabilities_v1_t()
        is_able = asked("capabilities", lambda: n._nvmlCheckReturn(n.nvmlDeviceGetCapabilities(h, n.byref(able))) == n.NVML_SUCCESS)
        self.modes("egm", is_able and int(able.capMask & n.NVML_DEV_CAP_EGM != 0), switch)
        self.modes("virtualization", asked("virtualization", lambda: n.nvmlDeviceGetVirtualizationMode(h)), ("none", "passthrough", "vgpu", "host_vgpu", "host_vsga"))
        self.inventory()

    def inventory(self) -> None:
        h, pci = self.handle, n.nvmlDeviceGetPciInfo(self.handle)
        text = lambda function, *arguments: str(asked(function.__name__, lambda: function(h, *arguments)) or "")
        cuda = asked("CUDA", n.nvmlSystemGetCudaDriverVersion)
        say("inventory", self.labels, {
            "board_part_number": text(n.nvmlDeviceGetBoardPartNumber), "inforom_image": text(n.nvmlDeviceGetInforomImageVersion),
            "inforom_oem": text(n.nvmlDeviceGetInforomVersion, n.NVML_INFOROM_OEM), "inforom_ecc": text(n.nvmlDeviceGetInforomVersion, n.NVML_INFOROM_ECC),
            "inforom_power": text(n.nvmlDeviceGetInforomVersion, n.NVML_INFOROM_POWER), "pcie_max_generation": text(n.nvmlDeviceGetGpuMaxPcieLinkGeneration),
            "pci_device_id": f"{pci.pciDeviceId & 0xFFFF:04x}:{pci.pciDeviceId >> 16:04x}", "cuda_version": f"{cuda // 1000}.{cuda % 1000 // 10}" if cuda else ""})

    def performance(self) -> None:
        gpm = asked("GPM support", lambda: n.nvmlGpmQueryDeviceSupport(self.handle))
        has = gpm is not None and gpm.isSupportedDevice
        values = gpm_values(self.handle, "gpu", n.nvmlGpmSampleGet) if has else {}
        for engine, value in self.engines.items():
            by_gpm = values.pop(engine_key("gpu", engine), None)
            say("gpu_engine_utilization_ratio", {**self.labels, "engine": engine}, by_gpm if value is None else value / 100)
        for (family, labels), value in values.items():
            say(family, {**self.labels, **dict(labels)}, value)

    def processes(self) -> None:
        found = {}
        for handle in [self.handle, *(handle for _, handle, _ in self.instances())]:
            for function in (n.nvmlDeviceGetComputeRunningProcesses_v3, n.nvmlDeviceGetGraphicsRunningProcesses_v3, n.nvmlDeviceGetMPSComputeRunningProcesses_v3):
                for process in asked("processes", lambda f=function, h=handle: f(h)) or []:
                    found[process.pid, process.gpuInstanceId] = process.usedGpuMemory or 0
        say("processes", self.labels, sum(found.values()) if found else None)

    def licence(self) -> None:
        told = asked("licence", lambda: n.nvmlDeviceGetGridLicensableFeatures_v4(self.handle))
        there = told is not None and told.isGridLicenseSupported and told.licensableFeaturesCount
        features = told.gridLicensableFeatures[:told.licensableFeaturesCount] if there else []
        licensed = any(one.featureEnabled and one.featureState == n.NVML_GRID_LICENSE_STATE_LICENSED for one in features)
        for state, holds in (("licensed", licensed), ("unlicensed", not licensed)):
            say("gpu_license_state", {**self.labels, "state": state}, float(holds) if there else None)

    def identity(self) -> None:
        h, pci = self.handle, n.nvmlDeviceGetPciInfo(self.handle)
        def text(function) -> str:
            told = asked(function.__name__, lambda: function(h)) or ""
            return told.decode() if isinstance(told, bytes) else told
        say("identity", self.labels, {
            "uuid": n.nvmlDeviceGetUUID(h), "model": n.nvmlDeviceGetName(h), "driver_version": n.nvmlSystemGetDriverVersion(),
            "vbios_version": text(n.nvmlDeviceGetVbiosVersion), "serial": text(n.nvmlDeviceGetSerial), "firmware_version": text(n.nvmlDeviceGetGspFirmwareVersion),
            "pci_address": f"{pci.domain:04x}:{pci.bus:02x}:{pci.device:02x}.0"})

    def instances(self) -> list:
        """(GPU instance, handle, attributes), of the compute instances the first."""
        found = {}
        if not (asked("MIG mode", lambda: n.nvmlDeviceGetMigMode(self.handle)) or [0])[0]:
            return []
        for place in range(n.nvmlDeviceGetMaxMigDeviceCount(self.handle)):
            handle = asked("instance", lambda p=place: n.nvmlDeviceGetMigDeviceHandleByIndex(self.handle, p), lacking=(n.NVML_ERROR_NOT_FOUND,))
            if handle is not None:
                found.setdefault(n.nvmlDeviceGetGpuInstanceId(handle), (handle, n.nvmlDeviceGetAttributes(handle)))
        return [(number, *rest) for number, rest in found.items()]

    def partitions(self) -> None:
        for number, handle, attributes in self.instances():
            profile = n.nvmlDeviceGetName(handle).rpartition(" MIG ")[2]
            labels = {"partition": f"{profile}:{number}"}
            say("gpu_partition_info", {**self.labels, **labels, "profile": profile, "gpu_instance": str(number), "mig_uuid": n.nvmlDeviceGetUUID(handle),
                                       "compute_units": str(attributes.multiprocessorCount)}, 1)
            self.memory_of(handle, "gpu_partition_memory", labels)
            take = lambda gpu, sample, gi=number: n.nvmlGpmMigSampleGet(gpu, gi, sample)
            for (family, more), value in gpm_values(self.handle, "gpu_partition", take).items():
                say(family, {**self.labels, **labels, **dict(more)}, value)


GPM = [("compute_active_ratio", (), n.NVML_GPM_METRIC_SM_UTIL), ("compute_occupancy_ratio", (), n.NVML_GPM_METRIC_SM_OCCUPANCY),
       ("pipe_active_ratio", (("pipe", "tensor"),), n.NVML_GPM_METRIC_ANY_TENSOR_UTIL), ("pipe_active_ratio", (("pipe", "fp64"),), n.NVML_GPM_METRIC_FP64_UTIL),
       ("pipe_active_ratio", (("pipe", "fp32"),), n.NVML_GPM_METRIC_FP32_UTIL), ("pipe_active_ratio", (("pipe", "fp16"),), n.NVML_GPM_METRIC_FP16_UTIL),
       ("pipe_active_ratio", (("pipe", "int"),), n.NVML_GPM_METRIC_INTEGER_UTIL), ("memory_bandwidth_utilization_ratio", (), n.NVML_GPM_METRIC_DRAM_BW_UTIL)]
# Engines of a kind are numbered one after the other; the kind's value is the mean of those that the GPU has.
GPM_ENGINES = {"encode": range(n.NVML_GPM_METRIC_NVENC_0_UTIL, n.NVML_GPM_METRIC_NVENC_0_UTIL + 4),
               "decode": range(n.NVML_GPM_METRIC_NVDEC_0_UTIL, n.NVML_GPM_METRIC_NVDEC_0_UTIL + 8),
               "jpeg": range(n.NVML_GPM_METRIC_NVJPG_0_UTIL, n.NVML_GPM_METRIC_NVJPG_0_UTIL + 8),
               "optical_flow": range(n.NVML_GPM_METRIC_NVOFA_0_UTIL, n.NVML_GPM_METRIC_NVOFA_0_UTIL + 2)}


def engine_key(prefix: str, engine: str) -> tuple:
    return f"{prefix}_engine_utilization_ratio", (("engine", engine),)


def gpm_values(handle, prefix: str, take) -> dict:
    """By (family, labels): percentages between two samples."""
    utilization = ("utilization_ratio", (), n.NVML_GPM_METRIC_GRAPHICS_UTIL)
    if prefix == "gpu":
        utilization = ("engine_utilization_ratio", (("engine", "graphics"),), n.NVML_GPM_METRIC_GRAPHICS_UTIL)
    engines = [(*engine_key("", engine), numbers) for engine, numbers in GPM_ENGINES.items()]
    wanted = [(f"_{family}", labels, [number]) for family, labels, number in [utilization, *GPM]] + engines
    numbers = [number for _, _, several in wanted for number in several]
    samples = []
    for _ in range(2):
        sample = n.nvmlGpmSampleAlloc()
        take(handle, sample)
        samples.append(sample)
        time.sleep(0.11)  # NVML requires 100 ms between two
    metrics = n.c_nvmlGpmMetricsGet_t()
    metrics.version, metrics.numMetrics, metrics.sample1, metrics.sample2 = n.NVML_GPM_METRICS_GET_VERSION, len(numbers), *samples
    for place, number in enumerate(numbers):
        metrics.metrics[place].metricId = number
    n.nvmlGpmMetricsGet(metrics)
    for sample in samples:
        n.nvmlGpmSampleFree(sample)
    percent = {metric.metricId: metric.value for metric in metrics.metrics[:len(numbers)] if metric.nvmlReturn == n.NVML_SUCCESS}
    return {(prefix + family, labels): statistics.fmean(percent[one] for one in several if one in percent) / 100 if set(several) & set(percent) else None
            for family, labels, several in wanted}


def read_all() -> None:
    for index in range(n.nvmlDeviceGetCount()):
        gpu = Gpu(index)
        for part in (gpu.identity, gpu.activity, gpu.memory, gpu.power, gpu.temperature, gpu.clocks, gpu.fans, gpu.health, gpu.settings, gpu.pcie, gpu.links,
                     gpu.performance, gpu.processes, gpu.licence, gpu.partitions):
            part()


def watch_operational(uuid: str) -> None:
    """The operational event that is next, and what its contexts say of XIDs."""
    events = n.nvmlEventSetCreate()
    config = n.c_nvmlGpuOperationalEventConfig_v1_t(uuid=uuid.encode())
    if asked("operational events", lambda: n.nvmlEventSetRegisterGpuOperationalEvents_v1(events, config) or True) is None:
        return
    event, contexts = n.c_nvmlEventSetWait_v3_t(), n.c_nvmlEventSetGetContextCount_v1_t()
    event.timeoutMs = 5000
    n.nvmlEventSetWait_v3(events, event)
    n.nvmlEventSetGetContextCount_v1(events, contexts)
    xids = []
    for index in range(contexts.count):
        xid = n.c_nvmlEventSetGetGpuOperationalEventContextLegacyXid_v1_t()
        xid.index = index
        asked("legacy xid", lambda x=xid: n.nvmlEventSetGetGpuOperationalEventContextLegacyXid_v1(events, x) or xids.append(x.xidCode),
              lacking=(n.NVML_ERROR_NOT_FOUND,))
    say("operational", {"uuid": event.uuid}, [event.dataType, event.sourceModule, event.moduleEventCode, event.severity, xids])
    n.nvmlEventSetFree(events)


def watch(seconds: float) -> None:
    """The events of the first GPU, then its sample buffers."""
    gpu, end = n.nvmlDeviceGetHandleByIndex(0), time.monotonic() + seconds
    events = n.nvmlEventSetCreate()
    n.nvmlDeviceRegisterEvents(gpu, n.nvmlDeviceGetSupportedEventTypes(gpu), events)
    while time.monotonic() < end:
        event = asked("event", lambda: n.nvmlEventSetWait_v2(events, 200), lacking=(n.NVML_ERROR_TIMEOUT,))
        if event is not None:
            say("event", {"uuid": n.nvmlDeviceGetUUID(event.device)}, [event.eventType, event.eventData])
    n.nvmlEventSetFree(events)
    watch_operational(n.nvmlDeviceGetUUID(gpu))
    for name, kind in (("gpu", n.NVML_GPU_UTILIZATION_SAMPLES), ("power", n.NVML_TOTAL_POWER_SAMPLES)):
        told = asked(name, lambda k=kind: n.nvmlDeviceGetSamples(gpu, k, 0))
        if told is not None:
            say("samples", {"of": name}, [getattr(sample.sampleValue, VALUE_OF_TYPE[told[0]]) for sample in told[1]])
    for function in (n.nvmlDeviceGetProcessUtilization, n.nvmlDeviceGetProcessesUtilizationInfo):
        told = asked(function.__name__, lambda f=function: f(gpu, 0))
        if told is not None:
            say("busy", {"by": function.__name__}, {sample.pid: sample.smUtil for sample in told})


if __name__ == "__main__":
    n.nvmlInit()
    watch(float(sys.argv[2])) if sys.argv[1:2] == ["watch"] else read_all()
    n.nvmlShutdown()
