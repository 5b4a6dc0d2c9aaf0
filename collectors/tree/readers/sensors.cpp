#include <algorithm>
#include <array>
#include <string>
#include <utility>
#include <vector>

#include "collectors/tree/readers.hpp"
#include "collectors/tree/readers/parts.hpp"

namespace gpumeter::tree::readers {
namespace {

struct Channel {
  int voltage = 0;
  int current = 0;
};

/// nullopt without a current: a sum of channels, which is no rail.
std::optional<Channel> channel_of(TreeContext& context, std::string_view voltage_name) {
  const std::optional<std::string> path = context.paths().resolve(voltage_name);
  if (!path) return std::nullopt;
  const std::size_t name = path->rfind('/') + 1;
  if (path->compare(name, 2, "in") != 0) return std::nullopt;
  const auto voltage = context.number_file_at(*path);
  const auto current = context.number_file_at(path->substr(0, name) + "curr" + path->substr(name + 2));
  if (!voltage || !current) return std::nullopt;
  return Channel{*voltage, *current};
}

/// A sensor's files. A governor holds the temperature at the passive trip points of a thermal zone, so only
/// the critical one is a limit.
struct SensorFiles {
  std::string input;
  std::vector<std::string> limits;
};
SensorFiles files_of(const std::string& sensor) {
  if (sensor.starts_with("thermal{")) return {sensor + "/temp", {sensor + "/trip{critical}"}};
  return {sensor + "_input", {sensor + "_crit", sensor + "_emergency", sensor + "_max"}};
}

/// nullopt: none is set, which is 0, or none can be read.
std::optional<double> lowest_of(TreeContext& context, const std::vector<int>& limits) noexcept {
  std::optional<double> lowest;
  for (const int limit : limits) {
    const Sample value = context.number(limit);
    if (value.status == ReadStatus::ok && value.value > 0)
      lowest = std::min(lowest.value_or(value.value), value.value);
  }
  return lowest;
}

}  // namespace

// A card that sleeps is not read, so its limits are read when it is awake.
Reader bind_margin(TreeContext& context, const ReadSource& source) {
  const SensorFiles files = files_of(std::string(source.name));
  const std::optional<int> input = context.number_file(files.input);
  std::vector<int> limits;
  for (const std::string& name : files.limits) {
    if (const std::optional<int> limit = context.number_file(name)) limits.push_back(*limit);
  }
  if (!input || limits.empty()) return {};
  std::optional<double> lowest = context.awake() ? lowest_of(context, limits) : std::nullopt;
  if (context.awake() && !lowest) return {};
  return [&context, input = *input, limits = std::move(limits), lowest]() mutable {
    if (!lowest) lowest = lowest_of(context, limits);
    if (!lowest) return kNone;
    const Sample temperature = context.number(input);
    return temperature.status == ReadStatus::ok ? Sample::of(*lowest - temperature.value) : temperature;
  };
}

Reader bind_rail(TreeContext& context, const ReadSource& source) {
  const std::optional<Channel> channel = channel_of(context, source.name);
  if (!channel) return {};
  return [&context, channel = *channel] {
    const Sample volts = context.number(channel.voltage);
    const Sample amperes = context.number(channel.current);
    if (volts.status != ReadStatus::ok) return volts;
    return amperes.status == ReadStatus::ok ? Sample::of(volts.value * amperes.value) : amperes;
  };
}

Reader bind_rail_voltage(TreeContext& context, const ReadSource& source) {
  const std::optional<Channel> channel = channel_of(context, source.name);
  if (!channel) return {};
  return [&context, file = channel->voltage] { return context.number(file); };
}

Reader bind_host_memory(TreeContext& context, const ReadSource& source) {
  if (!context.has_host_memory()) return {};
  return [&context, part = static_cast<HostPart>(source.argument)] {
    const auto& [memory, status] = context.host_memory();
    if (status != ReadStatus::ok) return Sample::miss(status);
    if (part == HostPart::size) return Sample::of(memory.total);
    return Sample::of(part == HostPart::free ? memory.available : memory.total - memory.available);
  };
}

Reader bind_asleep(TreeContext& context, const ReadSource& source) {
  const sysfs::File file(context.paths().index().root() + "/" + std::string(source.name));
  std::array<char, 32> buffer{};
  const sysfs::Bytes bytes = file.read(buffer);
  const std::string_view status = sysfs::trimmed({buffer.data(), bytes.size});
  if (status.empty() || status == "unsupported") return {};
  return [&context] { return Sample::of(context.awake() ? 0 : 1); };
}

}  // namespace gpumeter::tree::readers
