#pragma once

#include <concepts>
#include <cstdint>
#include <type_traits>

#include "collectors/nvidia/context.hpp"
#include "collectors/table/row.hpp"

/// How the rows of nvidia_metrics.cpp get their values. A call that says at attach that the GPU, the driver
/// or our rights lack the value does not bind, so that the next row of the series has its turn.
namespace gpumeter::nvidia {

using NvidiaReader = Reader<NvidiaContext>;
using Handle = std::optional<int>;

namespace readers {

/// `handle` unless the first reading, which ended with `first`, says that the value will never come. One that
/// failed is asked again by `read`.
inline Handle settled_by(NvidiaContext& context, int handle, const ReadSource& source, ReadStatus first,
                         UnsettledSources::Read read) {
  if (is_lacking(first)) return std::nullopt;
  const bool is_bound = !may_pass(first) || context.unsettled().admit(context.key_of(source), read, handle);
  return is_bound ? Handle(handle) : std::nullopt;
}
template <Sample (*Read)(NvidiaContext&, int) noexcept>
Handle settled(NvidiaContext& context, int handle, const ReadSource& source) {
  return settled_by(context, handle, source, Read(context, handle).status, Read);
}
template <Sample (*Read)(NvidiaContext&, int) noexcept>
Handle bind_probed(NvidiaContext& context, const ReadSource& source) {
  return settled<Read>(context, context.keep(source.argument), source);
}

/// No handle, as the first reading ended with `first` and the row cannot do without one. Read is asked later,
/// with the argument of `source`.
template <Sample (*Read)(NvidiaContext&, int) noexcept>
Handle absent_for_now(NvidiaContext& context, const ReadSource& source, ReadStatus first) {
  if (may_pass(first)) context.unsettled().await(context.key_of(source), Read, context.keep(source.argument));
  return std::nullopt;
}

inline Sample sample_of(unsigned result, double value) noexcept {
  const ReadStatus status = status_of(result);
  return status == ReadStatus::ok ? Sample::of(value) : Sample::miss(status);
}

template <auto Function>
using Pointer = std::remove_reference_t<decltype(std::declval<NvmlFunctions&>().*Function)>;
template <auto Function, class... Arguments>
inline constexpr bool takes = std::is_invocable_v<Pointer<Function>, nvml::Device, Arguments...>;

/// The number that a call gives, whichever shape it has; `argument` is what it wants beside the device.
template <auto Function>
Sample ask(NvmlCaller& caller, std::uint64_t argument) noexcept {
  const auto which = static_cast<unsigned>(argument);
  if constexpr (takes<Function, std::uint64_t*>) {
    std::uint64_t value = 0;
    const unsigned result = caller.call<Function>(&value);
    return sample_of(result, static_cast<double>(value));
  } else if constexpr (takes<Function, unsigned*, unsigned*>) {
    unsigned values[2] = {};
    const unsigned result = caller.call<Function>(&values[0], &values[1]);
    return sample_of(result, values[argument == 0 ? 0 : 1]);
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
Sample read_call(NvidiaContext& context, int handle) noexcept {
  const NvidiaContext::Bound& bound = context.bound(handle);
  return ask<Function>(context.target(bound).caller, bound.argument);
}

/// The low half of the argument is the call's, the high half the value that holds.
template <auto Function>
Sample read_state(NvidiaContext& context, int handle) noexcept {
  const NvidiaContext::Bound& bound = context.bound(handle);
  const Sample state = ask<Function>(context.target(bound).caller, bound.argument & 0xFFFFFFFF);
  if (state.status != ReadStatus::ok) return state;
  return Sample::of(state.value == static_cast<double>(bound.argument >> 32) ? 1 : 0);
}

template <auto Function, class Struct, auto Member>
Sample read_member(NvidiaContext& context, int handle) noexcept {
  NvmlTarget& target = context.target(context.bound(handle));
  Answer<Function, Struct>& answer = target.answer<Function, Struct>();
  const Struct& value = answer.ask(target.caller);
  return sample_of(answer.result(), static_cast<double>(value.*Member));
}

/// What read_field() wants, in one number.
struct FieldArgument {
  unsigned field;
  Tier tier;
  unsigned scope;
  unsigned holds = 0;  // of read_field_state(): the value for which it is 1
};
constexpr std::uint64_t packed(FieldArgument field) noexcept {
  return std::uint64_t{field.scope} << 32 | std::uint64_t{field.holds} << 24 |
         std::uint64_t{static_cast<std::uint8_t>(field.tier)} << 16 | field.field;
}
constexpr FieldArgument unpacked(std::uint64_t argument) noexcept {
  return {static_cast<unsigned>(argument & 0xFFFF), static_cast<Tier>(argument >> 16 & 0xFF),
          static_cast<unsigned>(argument >> 32), static_cast<unsigned>(argument >> 24 & 0xFF)};
}
Handle bind_field(NvidiaContext& context, const ReadSource& source);
Handle bind_wide_field(NvidiaContext& context, const ReadSource& source);
Sample read_field(NvidiaContext& context, int handle) noexcept;
/// Without the batch, whose answer may be of an earlier pass.
Sample probe_field(NvidiaContext& context, int handle) noexcept;
Sample read_wide_field(NvidiaContext& context, int handle) noexcept;
Handle bind_field_state(NvidiaContext& context, const ReadSource& source);
Sample read_field_state(NvidiaContext& context, int handle) noexcept;
Sample read_field_beyond(NvidiaContext& context, int handle) noexcept;

}  // namespace readers

/// The number that a call gives: call<&F::nvmlDeviceGetPowerUsage>("nvmlDeviceGetPowerUsage"). `argument`:
/// what it wants beside the device, or for calls that give two numbers 0 or 1 for which.
template <auto Function>
constexpr NvidiaReader call(std::string_view name, std::uint64_t argument = 0) {
  return {readers::bind_probed<readers::read_call<Function>>, readers::read_call<Function>, {name, argument}};
}

/// 1 while the call gives `holds`, else 0.
template <auto Function>
constexpr NvidiaReader is(std::string_view name, unsigned holds, unsigned argument = 0) {
  return {readers::bind_probed<readers::read_state<Function>>,
          readers::read_state<Function>,
          {name, std::uint64_t{holds} << 32 | argument}};
}

template <class Struct, class Type>
Struct struct_of(Type Struct::*);

/// A part of the struct that a call fills, which is asked for once a pass.
template <auto Function, auto Member>
constexpr NvidiaReader part(std::string_view name) {
  using Struct = decltype(struct_of(Member));
  constexpr auto read = readers::read_member<Function, Struct, Member>;
  return {readers::bind_probed<read>, read, {name}};
}

/// A field value, asked for together with the tier's others.
constexpr NvidiaReader field(std::string_view name, unsigned field, Tier tier, unsigned scope = 0) noexcept {
  return {readers::bind_field, readers::read_field, {name, readers::packed({field, tier, scope})}};
}

/// A field value that counts PCIe bytes: 0 until one of them was seen above 32 bits, since the driver calls
/// it a number of 64 bits where it wraps at 32 (nvml.h: "Value can be wrapped"), which is within a pass.
constexpr NvidiaReader wide_field(std::string_view name, unsigned field, Tier tier) noexcept {
  return {readers::bind_wide_field, readers::read_wide_field, {name, readers::packed({field, tier, 0})}};
}

/// 1 while the field value is `holds`, else 0.
constexpr NvidiaReader field_is(std::string_view name, unsigned field, Tier tier, unsigned holds) noexcept {
  return {
      readers::bind_field_state, readers::read_field_state, {name, readers::packed({field, tier, 0, holds})}};
}

/// 1 while the field value is none of those below `known`, else 0.
constexpr NvidiaReader field_beyond(std::string_view name, unsigned field, Tier tier,
                                    unsigned known) noexcept {
  return {readers::bind_field_state,
          readers::read_field_beyond,
          {name, readers::packed({field, tier, 0, known})}};
}

/// For a static_assert: a field is asked for with the tier that its row is read in.
constexpr bool in_its_tier(const MetricRow<NvidiaContext>& row) noexcept {
  const bool is_field = row.reader.bind == readers::bind_field ||
                        row.reader.bind == readers::bind_wide_field ||
                        row.reader.bind == readers::bind_field_state;
  return !is_field || readers::unpacked(row.reader.source.argument).tier == row.tier;
}

}  // namespace gpumeter::nvidia
