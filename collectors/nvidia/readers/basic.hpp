#pragma once

#include <cstdint>
#include <type_traits>
#include <utility>
#include <vector>

#include "collectors/nvidia/context.hpp"
#include "collectors/table/row.hpp"

/// Readers of single calls, structs and field values. A call at attach may report that the GPU, the driver or
/// the daemon's rights lack the value. The row then does not bind, so that the next row of the series is
/// used.
namespace gpumeter::nvidia {

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

template <auto Function>
Reader bind_call(NvidiaContext& context, const ReadSource& source) {
  return probed(context, source, [&caller = context.target().caller, argument = source.argument] {
    return ask<Function>(caller, argument);
  });
}

/// The low half of the argument is the call's parameter, the high half the value to compare with.
template <auto Function>
Reader bind_state(NvidiaContext& context, const ReadSource& source) {
  return probed(context, source, [&caller = context.target().caller, argument = source.argument] {
    return flag_of(ask<Function>(caller, argument),
                   [&](double state) { return state == static_cast<double>(argument >> 32); });
  });
}

/// As Bind, but only on a GPU with memory of its own.
template <Reader (*Bind)(NvidiaContext&, const ReadSource&)>
Reader bind_on_card(NvidiaContext& context, const ReadSource& source) {
  return context.unified_memory() == nullptr ? Bind(context, source) : Reader();
}

template <auto Function, auto Member>
Reader bind_part(NvidiaContext& context, const ReadSource& source) {
  return probed(context, source, [&answer = context.target().template answer<Function>()] {
    const auto& value = answer.ask();
    return sample_of(answer.result(), static_cast<double>(value.*Member));
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

}  // namespace readers

/// The number that a call returns: call<&F::nvmlDeviceGetPowerUsage>("nvmlDeviceGetPowerUsage"). `argument`
/// is the call's parameter after the device. For calls that return two numbers it selects one: 0 or 1.
template <auto Function>
constexpr NvidiaSource call(std::string_view name, std::uint64_t argument = 0) {
  return {readers::bind_call<Function>, {name, argument}};
}

/// 1 while the call returns `holds`, 0 otherwise.
template <auto Function>
constexpr NvidiaSource is(std::string_view name, unsigned holds, unsigned argument = 0) {
  return {readers::bind_state<Function>, {name, std::uint64_t{holds} << 32 | argument}};
}

/// A member of the struct that a call fills; the call is made once a pass.
template <auto Function, auto Member>
constexpr NvidiaSource part(std::string_view name) {
  return {readers::bind_part<Function, Member>, {name}};
}

/// The source of `Bind`, which is not bound on a GPU that is integrated into the host's chip and shares its
/// memory. Its driver returns numbers of parts that do not exist: one PCIe lane of generation 1, a memory
/// clock, a memory controller or a fan at 0 (seen on GB10 with drivers 580).
template <Reader (*Bind)(NvidiaContext&, const ReadSource&)>
constexpr NvidiaSource on_card(std::string_view name, std::uint64_t argument = 0) {
  return {readers::bind_on_card<Bind>, {name, argument}};
}

/// A field value, read together with the tier's others.
constexpr NvidiaSource field(std::string_view name, unsigned field, Tier tier, unsigned scope = 0) noexcept {
  return {readers::bind_field, {name, readers::packed({field, tier, scope})}};
}

/// A field value that counts PCIe bytes. It is 0 until one of the counts was above 32 bits. The driver
/// declares it as 64 bits but may wrap it at 32 (nvml.h: "Value can be wrapped"), which happens within one
/// pass.
constexpr NvidiaSource wide_field(std::string_view name, unsigned field, Tier tier) noexcept {
  return {readers::bind_wide_field, {name, readers::packed({field, tier, 0})}};
}

/// 1 while the field value is `holds`, 0 otherwise.
constexpr NvidiaSource field_is(std::string_view name, unsigned field, Tier tier, unsigned holds) noexcept {
  return {readers::bind_field_is, {name, readers::packed({field, tier, 0, holds})}};
}

/// 1 while the field value is `known` or above, 0 otherwise.
constexpr NvidiaSource field_beyond(std::string_view name, unsigned field, Tier tier,
                                    unsigned known) noexcept {
  return {readers::bind_field_beyond, {name, readers::packed({field, tier, 0, known})}};
}

/// The sum of a field value over all NVLinks.
constexpr NvidiaSource all_link_fields(std::string_view name, unsigned field, Tier tier) noexcept {
  return {readers::bind_all_link_fields, {name, readers::packed({field, tier, 0})}};
}

/// For a static_assert: a field belongs to the same tier as its row.
constexpr bool in_its_tier(const Row& row) noexcept {
  const auto bind = row.source.bind;
  const bool is_field = bind == readers::bind_field || bind == readers::bind_wide_field ||
                        bind == readers::bind_field_is || bind == readers::bind_field_beyond ||
                        bind == readers::bind_all_link_fields;
  return !is_field || readers::unpacked(row.source.read.argument).tier == row.tier;
}

}  // namespace gpumeter::nvidia
