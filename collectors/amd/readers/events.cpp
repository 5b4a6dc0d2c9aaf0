#include "collectors/amd/readers/events.hpp"

namespace gpumeter::amd::readers {
namespace {

constexpr std::uint64_t kNotPresent = 2;  // kgd_pp_interface.h, xgmi_link_status

bool has_link(AmdContext& context, const BlobElement& wanted) {
  return context.each_link() && context.awake() && context.has_blob_field(wanted.field, wanted.element - 1);
}

}  // namespace

// A link that the board lacks has all-ones instead of a count.
Reader bind_link_counter(AmdContext& context, const ReadSource& source) {
  const BlobElement wanted = BlobElement::of(source.argument);
  if (!has_link(context, wanted)) return {};
  const auto read = [&context, wanted] { return context.blob().value(wanted.field, wanted.element - 1); };
  return read().status == ReadStatus::ok ? Reader(read) : Reader();
}

Reader bind_link_status(AmdContext& context, const ReadSource& source) {
  const BlobElement wanted = BlobElement::of(source.argument);
  if (!has_link(context, wanted)) return {};
  const auto status = context.blob().raw(wanted.field, wanted.element - 1);
  if (!status || *status >= kNotPresent) return {};
  return [&context, wanted] { return context.blob().value(wanted.field, wanted.element - 1); };
}

Reader bind_event(AmdContext& context, const ReadSource& source) {
  if (!context.events()) return {};
  return [events = context.events(), place = source.argument] {
    if (!events->is_reported()) return Sample::miss(ReadStatus::unsupported);
    return Sample::of(static_cast<double>(events->count_of(place)));
  };
}

}  // namespace gpumeter::amd::readers
