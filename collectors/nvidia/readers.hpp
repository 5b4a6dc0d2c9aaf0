#pragma once

#include <cstdint>
#include <type_traits>
#include <utility>
#include <vector>

#include "collectors/nvidia/context.hpp"
#include "collectors/table/row.hpp"

namespace gpumeter::nvidia {

// Readers of single calls, structs and field values. A call at attach may report that the GPU, the driver or
// the daemon's rights lack the value. The row then does not bind, so that the next row of the series is
// used.

using Row = MetricRow<NvidiaContext>;
using NvidiaSource = RowSource<NvidiaContext>;

namespace readers {

/// Returns false if `first`, the status of the first reading, means that the value will never be available. A
/// failed reading is repeated through `probe`.
template <class Probe>
bool is_admitted(NvidiaContext& context, const ReadSource& source, ReadStatus first, Probe probe) {
  if (is_lacking(first)) return false;
  return !may_pass(first) || context.unsettled().admit(context.key_of(source), std::move(probe));
}

/// Returns `read` as the row's reader, if its first reading is admitted.
template <class Read>
Reader probed(NvidiaContext& context, const ReadSource& source, Read read) {
  return is_admitted(context, source, read().status, read) ? Reader(std::move(read)) : Reader();
}

/// Returns no reader: the first reading ended with `first`, and the row requires it. `probe` reads again
/// later.
template <class Probe>
Reader absent_for_now(NvidiaContext& context, const ReadSource& source, ReadStatus first, Probe probe) {
  if (may_pass(first)) context.unsettled().await(context.key_of(source), std::move(probe));
  return {};
}

inline Sample sample_of(unsigned result, double value) noexcept {
  const ReadStatus status = status_of(result);
  return status == ReadStatus::ok ? Sample::of(value) : Sample::miss(status);
}

/// 1 if the value passes the test, 0 otherwise.
template <class Test>
Sample flag_of(Sample value, Test test) noexcept {
  return value.status == ReadStatus::ok ? Sample::of(test(value.value) ? 1 : 0) : value;
}

template <auto Function>
using Pointer = std::remove_reference_t<decltype(std::declval<NvmlFunctions&>().*Function)>;
template <auto Function, class... Arguments>
inline constexpr bool takes = std::is_invocable_v<Pointer<Function>, nvml::Device, Arguments...>;

/// Returns the number from a call of any shape; `argument` is the call's parameter after the device.
template <auto Function>
Sample ask(NvmlCaller& caller, std::uint64_t argument = 0) noexcept {
  const auto which = static_cast<unsigned>(argument);
  if constexpr (takes<Function, std::uint64_t*>) {
    std::uint64_t value = 0;
    const unsigned result = caller.call<Function>(&value);
    return sample_of(result, static_cast<double>(value));
  } else if constexpr (takes<Function, unsigned*, unsigned*>) {
    unsigned values[2] = {};
    const unsigned result = caller.call<Function>(&values[0], &values[1]);
    return sample_of(result, values[which == 0 ? 0 : 1]);
  } else if constexpr (takes<Function, unsigned*>) {
    unsigned value = 0;
    const unsigned result = caller.call<Function>(&value);
    return sample_of(result, value);
  } else {
    unsigned value = 0;
    const unsigned result = caller.call<Function>(which, &value);
    return sample_of(result, value);
  }
}

}  // namespace readers

// A source is `{call<&F::nvmlDeviceGetPowerUsage>, "nvmlDeviceGetPowerUsage"}`: one of these functions, the
// name for the docs, and for some a number.

/// The number that a call returns. The source's number is the call's parameter after the device; for calls
/// that return two numbers it selects one: 0 or 1.
template <auto Function>
Reader call(NvidiaContext& context, const ReadSource& source) {
  return readers::probed(context, source, [&caller = context.target().caller, argument = source.argument] {
    return readers::ask<Function>(caller, argument);
  });
}

namespace readers {

/// The low half of the argument is the call's parameter, the high half the value to compare with.
template <auto Function>
Reader bind_state(NvidiaContext& context, const ReadSource& source) {
  return probed(context, source, [&caller = context.target().caller, argument = source.argument] {
    return flag_of(ask<Function>(caller, argument),
                   [&](double state) { return state == static_cast<double>(argument >> 32); });
  });
}

/// The parameters of a field value, packed into one number.
struct FieldArgument {
  unsigned field;
  Tier tier;
  unsigned scope;
  unsigned holds = 0;  // for field_is() and field_beyond()
};
constexpr std::uint64_t packed(FieldArgument field) noexcept {
  return std::uint64_t{field.scope} << 32 | std::uint64_t{field.holds} << 24 |
         std::uint64_t{static_cast<std::uint8_t>(field.tier)} << 16 | field.field;
}
constexpr FieldArgument unpacked(std::uint64_t argument) noexcept {
  return {static_cast<unsigned>(argument & 0xFFFF), static_cast<Tier>(argument >> 16 & 0xFF),
          static_cast<unsigned>(argument >> 32), static_cast<unsigned>(argument >> 24 & 0xFF)};
}

/// Reads a field outside the batch, whose values may be from an earlier pass.
inline auto field_probe(NvidiaContext& context, const FieldArgument& wanted) {
  return [&gpu = context.gpu().caller, field = wanted.field, scope = wanted.scope] {
    return read_field(gpu, field, scope).sample;
  };
}

/// A field of a tier's batch.
class BatchedField {
 public:
  BatchedField(NvidiaContext& context, const FieldArgument& wanted)
      : batch_(context.fields(wanted.tier)),
        gpu_(context.gpu().caller),
        place_(batch_.add(wanted.field, wanted.scope)) {}
  Sample operator()() const noexcept { return batch_.read(gpu_, place_); }

