#include "tests/fakes/nvml/call.hpp"

// ECC, retired pages, remapped rows, fans.

namespace gpumeter::fake_nvml {
namespace {

constexpr const char* kSeverities[] = {"corrected", "uncorrected"};
constexpr const char* kPeriods[] = {"volatile", "aggregate"};
// NVML_MEMORY_LOCATION_*
constexpr const char* kLocations[] = {"l1", "l2", "dram", "register", "texture", "shm", "cbu", "sram"};
// NVML_PAGE_RETIREMENT_CAUSE_*
constexpr const char* kCauses[] = {"single_bit", "double_bit"};

constexpr std::uint64_t kPage = 65536;  // bytes between the simulated addresses

unsigned ecc(const Call& call, unsigned severity, unsigned period, const char* location, std::uint64_t* out) {
  if (severity >= std::size(kSeverities) || period >= std::size(kPeriods)) return nvml::kInvalidArgument;
  return call.read(std::string("ecc.") + kSeverities[severity] + "." + kPeriods[period] + "." + location,
                   out);
}

/// `out` has this `version`; a driver that does not know the version rejects it.
template <class Struct>
bool has_version(const Struct* out, unsigned version) {
  return out->version == nvml::version_of<Struct>(version);
}

}  // namespace

FAKE_NVML_EXPORT unsigned nvmlDeviceGetMemoryErrorCounter(nvml::Device device, unsigned severity,
                                                          unsigned period, unsigned location,
                                                          std::uint64_t* out) {
  return on_device("nvmlDeviceGetMemoryErrorCounter", device, [&](const Call& call) -> unsigned {
    if (location >= std::size(kLocations)) return nvml::kInvalidArgument;
    return ecc(call, severity, period, kLocations[location], out);
  });
}

FAKE_NVML_EXPORT unsigned nvmlDeviceGetTotalEccErrors(nvml::Device device, unsigned severity, unsigned period,
                                                      std::uint64_t* out) {
  return on_device("nvmlDeviceGetTotalEccErrors", device,
                   [&](const Call& call) { return ecc(call, severity, period, "total", out); });
}

FAKE_NVML_EXPORT unsigned nvmlDeviceGetRetiredPages_v2(nvml::Device device, unsigned cause, unsigned* count,
                                                       std::uint64_t* addresses, std::uint64_t* times) {
  return on_device("nvmlDeviceGetRetiredPages_v2", device, [&](const Call& call) -> unsigned {
    if (cause >= std::size(kCauses) || count == nullptr) return nvml::kInvalidArgument;
    const unsigned room = *count;
    const unsigned error = call.read(std::string("retired_pages.") + kCauses[cause], count);
    if (error != nvml::kSuccess) return error;
    if (*count > room) return nvml::kInsufficientSize;
    for (unsigned i = 0; i < *count && addresses != nullptr; ++i) addresses[i] = (i + 1) * kPage;
    for (unsigned i = 0; i < *count && times != nullptr; ++i) times[i] = 0;
    return nvml::kSuccess;
  });
}

FAKE_NVML_EXPORT unsigned nvmlDeviceGetRemappedRows(nvml::Device device, unsigned* corrected,
                                                    unsigned* uncorrected, unsigned* pending,
                                                    unsigned* failure) {
  return on_device("nvmlDeviceGetRemappedRows", device, [&](const Call& call) {
    return first_error(
        call.read("remapped_rows.corrected", corrected), call.read("remapped_rows.uncorrected", uncorrected),
        call.read("remapped_rows.pending", pending), call.read("remapped_rows.failure", failure));
  });
}

FAKE_NVML_EXPORT unsigned nvmlDeviceGetRowRemapperHistogram(nvml::Device device,
                                                            nvml::RowRemapperHistogram* out) {
  return on_device("nvmlDeviceGetRowRemapperHistogram", device, [&](const Call& call) -> unsigned {
    if (out == nullptr) return nvml::kInvalidArgument;
    const std::string banks = "remapped_rows.banks.";
    return first_error(call.read(banks + "max", &out->max), call.read(banks + "high", &out->high),
                       call.read(banks + "partial", &out->partial), call.read(banks + "low", &out->low),
                       call.read(banks + "none", &out->none));
  });
}

FAKE_NVML_EXPORT unsigned nvmlDeviceGetBankRemapperStatus_v1(nvml::Device device,
                                                             nvml::BankRemapperStatus* out) {
  return on_device("nvmlDeviceGetBankRemapperStatus_v1", device, [&](const Call& call) -> unsigned {
    if (out == nullptr) return nvml::kInvalidArgument;
    return first_error(
        call.read("bank_remapper.active", &out->active), call.read("bank_remapper.inactive", &out->inactive),
        call.read("bank_remapper.pending", &out->is_pending), call.read("bank_remapper.max", &out->max),
        call.read("bank_remapper.none", &out->none));
  });
}

FAKE_NVML_EXPORT unsigned nvmlDeviceGetRepairStatus(nvml::Device device, nvml::RepairStatus* out) {
  return on_device("nvmlDeviceGetRepairStatus", device, [&](const Call& call) -> unsigned {
    if (out == nullptr) return nvml::kInvalidArgument;
    if (!has_version(out, 1)) return nvml::kArgumentVersionMismatch;
    return first_error(call.read("repair.channel", &out->channel_pending),
                       call.read("repair.tpc", &out->tpc_pending));
  });
}

FAKE_NVML_EXPORT unsigned nvmlDeviceGetSramEccErrorStatus(nvml::Device device, nvml::SramErrors* out) {
  return on_device("nvmlDeviceGetSramEccErrorStatus", device, [&](const Call& call) -> unsigned {
    if (out == nullptr) return nvml::kInvalidArgument;
    if (!has_version(out, 1)) return nvml::kArgumentVersionMismatch;
    const std::string unit = "sram.";
    return first_error(call.read(unit + "l2", &out->l2), call.read(unit + "sm", &out->sm),
                       call.read(unit + "pcie", &out->pcie), call.read(unit + "mcu", &out->microcontroller),
                       call.read(unit + "other", &out->other),
                       call.read(unit + "threshold_exceeded", &out->is_above_threshold));
  });
}

FAKE_NVML_EXPORT unsigned nvmlDeviceGetUnrepairableMemoryFlag_v1(nvml::Device device,
                                                                 nvml::UnrepairableMemory* out) {
  return on_device("nvmlDeviceGetUnrepairableMemoryFlag_v1", device, [&](const Call& call) -> unsigned {
    if (out == nullptr) return nvml::kInvalidArgument;
    return call.read("unrepairable_memory", &out->is_unrepairable);
  });
}

FAKE_NVML_EXPORT unsigned nvmlDeviceGetNumFans(nvml::Device device, unsigned* out) {
  return on_device("nvmlDeviceGetNumFans", device, [&](const Call& call) -> unsigned {
    if (out == nullptr) return nvml::kInvalidArgument;
    *out = static_cast<unsigned>(call.count("fans"));
    return *out == 0 ? nvml::kNotSupported : nvml::kSuccess;
  });
}

FAKE_NVML_EXPORT unsigned nvmlDeviceGetFanSpeed(nvml::Device device, unsigned* out) {
  return one_number("nvmlDeviceGetFanSpeed", device, "fans.0.percent", out);
}

FAKE_NVML_EXPORT unsigned nvmlDeviceGetFanSpeed_v2(nvml::Device device, unsigned fan, unsigned* out) {
  return on_device("nvmlDeviceGetFanSpeed_v2", device, [&](const Call& call) -> unsigned {
    if (call.count("fans") == 0) return nvml::kNotSupported;
    if (fan >= call.count("fans")) return nvml::kInvalidArgument;
    return call.read("fans." + std::to_string(fan) + ".percent", out);
  });
}

FAKE_NVML_EXPORT unsigned nvmlDeviceGetFanSpeedRPM(nvml::Device device, nvml::FanSpeed* out) {
  return on_device("nvmlDeviceGetFanSpeedRPM", device, [&](const Call& call) -> unsigned {
    if (out == nullptr) return nvml::kInvalidArgument;
    if (!has_version(out, 1)) return nvml::kArgumentVersionMismatch;
    if (call.count("fans") == 0) return nvml::kNotSupported;
    if (out->fan >= call.count("fans")) return nvml::kInvalidArgument;
    return call.read("fans." + std::to_string(out->fan) + ".rpm", &out->rpm);
  });
}

}  // namespace gpumeter::fake_nvml
