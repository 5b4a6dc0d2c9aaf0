#include "collectors/intel/readers/basic.hpp"

#include <algorithm>
#include <array>
#include <string>
#include <utility>
#include <vector>

#include "collectors/sources/aer.hpp"
#include "collectors/sources/counts.hpp"
#include "collectors/sources/pci.hpp"
#include "collectors/sources/sysfs.hpp"

namespace gpumeter::intel::readers {
namespace {

using Handle = std::optional<int>;  // from IntelContext::file()

/// Returns `read` as the row's reader unless the card lacks the value. A sleeping card is not read, since the
/// read would wake it.
template <class Read>
Reader probed(IntelContext& context, Read read) {
  if (context.awake() && read().status == ReadStatus::unsupported) return {};
  return read;
}

Sample sample_of(const std::optional<double>& value) noexcept {
  return value ? Sample::of(*value) : Sample::miss(ReadStatus::unsupported);
}

Reader bind_integer(IntelContext& context, const Handle& file) {
  if (!file) return {};
  return probed(context, [&context, file = *file] { return context.integer(file); });
}

/// True if the file holds 0. A sleeping card is not read.
bool is_zero(IntelContext& context, int file) {
  if (!context.awake()) return false;
  const Sample sample = context.integer(file);
  return sample.status == ReadStatus::ok && sample.value == 0;
}

/// Returns the lower one of the limits above which a sensor's card slows down or switches off; a limit of 0
/// is not set. `_max` is neither: xe reports 60 degrees for the package of a B-series card, which any load
/// passes.
Handle lowest_limit(IntelContext& context, const std::string& sensor) {
  Handle lowest;
  double value = 0;
  for (const char* const suffix : {"_crit", "_emergency"}) {
    const Handle limit = context.awake() ? context.constant_file(sensor + suffix) : std::nullopt;
    const Sample sample = limit ? context.integer(*limit) : Sample::miss(ReadStatus::unsupported);
    if (sample.status != ReadStatus::ok || sample.value <= 0 || (lowest && sample.value >= value)) continue;
    lowest = limit;
    value = sample.value;
  }
  return lowest;
}

/// The mean growth of a counter per second.
class MeanRate {
 public:
  /// `unsupported` until there are two readings, and after a reset of the counter.
  Sample advance(double count, Nanoseconds now) noexcept {
    const bool has_rate = last_at_ && now > *last_at_ && count >= last_;
    const Sample rate = has_rate ? Sample::of((count - last_) / to_seconds(now - *last_at_))
                                 : Sample::miss(ReadStatus::unsupported);
    last_ = count;
    last_at_ = now;
    return rate;
  }