 private:
  FieldBatch& batch_;
  NvmlCaller& gpu_;
  int place_;
};

/// A field of each link; those that the first reading lacks are left out.
struct LinkFields {
  std::vector<BatchedField> links;
  ReadStatus first;  ///< of link 0; the list is empty unless it is ok
};
/// At attach: reads the field of the links below `most` in one call, and batches it.
LinkFields fields_of_links(NvidiaContext& context, FieldArgument wanted, unsigned most);

Reader bind_field(NvidiaContext& context, const ReadSource& source);
Reader bind_wide_field(NvidiaContext& context, const ReadSource& source);
Reader bind_field_is(NvidiaContext& context, const ReadSource& source);
Reader bind_field_beyond(NvidiaContext& context, const ReadSource& source);
Reader bind_all_link_fields(NvidiaContext& context, const ReadSource& source);
Reader bind_gpm_mean(NvidiaContext& context, const ReadSource& source);
/// Of a metric that the device lacks. If the sampler could not be opened, all metrics wait for it.
Reader without_gpm(NvidiaContext& context);
Reader bind_throttle_time(NvidiaContext& context, const ReadSource& source);
Reader bind_ecc(NvidiaContext& context, const ReadSource& source);
Reader bind_ecc_part(NvidiaContext& context, const ReadSource& source);
Reader bind_worst_ber(NvidiaContext& context, const ReadSource& source);
Reader bind_ber(NvidiaContext& context, const ReadSource& source);
Reader bind_c2c_up(NvidiaContext& context, const ReadSource& source);
Reader bind_link_state(NvidiaContext& context, const ReadSource& source);
Reader bind_link_errors(NvidiaContext& context, const ReadSource& source);

}  // namespace readers

/// A member of the struct that a call fills; the call is made once a pass.
template <auto Function, auto Member>
Reader part(NvidiaContext& context, const ReadSource& source) {
  return readers::probed(context, source, [&answer = context.target().template answer<Function>()] {
    const auto& value = answer.ask();
    return readers::sample_of(answer.result(), static_cast<double>(value.*Member));
  });
}

/// The source of `Bind`, which is not bound on a GPU that is integrated into the host's chip and shares its
/// memory. Its driver returns numbers of parts that do not exist: one PCIe lane of generation 1, a memory
/// clock, a memory controller or a fan at 0 (seen on GB10 with drivers 580).
template <NvidiaSource::Bind Bind>
Reader on_card(NvidiaContext& context, const ReadSource& source) {
  return context.unified_memory() == nullptr ? Bind(context, source) : Reader();
}

/// 1 while the call returns `holds`, 0 otherwise.
template <auto Function>
constexpr NvidiaSource is(std::string_view name, unsigned holds, unsigned argument = 0) {
  return {readers::bind_state<Function>, name, std::uint64_t{holds} << 32 | argument};
}

/// A field value, read together with the tier's others.
constexpr NvidiaSource field(std::string_view name, unsigned field, Tier tier, unsigned scope = 0) noexcept {
  return {readers::bind_field, name, readers::packed({field, tier, scope})};
}

/// A field value that counts PCIe bytes. It is 0 until one of the counts was above 32 bits. The driver
/// declares it as 64 bits but may wrap it at 32 (nvml.h: "Value can be wrapped"), which happens within one
/// pass.
constexpr NvidiaSource wide_field(std::string_view name, unsigned field, Tier tier) noexcept {
  return {readers::bind_wide_field, name, readers::packed({field, tier, 0})};
}

/// 1 while the field value is `holds`, 0 otherwise.
constexpr NvidiaSource field_is(std::string_view name, unsigned field, Tier tier, unsigned holds) noexcept {
  return {readers::bind_field_is, name, readers::packed({field, tier, 0, holds})};
}

/// 1 while the field value is `known` or above, 0 otherwise.
constexpr NvidiaSource field_beyond(std::string_view name, unsigned field, Tier tier,
                                    unsigned known) noexcept {
  return {readers::bind_field_beyond, name, readers::packed({field, tier, 0, known})};
}

/// The sum of a field value over all NVLinks.
constexpr NvidiaSource all_link_fields(std::string_view name, unsigned field, Tier tier) noexcept {
  return {readers::bind_all_link_fields, name, readers::packed({field, tier, 0})};
}

/// For a static_assert: a field belongs to the same tier as its row.
constexpr bool in_its_tier(const Row& row) noexcept {
  const auto bind = row.source.bind;
  const bool is_field = bind == readers::bind_field || bind == readers::bind_wide_field ||
                        bind == readers::bind_field_is || bind == readers::bind_field_beyond ||
                        bind == readers::bind_all_link_fields;
  return !is_field || readers::unpacked(row.source.read.argument).tier == row.tier;
}

// The GPU's activity: the driver's sample buffers, its performance metrics, and the reasons for throttling.

/// The integral of a sample buffer (nvml::SamplingType), drained each pass, and its highest and lowest sample
/// of the last minute.
Reader sampled(NvidiaContext& context, const ReadSource& source);
Reader sampled_max(NvidiaContext& context, const ReadSource& source);
Reader sampled_min(NvidiaContext& context, const ReadSource& source);

/// The time between two samples of the buffer, in seconds, by the driver's timestamps.
Reader sample_period(NvidiaContext& context, const ReadSource& source);

/// A performance metric: a percentage or rate since the previous pass, or a count.
Reader gpm(NvidiaContext& context, const ReadSource& source);

/// A rate's integral over observed time. The high half of the number: see gpm_link_total().
Reader gpm_total(NvidiaContext& context, const ReadSource& source);

/// The same for links whose number the field `link_count` holds: the driver reports a rate of 0 also on a GPU
/// without such links (seen on an H100 without NVLink).
constexpr NvidiaSource gpm_link_total(std::string_view name, unsigned metric, unsigned link_count) noexcept {
  return {gpm_total, name, std::uint64_t{link_count} << 32 | metric};
}

/// The mean of `count` adjacent metrics, over those that the device has: one for each engine of a kind.
constexpr NvidiaSource gpm_mean(std::string_view name, unsigned first, unsigned count) noexcept {
  return {readers::bind_gpm_mean, name, std::uint64_t{count} << 32 | first};
}

/// Seconds of activity: active cycles divided by all cycles of the SMs (metric 248). Both counters run on in
/// hardware, so nothing between two passes is missed.
Reader gpm_cycles(NvidiaContext& context, const ReadSource& source);

/// Rows of the cycles themselves (cycles.cpp).
std::span<const Row> cycle_rows() noexcept;

/// 1 while any reason of the mask (nvml::EventReason) is active; not bound if the GPU has none of them.
Reader reasons(NvidiaContext& context, const ReadSource& source);

/// Seconds of throttling from the hardware's counters: one field, or two fields with the same cause. The sum
/// of two fields never exceeds the elapsed time.
constexpr NvidiaSource throttle_time(std::string_view name, unsigned field, unsigned second = 0) noexcept {
  return {readers::bind_throttle_time, name, std::uint64_t{second} << 16 | field};
}

// The GPU's health: temperatures and their limits, fans, memory errors, licence, events; and its peak rates.

/// The absolute limit behind a T.Limit: the field holds the margin at which an action starts, and the call
/// returns the present margin. Both are whole degrees and are read one after the other, so a change of one
/// degree does not change the limit.
Reader tlimit(NvidiaContext& context, const ReadSource& source);

/// The lower of the slowdown and maximum operating temperatures, minus the present temperature.
Reader margin(NvidiaContext& context, const ReadSource& source);

/// The fan of that number.
Reader fan(NvidiaContext& context, const ReadSource& source);
Reader fan_rpm(NvidiaContext& context, const ReadSource& source);

/// A part of the host's memory, if it is the GPU's too.
enum class MemoryPart : std::uint8_t { size, used, free };
Reader unified_memory(NvidiaContext& context, const ReadSource& source);

/// ECC errors by type, kind of counter and nvmlMemoryLocation_t; of the GPU or of a MIG instance.
constexpr NvidiaSource ecc(std::string_view name, unsigned type, unsigned counter,
                           unsigned location) noexcept {
  return {readers::bind_ecc, name, type | counter << 8 | location << 16};
}
/// The same for a part of the memory that newer chips count as SRAM: not bound if the chip counts SRAM as a
/// whole.
constexpr NvidiaSource ecc_part(std::string_view name, unsigned type, unsigned counter,
                                unsigned location) noexcept {
  return {readers::bind_ecc_part, name, type | counter << 8 | location << 16};
}

// Counts of the event thread: not bound if the driver does not report such events. The number is an index
// into kXidNames, for a MIG instance into kInstanceXidNames, and into kEvents.

Reader xid_count(NvidiaContext& context, const ReadSource& source);
/// Time of the last count, in Unix time; 0: never.
Reader xid_time(NvidiaContext& context, const ReadSource& source);
Reader instance_xid_count(NvidiaContext& context, const ReadSource& source);
Reader event_count(NvidiaContext& context, const ReadSource& source);
Reader operational_overflows(NvidiaContext& context, const ReadSource& source);

/// 1 while the vGPU licence, or the machine's confidential computing, is in this state.
Reader licensed(NvidiaContext& context, const ReadSource& source);
Reader confidential(NvidiaContext& context, const ReadSource& source);

/// 1 while the protection of several confidential GPUs is in this mode (nvml::MultiGpuMode).
Reader multi_gpu(NvidiaContext& context, const ReadSource& source);

/// Rows of the profiling counters of DCGM (dcgm.cpp).
std::span<const Row> profiled_rows() noexcept;

/// Rows of what the driver is set to, and of sessions of the video engines (inventory.cpp).
std::span<const Row> setting_rows() noexcept;

/// The peak of the data type at that index.
Reader peak_in_table(NvidiaContext& context, const ReadSource& source);
Reader peak_by_formula(NvidiaContext& context, const ReadSource& source);
Reader peak_bandwidth(NvidiaContext& context, const ReadSource& source);

/// Rows of the power sensors (power_sensors.cpp).
std::span<const Row> power_sensor_rows() noexcept;

// NVLink: the sums over all links, each link by itself if the configuration enables it, and the fabric.

/// The fabric's health as nvmlGpuFabricInfo reports it; newer drivers compute the summary themselves.
enum class FabricHealth : std::uint8_t { healthy = 1, unhealthy, limited_capacity };

/// Computes the summary for drivers before 580, from the bits of each condition in `mask`. Any trouble is
/// unhealthy, and lower bandwidth by itself is limited capacity. nullopt: the mask is empty.
std::optional<FabricHealth> summed_up(unsigned mask) noexcept;

// Read link by link, since the driver has no sums. Link 0 returns NOT_SUPPORTED if there is no NVLink; a link
// beyond the last returns INVALID_ARGUMENT.

/// Number of links that are up, and the data rate that most of them have (NvLinks).
Reader links_up(NvidiaContext& context, const ReadSource& source);
Reader links_speed(NvidiaContext& context, const ReadSource& source);

/// Errors of all links together, by nvmlNvLinkErrorCounter_t.
Reader all_link_errors(NvidiaContext& context, const ReadSource& source);

/// The highest bit error ratio of all NVLinks.
constexpr NvidiaSource worst_ber_field(std::string_view name, unsigned id) noexcept {
  return {readers::bind_worst_ber, name, readers::packed({id, Tier::slow, 0})};
}

/// Number of links to the CPU (NVLink-C2C) that are active, of those that NVML_FI_DEV_C2C_LINK_COUNT counts.
constexpr NvidiaSource c2c_up_fields(std::string_view name, unsigned id) noexcept {
  return {readers::bind_c2c_up, name, readers::packed({id, Tier::slow, 0})};
}

// Sources of one link; the high half of the number is the link. They are bound for the links that have
// something to say, and with `links: each` for every link.

template <NvidiaSource::Bind Bind>
Reader of_shown_link(NvidiaContext& context, const ReadSource& source) {
  const bool is_shown = context.has_each_link() || context.links().shows(source.argument >> 32);
  return is_shown ? Bind(context, source) : Reader();
}
/// With `links: each` only.
template <NvidiaSource::Bind Bind>
Reader of_each_link(NvidiaContext& context, const ReadSource& source) {
  return context.has_each_link() ? Bind(context, source) : Reader();
}
constexpr NvidiaSource link_state(std::string_view name, unsigned link) noexcept {
  return {of_shown_link<readers::bind_link_state>, name, std::uint64_t{link} << 32};
}
constexpr NvidiaSource link_errors(std::string_view name, unsigned link, unsigned counter) noexcept {
  return {of_shown_link<readers::bind_link_errors>, name, counter | std::uint64_t{link} << 32};
}
constexpr NvidiaSource link_field(std::string_view name, unsigned link, unsigned id) noexcept {
  return {of_shown_link<readers::bind_field>, name, readers::packed({id, Tier::slow, link})};
}
constexpr NvidiaSource link_ber_field(std::string_view name, unsigned link, unsigned id) noexcept {
  return {of_shown_link<readers::bind_ber>, name, readers::packed({id, Tier::slow, link})};
}
/// Of the tier, and with `links: each` only.
constexpr NvidiaSource each_link_field(std::string_view name, unsigned link, unsigned id,
                                       Tier tier) noexcept {
  return {of_each_link<readers::bind_field>, name, readers::packed({id, tier, link})};
}

/// State of a fabric registration that completed without success; outside the values of nvmlGpuFabricState_t.
inline constexpr unsigned kFabricFailed = 0x100;

/// 1 while this is the state, or the FabricHealth.
Reader fabric_state(NvidiaContext& context, const ReadSource& source);
Reader fabric_health(NvidiaContext& context, const ReadSource& source);

/// A part of the health mask that states a trouble: NVML_GPU_FABRIC_HEALTH_MASK_SHIFT_*, the bits, and the
/// value that means the trouble; 0 means "not supported" in all of them.
struct FabricCondition {
  std::string_view name;
  unsigned shift, bits, value;
};
inline constexpr FabricCondition kFabricConditions[] = {
    {"degraded_bandwidth", 0, 3, 1},   {"route_recovery", 2, 3, 1},     {"route_unhealthy", 4, 3, 1},
    {"access_timeout", 6, 3, 1},       {"wrong_system_guid", 8, 15, 2}, {"wrong_chassis_serial", 8, 15, 3},
    {"no_partition", 8, 15, 4},        {"too_few_links", 8, 15, 5},     {"incompatible_firmware", 8, 15, 6},
    {"invalid_location", 8, 15, 7},    {"invalid_gpu_state", 8, 15, 8}, {"partition_unassigned", 12, 3, 2},
    {"manager_disconnected", 14, 3, 2}};

/// 1 while the mask states the trouble at that index of kFabricConditions.
Reader fabric_condition(NvidiaContext& context, const ReadSource& source);

}  // namespace gpumeter::nvidia
