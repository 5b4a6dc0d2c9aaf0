#include "collectors/nvidia/nvidia_readers.hpp"

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
  return is_lacking(first.sample.status) ? std::nullopt : keep_field(context, source);
}

Handle bind_wide_field(NvidiaContext& context, const ReadSource& source) {
  const FieldArgument wanted = unpacked(source.argument);
  const FieldReading first = read_field(context.gpu().caller, wanted.field, wanted.scope);
  const bool is_wide = first.type == nvml::ValueType::ulong || first.type == nvml::ValueType::ulonglong;
  return first.sample.status == ReadStatus::ok && is_wide ? keep_field(context, source) : std::nullopt;
}

Sample read_field(NvidiaContext& context, int handle) noexcept {
  return read(context, context.bound(handle));
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

}  // namespace gpumeter::nvidia::readers
