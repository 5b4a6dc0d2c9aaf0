#include "collectors/nvidia/readers/basic.hpp"

namespace gpumeter::nvidia::readers {
namespace {

Handle keep_field(NvidiaContext& context, const ReadSource& source) {
  const FieldArgument wanted = unpacked(source.argument);
  return context.keep(source.argument, context.fields(wanted.tier).add(wanted.field, wanted.scope));
}

Sample read(NvidiaContext& context, const NvidiaContext::Bound& bound) noexcept {
  return context.fields(unpacked(bound.argument).tier).read(context.gpu().caller, bound.place);
}

}  // namespace

Handle bind_field(NvidiaContext& context, const ReadSource& source) {
  const FieldArgument wanted = unpacked(source.argument);
  const FieldReading first = read_field(context.gpu().caller, wanted.field, wanted.scope);
  if (is_lacking(first.sample.status)) return std::nullopt;
  if (!may_pass(first.sample.status)) return keep_field(context, source);
  const Handle kept = context.keep(source.argument);
  const bool is_bound = settled_by(context, *kept, source, first.sample.status, probe_field).has_value();
  return is_bound ? Handle(keep_field(context, source)) : std::nullopt;
}

Handle bind_wide_field(NvidiaContext& context, const ReadSource& source) {
  const FieldArgument wanted = unpacked(source.argument);
  const FieldReading first = read_field(context.gpu().caller, wanted.field, wanted.scope);
  const ReadStatus status = first.sample.status;
  if (status != ReadStatus::ok) return absent_for_now<probe_field>(context, source, status);
  const bool is_wide = first.type == nvml::ValueType::ulong || first.type == nvml::ValueType::ulonglong;
  return is_wide ? Handle(keep_field(context, source)) : std::nullopt;
}

// Both directions are of one driver, so one that is wide shows that the other is.
Sample read_wide_field(NvidiaContext& context, int handle) noexcept {
  constexpr double kMostOf32 = 4294967295;
  const Sample count = read_field(context, handle);
  if (count.status != ReadStatus::ok) return count;
  if (count.value > kMostOf32) context.note_wide_bytes();
  return context.has_wide_bytes() ? count : Sample::of(0);
}

Sample read_field(NvidiaContext& context, int handle) noexcept {
  return read(context, context.bound(handle));
}

Sample probe_field(NvidiaContext& context, int handle) noexcept {
  const FieldArgument wanted = unpacked(context.bound(handle).argument);
  return read_field(context.gpu().caller, wanted.field, wanted.scope).sample;
}

Handle bind_field_state(NvidiaContext& context, const ReadSource& source) {
  return bind_field(context, source);
}

Sample read_field_state(NvidiaContext& context, int handle) noexcept {
  const NvidiaContext::Bound& bound = context.bound(handle);
  const Sample state = read(context, bound);
  if (state.status != ReadStatus::ok) return state;
  return Sample::of(state.value == unpacked(bound.argument).holds ? 1 : 0);
}

Sample read_field_beyond(NvidiaContext& context, int handle) noexcept {
  const NvidiaContext::Bound& bound = context.bound(handle);
  const Sample state = read(context, bound);
  if (state.status != ReadStatus::ok) return state;
  return Sample::of(state.value >= unpacked(bound.argument).holds ? 1 : 0);
}

}  // namespace gpumeter::nvidia::readers
