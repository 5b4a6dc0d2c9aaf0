#pragma once

#include <cstdint>
#include <type_traits>
#include <utility>

#include "collectors/nvidia/context.hpp"
#include "collectors/table/row.hpp"

/// How rows get the numbers of single calls, structs and field values. If a call reports at attach that the
/// GPU, the driver or the daemon's rights lack the value, the row does not bind, so that the next row of the
/// series has its turn.
namespace gpumeter::nvidia {

using Row = MetricRow<NvidiaContext>;
using NvidiaSource = RowSource<NvidiaContext>;

namespace readers {

/// False if the first reading, which ended with `first`, means that the value will never come. A reading that
/// failed is repeated by `probe`.
template <class Probe>
bool is_admitted(NvidiaContext& context, const ReadSource& source, ReadStatus first, Probe probe) {
  if (is_lacking(first)) return false;
  return !may_pass(first) || context.unsettled().admit(context.key_of(source), std::move(probe));
}

/// `read` as the row's reader, by its first reading.
template <class Read>
Reader probed(NvidiaContext& context, const ReadSource& source, Read read) {
  return is_admitted(context, source, read().status, read) ? Reader(std::move(read)) : Reader();
}

/// No reader, as the first reading ended with `first` and the row cannot do without one. `probe` asks later.
template <class Probe>
Reader absent_for_now(NvidiaContext& context, const ReadSource& source, ReadStatus first, Probe probe) {
  if (may_pass(first)) context.unsettled().await(context.key_of(source), std::move(probe));
  return {};
}

inline Sample sample_of(unsigned result, double value) noexcept {
  const ReadStatus status = status_of(result);
  return status == ReadStatus::ok ? Sample::of(value) : Sample::miss(status);
}

/// 1 if the value passes the test, else 0.
template <class Test>
Sample flag_of(Sample value, Test test) noexcept {
  return value.status == ReadStatus::ok ? Sample::of(test(value.value) ? 1 : 0) : value;
}

template <auto Function>
using Pointer = std::remove_reference_t<decltype(std::declval<NvmlFunctions&>().*Function)>;
template <auto Function, class... Arguments>
inline constexpr bool takes = std::is_invocable_v<Pointer<Function>, nvml::Device, Arguments...>;

/// The number that a call gives, whichever shape it has; `argument` is its parameter after the device.
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

/// The low half of the argument is the call's, the high half the value that holds.
template <auto Function>
Reader bind_state(NvidiaContext& context, const ReadSource& source) {
  return probed(context, source, [&caller = context.target().caller, argument = source.argument] {
    return flag_of(ask<Function>(caller, argument),
                   [&](double state) { return state == static_cast<double>(argument >> 32); });
  });
}

template <auto Function, auto Member>
Reader bind_part(NvidiaContext& context, const ReadSource& source) {
  return probed(context, source, [&answer = context.target().template answer<Function>()] {
    const auto& value = answer.ask();
    return sample_of(answer.result(), static_cast<double>(value.*Member));
  });
}

/// A field value as a row asks for it, in one number.
struct FieldArgument {
  unsigned field;
  Tier tier;
  unsigned scope;
  unsigned holds = 0;  // of field_is() and field_beyond()
};
constexpr std::uint64_t packed(FieldArgument field) noexcept {
  return std::uint64_t{field.scope} << 32 | std::uint64_t{field.holds} << 24 |
         std::uint64_t{static_cast<std::uint8_t>(field.tier)} << 16 | field.field;
}
constexpr FieldArgument unpacked(std::uint64_t argument) noexcept {
  return {static_cast<unsigned>(argument & 0xFFFF), static_cast<Tier>(argument >> 16 & 0xFF),
          static_cast<unsigned>(argument >> 32), static_cast<unsigned>(argument >> 24 & 0xFF)};
}

/// Asks for a field without the batch, whose answer may be of an earlier pass.
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

Reader bind_field(NvidiaContext& context, const ReadSource& source);
Reader bind_wide_field(NvidiaContext& context, const ReadSource& source);
Reader bind_field_is(NvidiaContext& context, const ReadSource& source);
Reader bind_field_beyond(NvidiaContext& context, const ReadSource& source);
Reader bind_all_link_fields(NvidiaContext& context, const ReadSource& source);

}  // namespace readers

/// The number that a call gives: call<&F::nvmlDeviceGetPowerUsage>("nvmlDeviceGetPowerUsage"). `argument`:
/// the call's parameter after the device, or for calls that give two numbers 0 or 1 for which.
template <auto Function>
constexpr NvidiaSource call(std::string_view name, std::uint64_t argument = 0) {
  return {readers::bind_call<Function>, {name, argument}};
}

/// 1 while the call gives `holds`, else 0.
template <auto Function>
constexpr NvidiaSource is(std::string_view name, unsigned holds, unsigned argument = 0) {
  return {readers::bind_state<Function>, {name, std::uint64_t{holds} << 32 | argument}};
}

/// A part of the struct that a call fills, which is made once a pass.
template <auto Function, auto Member>
constexpr NvidiaSource part(std::string_view name) {
  return {readers::bind_part<Function, Member>, {name}};
}

/// A field value, asked for together with the tier's others.
constexpr NvidiaSource field(std::string_view name, unsigned field, Tier tier, unsigned scope = 0) noexcept {
  return {readers::bind_field, {name, readers::packed({field, tier, scope})}};
}

/// A field value that counts PCIe bytes: 0 until one of them was seen above 32 bits, since the driver calls
/// it a number of 64 bits where it wraps at 32 (nvml.h: "Value can be wrapped"), which is within a pass.
constexpr NvidiaSource wide_field(std::string_view name, unsigned field, Tier tier) noexcept {
  return {readers::bind_wide_field, {name, readers::packed({field, tier, 0})}};
}

/// 1 while the field value is `holds`, else 0.
constexpr NvidiaSource field_is(std::string_view name, unsigned field, Tier tier, unsigned holds) noexcept {
  return {readers::bind_field_is, {name, readers::packed({field, tier, 0, holds})}};
}

/// 1 while the field value is none of those below `known`, else 0.
constexpr NvidiaSource field_beyond(std::string_view name, unsigned field, Tier tier,
                                    unsigned known) noexcept {
  return {readers::bind_field_beyond, {name, readers::packed({field, tier, 0, known})}};
}

/// A field value of each NVLink, added up.
constexpr NvidiaSource all_link_fields(std::string_view name, unsigned field, Tier tier) noexcept {
  return {readers::bind_all_link_fields, {name, readers::packed({field, tier, 0})}};
}

/// For a static_assert: a field is asked for with the tier that its row is read in.
constexpr bool in_its_tier(const Row& row) noexcept {
  const auto bind = row.source.bind;
  const bool is_field = bind == readers::bind_field || bind == readers::bind_wide_field ||
                        bind == readers::bind_field_is || bind == readers::bind_field_beyond ||
                        bind == readers::bind_all_link_fields;
  return !is_field || readers::unpacked(row.source.read.argument).tier == row.tier;
}

}  // namespace gpumeter::nvidia
