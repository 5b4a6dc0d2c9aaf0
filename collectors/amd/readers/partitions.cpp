#include "collectors/amd/rows/partitions.hpp"

namespace gpumeter::amd::readers {
namespace {

/// A partition and a number beside it, as one handle.
constexpr int kNumbers = 1 << 8;
static_assert(kBlobFieldCount < kNumbers);

int handle_of(const AmdContext& context, std::size_t number) noexcept {
  return static_cast<int>(context.partition() * kNumbers + number);
}
std::size_t partition_of(int handle) noexcept { return static_cast<std::size_t>(handle / kNumbers); }
std::size_t number_of(int handle) noexcept { return static_cast<std::size_t>(handle % kNumbers); }

Sample told(const std::optional<double>& value) noexcept {
  return value ? Sample::of(*value) : Sample::miss(ReadStatus::unsupported);
}

std::optional<double> peak_of_part(const AmdContext& context, int handle) noexcept {
  const std::optional<KfdNode>& node = context.partition_node(partition_of(handle));
  return node ? peak_of(*node, static_cast<Peak>(number_of(handle))) : std::nullopt;
}

}  // namespace

Handle bind_part(AmdContext& context, const ReadSource& source) {
  return context.has_blob_field(source.argument) ? Handle(handle_of(context, source.argument)) : std::nullopt;
}

Sample read_part(AmdContext& context, int handle) noexcept {
  return context.blob().highest(number_of(handle), partition_of(handle), context.partitions().size());
}

Handle bind_part_memory(AmdContext& context, const ReadSource&) {
  const std::optional<KfdNode>& node = context.partition_node(context.partition());
  return node && node->memory_bytes > 0 ? Handle(handle_of(context, 0)) : std::nullopt;
}

Sample read_part_memory(AmdContext& context, int handle) noexcept {
  return Sample::of(static_cast<double>(context.partition_node(partition_of(handle))->memory_bytes));
}

Handle bind_part_peak(AmdContext& context, const ReadSource& source) {
  const int handle = handle_of(context, source.argument);
  return peak_of_part(context, handle) ? Handle(handle) : std::nullopt;
}

Sample read_part_peak(AmdContext& context, int handle) noexcept {
  return told(peak_of_part(context, handle));
}

}  // namespace gpumeter::amd::readers
