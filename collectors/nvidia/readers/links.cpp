#include "collectors/nvidia/readers/links.hpp"

#include <cstring>

namespace gpumeter::nvidia {
namespace readers {
namespace {

Sample link_is_up(NvidiaContext& context, unsigned link) noexcept {
  return ask<&F::nvmlDeviceGetNvLinkState>(context.gpu().caller, link);
}

/// nvmlGpuFabricInfoV in its third layout, or in the second, which is the same without the last field.
Sample ask_fabric(NvidiaContext& context, nvml::FabricInfoV3& info) noexcept {
  NvmlTarget& gpu = context.gpu();
  auto& present = gpu.answer<&F::nvmlDeviceGetGpuFabricInfoV, nvml::FabricInfoV3>();
  auto& former = gpu.answer<&F::nvmlDeviceGetGpuFabricInfoV, FabricInfoOfOld>();
  if (!gpu.has_old_fabric) info = present.ask(gpu.caller);
  if (!gpu.has_old_fabric) gpu.has_old_fabric = present.result() == nvml::kArgumentVersionMismatch;
  if (gpu.has_old_fabric) info = former.ask(gpu.caller);
  const Sample asked = sample_of(gpu.has_old_fabric ? former.result() : present.result(), 0);
  if (asked.status == ReadStatus::ok) context.note_fabric(info);
  return asked;  // the answer is in `info`
}

/// nvmlGpuFabricState_t, with a state of its own for a registration that ended with an error: "status must be
/// checked only if Probe state returns complete" (nvml.h).
unsigned fabric_state_of(const nvml::FabricInfoV3& info) noexcept {
  return info.state == nvml::kFabricCompleted && info.status != nvml::kSuccess ? kFabricFailed : info.state;
}

Sample errors_of(NvidiaContext& context, unsigned link, unsigned counter) noexcept {
  std::uint64_t count = 0;
  const unsigned result =
      context.gpu().caller.call<&F::nvmlDeviceGetNvLinkErrorCounter>(link, counter, &count);
  return sample_of(result, static_cast<double>(count));
}

/// Of one link after the other, up to the last that there is. None at all: what the first one said.
template <class Of>
Sample summed(Of of) noexcept {
  Sample sum = of(0);
  for (unsigned link = 1; sum.status == ReadStatus::ok && link < nvml::kMostLinks; ++link) {
    const Sample one = of(link);
    if (is_lacking(one.status)) break;
    sum = one.status == ReadStatus::ok ? Sample::of(sum.value + one.value) : one;
  }
  return sum;
}

}  // namespace

Sample read_links_up(NvidiaContext& context, int) noexcept {
  return summed([&](unsigned link) {
    const Sample state = link_is_up(context, link);
    return state.status == ReadStatus::ok ? Sample::of(state.value != 0 ? 1 : 0) : state;
  });
}

Sample read_all_link_errors(NvidiaContext& context, int handle) noexcept {
  const auto counter = static_cast<unsigned>(context.bound(handle).argument);
  return summed([&](unsigned link) { return errors_of(context, link, counter); });
}

// The fields of the links that have one stand behind one another in the batch; what is kept has their number
// for a scope.
Handle bind_all_link_fields(NvidiaContext& context, const ReadSource& source) {
  FieldArgument wanted = unpacked(source.argument);
  const auto has = [&](unsigned link) {
    return !is_lacking(read_field(context.gpu().caller, wanted.field, link).sample.status);
  };
  const ReadStatus first_link = read_field(context.gpu().caller, wanted.field, 0).sample.status;
  if (may_pass(first_link)) return absent_for_now<probe_field>(context, source, first_link);
  if (is_lacking(first_link)) return std::nullopt;
  FieldBatch& batch = context.fields(wanted.tier);
  const int first = batch.add(wanted.field, 0);
  wanted.scope = 1;
  for (unsigned link = 1; link < nvml::kMostLinks; ++link) {
    if (!has(link)) continue;
    batch.add(wanted.field, link);
    ++wanted.scope;
  }
  return context.keep(packed(wanted), first);
}

Sample read_all_link_fields(NvidiaContext& context, int handle) noexcept {
  const NvidiaContext::Bound& bound = context.bound(handle);
  const FieldArgument kept = unpacked(bound.argument);
  FieldBatch& batch = context.fields(kept.tier);
  double sum = 0;
  for (int link = 0; link < static_cast<int>(kept.scope); ++link) {
    const Sample one = batch.read(context.gpu().caller, bound.place + link);
    if (one.status != ReadStatus::ok) return one;
    sum += one.value;
  }
  return Sample::of(sum);
}

Sample read_link_state(NvidiaContext& context, int handle) noexcept {
  const Sample state = link_is_up(context, static_cast<unsigned>(context.bound(handle).argument));
  return state.status == ReadStatus::ok ? Sample::of(state.value != 0 ? 1 : 0) : state;
}

Sample read_link_errors(NvidiaContext& context, int handle) noexcept {
  const std::uint64_t argument = context.bound(handle).argument;
  return errors_of(context, static_cast<unsigned>(argument), static_cast<unsigned>(argument >> 32));
}

Sample read_fabric_state(NvidiaContext& context, int handle) noexcept {
  nvml::FabricInfoV3 info{};
  const Sample asked = ask_fabric(context, info);
  if (asked.status != ReadStatus::ok) return asked;
  if (info.state == 0) return Sample::miss(ReadStatus::unsupported);  // NVML_GPU_FABRIC_STATE_NOT_SUPPORTED
  return Sample::of(fabric_state_of(info) == context.bound(handle).argument ? 1 : 0);
}

Sample read_fabric_health(NvidiaContext& context, int handle) noexcept {
  nvml::FabricInfoV3 info{};
  const Sample asked = ask_fabric(context, info);
  if (asked.status != ReadStatus::ok) return asked;
  const std::optional<FabricHealth> health =
      info.health_summary != 0 ? static_cast<FabricHealth>(info.health_summary) : summed_up(info.health_mask);
  if (info.state == 0 || !health) return Sample::miss(ReadStatus::unsupported);
  return Sample::of(static_cast<std::uint64_t>(*health) == context.bound(handle).argument ? 1 : 0);
}

}  // namespace readers

// NVML_GPU_FABRIC_HEALTH_MASK_*: shift and bits of each matter; 1 is "true", 2 "false", 0 "not supported".
// The masks of two bits are printed with a width of 3, which is the mask itself, as is 15 for the
// configuration.
std::optional<FabricHealth> summed_up(unsigned mask) noexcept {
  constexpr unsigned kTwoBits = 3;
  constexpr unsigned kTrue = 1;
  const unsigned bandwidth = mask & kTwoBits;
  const unsigned route_recovery = mask >> 2 & kTwoBits;
  const unsigned route_unhealthy = mask >> 4 & kTwoBits;
  const unsigned access_timeout = mask >> 6 & kTwoBits;
  const unsigned configuration = mask >> 8 & 15;
  if (mask == 0) return std::nullopt;
  if (route_recovery == kTrue || route_unhealthy == kTrue || access_timeout == kTrue || configuration > 1)
    return FabricHealth::unhealthy;
  return bandwidth == kTrue ? FabricHealth::limited_capacity : FabricHealth::healthy;
}

}  // namespace gpumeter::nvidia
