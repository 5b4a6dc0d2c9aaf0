#include "collectors/nvidia/readers/basic.hpp"

#include <vector>

namespace gpumeter::nvidia::readers {
namespace {

ReadStatus first_reading(NvidiaContext& context, const FieldArgument& wanted) {
  return read_field(context.gpu().caller, wanted.field, wanted.scope).sample.status;
}

/// A field's reader: `of` makes it from the BatchedField. The field joins the batch only if the row is bound.
template <class Of>
Reader bound_field(NvidiaContext& context, const ReadSource& source, Of of) {
  const FieldArgument wanted = unpacked(source.argument);
  const ReadStatus first = first_reading(context, wanted);
  if (!is_admitted(context, source, first, field_probe(context, wanted))) return {};
  return of(BatchedField(context, wanted));
}

}  // namespace

Reader bind_field(NvidiaContext& context, const ReadSource& source) {
  return bound_field(context, source, [](BatchedField field) { return field; });
}

// One driver counts both directions, so both are wide if one is.
Reader bind_wide_field(NvidiaContext& context, const ReadSource& source) {
  constexpr double kMostOf32 = 4294967295;
  const FieldArgument wanted = unpacked(source.argument);
  const FieldReading first = read_field(context.gpu().caller, wanted.field, wanted.scope);
  const ReadStatus status = first.sample.status;
  if (status != ReadStatus::ok) return absent_for_now(context, source, status, field_probe(context, wanted));
  if (first.type != nvml::ValueType::ulong && first.type != nvml::ValueType::ulonglong) return {};
  return [&context, field = BatchedField(context, wanted)] {
    const Sample count = field();
    if (count.status != ReadStatus::ok) return count;
    if (count.value > kMostOf32) context.note_wide_bytes();
    return context.has_wide_bytes() ? count : Sample::of(0);
  };
}

Reader bind_field_is(NvidiaContext& context, const ReadSource& source) {
  return bound_field(context, source, [&](BatchedField field) {
    return [field, wanted = unpacked(source.argument).holds] {
      return flag_of(field(), [&](double state) { return state == wanted; });
    };
  });
}

Reader bind_field_beyond(NvidiaContext& context, const ReadSource& source) {
  return bound_field(context, source, [&](BatchedField field) {
    return [field, known = unpacked(source.argument).holds] {
      return flag_of(field(), [&](double state) { return state >= known; });
    };
  });
}

LinkFields fields_of_links(NvidiaContext& context, FieldArgument wanted, unsigned most) {
  FieldBatch probe;
  for (unsigned link = 0; link < most; ++link) probe.add(wanted.field, link);
  LinkFields found{{}, probe.read(context.gpu().caller, 0).status};
  if (found.first != ReadStatus::ok) return found;
  for (wanted.scope = 0; wanted.scope < most; ++wanted.scope) {
    if (!is_lacking(probe.read(context.gpu().caller, static_cast<int>(wanted.scope)).status))
      found.links.emplace_back(context, wanted);
  }
  return found;
}

Reader bind_all_link_fields(NvidiaContext& context, const ReadSource& source) {
  const FieldArgument wanted = unpacked(source.argument);
  auto [links, first] = fields_of_links(context, wanted, nvml::kMostLinks);
  if (links.empty()) return absent_for_now(context, source, first, field_probe(context, wanted));
  return [links = std::move(links)] {
    double sum = 0;
    for (const BatchedField& link : links) {
      const Sample one = link();
      if (one.status != ReadStatus::ok) return one;
      sum += one.value;
    }
    return Sample::of(sum);
  };
}

}  // namespace gpumeter::nvidia::readers
