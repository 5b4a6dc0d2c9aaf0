#include "collectors/amd/readers/basic.hpp"

#include <array>
#include <string>
#include <utility>

#include "collectors/amd/rows/kfd.hpp"
#include "collectors/sources/pci.hpp"
#include "collectors/sources/sysfs.hpp"

namespace gpumeter::amd::readers {
namespace {

// amdgpu passes on what its firmware says, which at full load can be a little over 100 (kernels of 2026 clamp
// it themselves). What is far over is no percentage and left to the row's range.
constexpr double kFull = 100;
constexpr double kOvershoot = 2 * kFull;

/// Gives the handle back unless the card says that it lacks the value. Asking a sleeping card would wake it.
Handle probed(AmdContext& context, Handle handle, Sample (*read)(AmdContext&, int) noexcept) {
  if (!handle || !context.awake()) return handle;
  return read(context, *handle).status == ReadStatus::unsupported ? std::nullopt : handle;
}

Handle keep(AmdContext& context, Handle left, Handle right) {
  if (!left || !right) return std::nullopt;
  return context.keep(AmdContext::Pair{*left, *right});
}

/// The two names of "a - b".
std::pair<std::string_view, std::string_view> split(std::string_view names, std::string_view separator) {
  const std::size_t at = names.find(separator);
  return {names.substr(0, at), names.substr(at + separator.size())};
}

/// The lower one of a sensor's limits. Drivers keep them in memory, so asking does not wake. One of 0 is not
/// set.
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

/// Both values of a pair by `combine`, or why one of them is missing.
template <class Combine>
Sample combined(AmdContext& context, int handle, Combine combine) noexcept {
  const AmdContext::Pair files = context.pair(handle);
  const Sample left = context.integer(files.left);
  const Sample right = context.integer(files.right);
  if (left.status != ReadStatus::ok) return left;
  if (right.status != ReadStatus::ok) return right;
  return Sample::of(combine(left.value, right.value));
}

}  // namespace

Handle bind_file(AmdContext& context, const ReadSource& source) {
  return probed(context, context.file(source.name), read_file);
}

Handle bind_power(AmdContext& context, const ReadSource& source) {
  const Handle handle = bind_file(context, source);
  if (!handle || context.chip() != Chip::mi200 || !context.awake()) return handle;
  const Sample watts = read_file(context, *handle);
  return watts.status == ReadStatus::ok && watts.value == 0 ? std::nullopt : handle;
}

Handle bind_constant(AmdContext& context, const ReadSource& source) {
  return probed(context, context.constant_file(source.name), read_file);
}

Sample read_file(AmdContext& context, int handle) noexcept { return context.integer(handle); }

Sample read_busy(AmdContext& context, int handle) noexcept {
  const Sample sample = context.integer(handle);
  const bool overshot = sample.value > kFull && sample.value <= kOvershoot;
  return overshot ? Sample{kFull, sample.status} : sample;
}

Handle bind_difference(AmdContext& context, const ReadSource& source) {
  const auto [left, right] = split(source.name, " - ");
  return probed(context, keep(context, context.constant_file(left), context.file(right)), read_difference);
}

Handle bind_margin(AmdContext& context, const ReadSource& source) {
  const std::string sensor(source.name);
  const Handle limit = lowest_limit(context, sensor);
  return probed(context, keep(context, limit, context.file(sensor + "_input")), read_difference);
}

Sample read_difference(AmdContext& context, int handle) noexcept {
  return combined(context, handle, [](double left, double right) { return left - right; });
}

Handle bind_quotient(AmdContext& context, const ReadSource& source) {
  const auto [left, right] = split(source.name, " / ");
  return probed(context, keep(context, context.file(left), context.constant_file(right)), read_quotient);
}

// A divisor of 0 gives an infinity or NaN, which is in no row's range.
Sample read_quotient(AmdContext& context, int handle) noexcept {
  return combined(context, handle, [](double left, double right) { return left / right; });
}

Handle bind_generation(AmdContext& context, const ReadSource& source) {
  return probed(context, context.text_file(source.name), read_generation);
}

Sample read_generation(AmdContext& context, int handle) noexcept {
  std::array<char, 32> buffer{};
  const sysfs::Bytes bytes = context.text(handle, buffer);
  if (bytes.status != ReadStatus::ok) return Sample::miss(bytes.status);
  const std::optional<int> known = pci::link_generation(sysfs::trimmed({buffer.data(), bytes.size}));
  return known ? Sample::of(*known) : Sample::miss(ReadStatus::unsupported);  // "Unknown": the link is down
}

Handle bind_asleep(AmdContext& context, const ReadSource& source) {
  const Handle handle = context.text_file(source.name);
  if (!handle) return std::nullopt;
  std::array<char, 32> buffer{};
  const sysfs::Bytes bytes = context.text(*handle, buffer);
  const std::string_view status = sysfs::trimmed({buffer.data(), bytes.size});
  return status.empty() || status == "unsupported" ? std::nullopt : handle;
}

// Of the same reading that this pass goes by.
Sample read_asleep(AmdContext& context, int) noexcept { return Sample::of(context.awake() ? 0 : 1); }

Handle bind_peak(AmdContext& context, const ReadSource& source) {
  const auto peak = static_cast<Peak>(source.argument);
  if (!context.kfd() || !peak_of(*context.kfd(), peak)) return std::nullopt;
  return static_cast<int>(peak);
}

Sample read_peak(AmdContext& context, int handle) noexcept {
  const std::optional<double> value = peak_of(*context.kfd(), static_cast<Peak>(handle));
  return value ? Sample::of(*value) : Sample::miss(ReadStatus::unsupported);
}

}  // namespace gpumeter::amd::readers
