#include "collectors/nvidia/sources.hpp"

#include "collectors/nvidia/identity.hpp"
#include "collectors/nvidia/nvml/target.hpp"
#include "collectors/nvidia/readers/field_batch.hpp"

namespace gpumeter::nvidia {
namespace {

constexpr unsigned kTotalEnergy = 83;    // NVML_FI_DEV_TOTAL_ENERGY_CONSUMPTION
constexpr unsigned kThrottlePower = 74;  // NVML_FI_DEV_PERF_POLICY_POWER

ReadStatus utilization(NvmlCaller& gpu) {
  nvml::Utilization rates{};
  return status_of(gpu.call<&F::nvmlDeviceGetUtilizationRates>(&rates));
}
ReadStatus energy(NvmlCaller& gpu) { return read_field(gpu, kTotalEnergy, 0).sample.status; }
ReadStatus throttle_counters(NvmlCaller& gpu) { return read_field(gpu, kThrottlePower, 0).sample.status; }
ReadStatus performance_metrics(NvmlCaller& gpu) {
  nvml::GpmSupport support{};
  const ReadStatus status = status_of(gpu.call<&F::nvmlGpmQueryDeviceSupport>(&support));
  return status == ReadStatus::ok && support.is_supported == 0 ? ReadStatus::unsupported : status;
}
ReadStatus ecc(NvmlCaller& gpu) {
  unsigned mode = 0;
  unsigned pending = 0;
  const ReadStatus status = status_of(gpu.call<&F::nvmlDeviceGetEccMode>(&mode, &pending));
  return status == ReadStatus::ok && mode == 0 ? ReadStatus::unsupported : status;
}
ReadStatus events(NvmlCaller& gpu) {
  std::uint64_t types = 0;
  const ReadStatus status = status_of(gpu.call<&F::nvmlDeviceGetSupportedEventTypes>(&types));
  return status == ReadStatus::ok && (types & nvml::kEventXid) == 0 ? ReadStatus::unsupported : status;
}

struct Source {
  std::string_view what, where;
  ReadStatus (*probe)(NvmlCaller&);
  std::string_view missing;  ///< why it may not be there
};
constexpr Source kSources[] = {
    {"utilization", "nvmlDeviceGetUtilizationRates", utilization,
     "not of a divided GPU (MIG): see gpu_partition_*"},
    {"energy counter", "NVML_FI_DEV_TOTAL_ENERGY_CONSUMPTION", energy,
     "Volta and newer; else power is integrated"},
    {"throttle counters", "NVML_FI_DEV_PERF_POLICY_POWER", throttle_counters,
     "else the reasons are integrated"},
    {"performance metrics", "nvmlGpmQueryDeviceSupport", performance_metrics,
     "Hopper and newer, from driver 520"},
    {"memory errors", "nvmlDeviceGetEccMode", ecc, "of boards with ECC memory where it is switched on"},
    {"events", "nvmlDeviceGetSupportedEventTypes", events, "without them no XID is counted"},
};

SourceReport report_of(NvmlCaller& gpu, const Source& source) {
  const ReadStatus status = source.probe(gpu);
  const std::string_view remedy = status == ReadStatus::ok ? ""
                                  : status == ReadStatus::denied
                                      ? "let the user that gpumeter runs as ask for it"
                                      : source.missing;
  return {std::string(source.what), std::string(source.where), status, std::string(remedy)};
}

SourceReport library_report(const std::string& library, const NvmlSession& session) {
  const std::string missing = session.missing();
  return {"library", library, ReadStatus::ok, missing.empty() ? "" : "it has no " + missing};
}

}  // namespace

std::vector<SourceReport> sources_of_gpu(const std::string& library, const DeviceInfo& info) {
  const Result<std::shared_ptr<NvmlSession>> session = NvmlSession::shared(library);
  if (!session) return {{"library", library, ReadStatus::failed, session.error().message()}};
  std::vector<SourceReport> reports = {library_report(library, **session)};
  std::optional<NvmlCaller> gpu = find_gpu(*session, info.uuid);
  for (const Source& source : kSources) {
    if (gpu) reports.push_back(report_of(*gpu, source));
  }
  return reports;
}

}  // namespace gpumeter::nvidia