 private:
  std::optional<Nanoseconds> last_at_;
  double last_ = 0;
};

/// The highest of several files; a file that is missing or fails counts as no value.
Sample highest(IntelContext& context, const std::vector<int>& files) noexcept {
  Sample highest = Sample::miss(ReadStatus::unsupported);
  for (const int file : files) {
    const Sample sample = context.integer(file);
    const bool is_better =
        sample.status == ReadStatus::ok && (highest.status != ReadStatus::ok || sample.value > highest.value);
    if (is_better || (sample.status != ReadStatus::ok && highest.status == ReadStatus::unsupported)) {
      highest = sample;
    }
  }
  return highest;
}

Reader bind_highest(IntelContext& context, const ReadSource& source, std::string Gt::*path) {
  const bool wants_media = static_cast<GtKind>(source.argument) == GtKind::media;
  std::vector<int> files;
  for (const Gt& gt : context.gts()) {
    const Handle file = gt.is_media == wants_media ? context.file_at(gt.*path) : std::nullopt;
    if (file) files.push_back(*file);
  }
  if (files.empty()) return {};
  return probed(context, [&context, files = std::move(files)] { return highest(context, files); });
}

std::optional<double> part_of(const memory::Regions& regions, MemoryPart part) noexcept {
  switch (part) {
    case MemoryPart::size:
      return regions.size;
    case MemoryPart::used:
      return regions.used;
    case MemoryPart::free:
      return regions.size && regions.used ? std::optional(*regions.size - *regions.used) : std::nullopt;
    case MemoryPart::visible_size:
      return regions.visible_size;
    case MemoryPart::visible_used:
      return regions.visible_used;
  }
  return std::nullopt;
}

}  // namespace

Reader bind_file(IntelContext& context, const ReadSource& source) {
  return bind_integer(context, context.file(source.name));
}

Reader bind_nonzero(IntelContext& context, const ReadSource& source) {
  const Handle file = context.file(source.name);
  if (!file || is_zero(context, *file)) return {};
  return bind_integer(context, file);
}

Reader bind_constant(IntelContext& context, const ReadSource& source) {
  return bind_integer(context, context.constant_file(source.name));
}

Reader bind_mean_power(IntelContext& context, const ReadSource& source) {
  const Handle file = context.file(source.name);
  if (!file || is_zero(context, *file)) return {};
  return [&context, file = *file, rate = MeanRate()]() mutable {
    const Sample energy = context.integer(file);
    return energy.status == ReadStatus::ok ? rate.advance(energy.value, context.now()) : energy;
  };
}

// The limits are constant: the firmware has them.
Reader bind_sensor(IntelContext& context, const ReadSource& source) {
  constexpr const char* kSuffixes[] = {"_input", "_max", "_crit", "_emergency"};
  const std::string name = std::string(source.name) + kSuffixes[source.argument];
  const bool is_input = static_cast<SensorPart>(source.argument) == SensorPart::input;
  return bind_integer(context, is_input ? context.file(name) : context.constant_file(name));
}

Reader bind_margin(IntelContext& context, const ReadSource& source) {
  const std::string sensor(source.name);
  const Handle limit = lowest_limit(context, sensor);
  const Handle input = limit ? context.file(sensor + "_input") : std::nullopt;
  if (!input) return {};
  return probed(context, [&context, limit = *limit, input = *input] {
    const Sample highest = context.integer(limit);
    const Sample now = context.integer(input);
    if (highest.status != ReadStatus::ok) return highest;
    return now.status == ReadStatus::ok ? Sample::of(highest.value - now.value) : now;
  });
}

Reader bind_fan_share(IntelContext& context, const ReadSource& source) {
  const std::string fan(source.name);
  const Handle speed = context.file(fan + "_input");
  const Handle most = context.constant_file(fan + "_max");
  if (!speed || !most || is_zero(context, *most)) return {};
  return probed(context, [&context, speed = *speed, most = *most] {
    const Sample now = context.integer(speed);
    const Sample full = context.integer(most);
    if (now.status != ReadStatus::ok) return now;
    return full.status == ReadStatus::ok ? Sample::of(now.value / full.value) : full;
  });
}

Reader bind_generation(IntelContext& context, const ReadSource& source) {
  const Handle file = context.lines_file(source.name);
  if (!file) return {};
  return probed(context, [&context, file = *file] {
    const TextCache::Text text = context.lines(file);
    if (text.status != ReadStatus::ok) return Sample::miss(text.status);
    const std::optional<int> known = pci::link_generation(text.text);
    return sample_of(known);  // "Unknown": the link is down
  });
}

// Uses the same reading as the rest of this pass.
Reader bind_asleep(IntelContext& context, const ReadSource& source) {
  const std::optional<std::string> path = context.path_of(source.name);
  const std::string status = path ? sysfs::read_text(*path) : "";
  if (status.empty() || status == "unsupported") return {};
  return [&context] { return Sample::of(context.awake() ? 0 : 1); };
}

Reader bind_aer(IntelContext& context, const ReadSource& source) {
  const Handle file = context.lines_file(source.name);
  if (!file) return {};
  return probed(context, [&context, file = *file, key = aer::kAerKinds[source.argument].key] {
    const TextCache::Text text = context.lines(file);
    return text.status == ReadStatus::ok ? sample_of(count_of(text.text, key)) : Sample::miss(text.status);
  });
}

Reader bind_clock(IntelContext& context, const ReadSource& source) {
  return bind_highest(context, source, &Gt::act_freq);
}

Reader bind_clock_limit(IntelContext& context, const ReadSource& source) {
  return bind_highest(context, source, &Gt::max_freq);
}

Reader bind_idle(IntelContext& context, const ReadSource& source) {
  const auto& gts = context.gts();
  const auto gt = std::ranges::find(gts, static_cast<int>(source.argument), &Gt::index);
  return gt != gts.end() ? bind_integer(context, context.file_at(gt->idle_ms)) : Reader();
}

Reader bind_throttle(IntelContext& context, const ReadSource& source) {
  const auto mask = static_cast<ThrottleMask>(source.argument);
  if ((context.throttle_reasons() & mask) == 0) return {};
  return probed(context, [&context, mask] {
    const Throttle::Reading& reading = context.throttle();
    if (reading.status != ReadStatus::ok) return Sample::miss(reading.status);
    return Sample::of((reading.active & mask) != 0 ? 1 : 0);
  });
}

Reader bind_errors(IntelContext& context, const ReadSource& source) {
  const std::size_t severity = source.argument >> 8;
  const std::size_t error = source.argument & 0xff;
  if (!context.has_errors() || !context.errors().values[severity][error]) return {};
  return [&context, severity, error] {
    const ras::Counts& counts = context.errors();
    return counts.status == ReadStatus::ok ? sample_of(counts.values[severity][error])
                                           : Sample::miss(counts.status);
  };
}

Reader bind_memory(IntelContext& context, const ReadSource& source) {
  if (!context.has_memory()) return {};
  return probed(context, [&context, part = static_cast<MemoryPart>(source.argument)] {
    const memory::Regions& regions = context.memory();
    return regions.status == ReadStatus::ok ? sample_of(part_of(regions, part))
                                            : Sample::miss(regions.status);
  });
}

}  // namespace gpumeter::intel::readers
