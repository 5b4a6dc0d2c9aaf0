#include "collectors/amd/readers/basic.hpp"

#include <array>
#include <string>

#include "collectors/sources/pci.hpp"
#include "collectors/sources/sysfs.hpp"

namespace gpumeter::amd::readers {
namespace {

// amdgpu passes on the firmware's value, which at full load can be slightly above 100 (kernels of 2026 clamp
// it themselves). A value far above 100 is not a percentage; the row's range rejects it.
constexpr double kFull = 100;
constexpr double kOvershoot = 2 * kFull;

using Handle = std::optional<int>;  // from AmdContext::file()

/// Reads an integer file of the context.
auto reading(AmdContext& context, int file) {
  return [&context, file] { return context.integer(file); };
}

/// Combines both values by `combine`, or returns the reason why one is missing.
template <class Combine>
Reader combined(AmdContext& context, Handle left, Handle right, Combine combine) {
  if (!left || !right) return {};
  return probed(context, [&context, left = *left, right = *right, combine] {
    const Sample first = context.integer(left);
    const Sample second = context.integer(right);
    if (first.status != ReadStatus::ok) return first;
    if (second.status != ReadStatus::ok) return second;
    return Sample::of(combine(first.value, second.value));
  });
}

Reader subtracted(AmdContext& context, Handle left, Handle right) {
  return combined(context, left, right, [](double a, double b) { return a - b; });
}

/// Splits "a - b" into its two names.
std::pair<std::string_view, std::string_view> split(std::string_view names, std::string_view separator) {
  const std::size_t at = names.find(separator);
  return {names.substr(0, at), names.substr(at + separator.size())};
}

/// Returns the lower one of a sensor's limits. Drivers keep them in memory, so reading them does not wake the
/// card. A limit of 0 is not set.
Handle lowest_limit(AmdContext& context, const std::string& sensor) {
  Handle lowest;
  double value = 0;
  for (const char* const suffix : {"_crit", "_emergency"}) {
    const Handle limit = context.constant_file(sensor + suffix);
    const Sample sample = limit ? context.integer(*limit) : Sample::miss(ReadStatus::unsupported);
    if (sample.status != ReadStatus::ok || sample.value <= 0 || (lowest && sample.value >= value)) continue;
    lowest = limit;
    value = sample.value;
  }
  return lowest;
}

Reader constant_if(const std::optional<double>& value) {
  return value ? gpumeter::constant(*value) : Reader();
}

}  // namespace

Reader bind_file(AmdContext& context, const ReadSource& source) {
  const Handle file = context.file(source.name);
  return file ? probed(context, reading(context, *file)) : Reader();
}

Reader bind_power(AmdContext& context, const ReadSource& source) {
  Reader read = bind_file(context, source);
  if (!read || context.chip() != Chip::mi200 || !context.awake()) return read;
  const Sample watts = read();
  return watts.status == ReadStatus::ok && watts.value == 0 ? Reader() : std::move(read);
}

Reader bind_constant(AmdContext& context, const ReadSource& source) {
  const Handle file = context.constant_file(source.name);
  return file ? probed(context, reading(context, *file)) : Reader();
}

Reader bind_busy(AmdContext& context, const ReadSource& source) {
  const Handle file = context.file(source.name);
  if (!file) return {};
  return probed(context, [&context, file = *file] {
    const Sample sample = context.integer(file);
    const bool overshot = sample.value > kFull && sample.value <= kOvershoot;
    return overshot ? Sample{kFull, sample.status} : sample;
  });
}

Reader bind_difference(AmdContext& context, const ReadSource& source) {
  const auto [left, right] = split(source.name, " - ");
  const Handle minuend = context.constant_file(left);
  return subtracted(context, minuend, context.file(right));
}

Reader bind_margin(AmdContext& context, const ReadSource& source) {
  const std::string sensor(source.name);
  const Handle limit = lowest_limit(context, sensor);
  return subtracted(context, limit, context.file(sensor + "_input"));
}

// A divisor of 0 gives an infinity or NaN, which every row's range rejects.
Reader bind_quotient(AmdContext& context, const ReadSource& source) {
  const auto [left, right] = split(source.name, " / ");
  const Handle dividend = context.file(left);
  return combined(context, dividend, context.constant_file(right), [](double a, double b) { return a / b; });
}

Reader bind_link_generation(AmdContext& context, const ReadSource& source) {
  const std::shared_ptr<sysfs::File> file = context.text_file(source.name);
  if (!file || !context.has_pcie_link()) return {};
  return probed(context, [file] {
    std::array<char, 32> buffer{};
    const sysfs::Bytes bytes = read_again(*file, buffer);
    if (bytes.status != ReadStatus::ok) return Sample::miss(bytes.status);
    const std::optional<int> known = pci::link_generation(sysfs::trimmed({buffer.data(), bytes.size}));
    return sample_of(known);  // "Unknown": the link is down
  });
}

Reader bind_link_lanes(AmdContext& context, const ReadSource& source) {
  return context.has_pcie_link() ? bind_file(context, source) : Reader();
}

// Uses the same reading as the rest of this pass.
Reader bind_asleep(AmdContext& context, const ReadSource& source) {
  const std::shared_ptr<sysfs::File> file = context.text_file(source.name);
  if (!file) return {};
  std::array<char, 32> buffer{};
  const sysfs::Bytes bytes = read_again(*file, buffer);
  const std::string_view status = sysfs::trimmed({buffer.data(), bytes.size});
  if (status.empty() || status == "unsupported") return {};
  return [&context] { return Sample::of(context.awake() ? 0 : 1); };
}

Reader bind_clients_busy(AmdContext& context, const ReadSource&) {
  return context.has_clients() ? Reader([&context] { return context.clients().busiest(); }) : Reader();
}

Reader bind_clients_utilization(AmdContext& context, const ReadSource&) {
  return context.has_clients() ? Reader([&context] { return context.clients().utilization(); }) : Reader();
}

Reader bind_peak(AmdContext& context, const ReadSource& source) {
  const std::optional<KfdNode>& card = context.kfd();
  return card ? constant_if(peak_of(*card, static_cast<Peak>(source.argument))) : Reader();
}

Reader bind_part_peak(AmdContext& context, const ReadSource& source) {
  const std::optional<KfdNode>& part = context.partition_node();
  return part ? constant_if(peak_of(*part, static_cast<Peak>(source.argument))) : Reader();
}

Reader bind_part_memory(AmdContext& context, const ReadSource&) {
  const std::optional<KfdNode>& part = context.partition_node();
  const bool is_told = part && part->memory_bytes > 0;
  return is_told ? gpumeter::constant(static_cast<double>(part->memory_bytes)) : Reader();
}

}  // namespace gpumeter::amd::readers
