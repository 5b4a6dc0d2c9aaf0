#include "collectors/simulated/collector.hpp"

#include <cmath>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/clock.hpp"
#include "base/text.hpp"
#include "collectors/simulated/context.hpp"
#include "collectors/table/device.hpp"

namespace gpumeter::simulated {
namespace {

using Options = std::map<std::string, std::vector<std::string>>;

std::string_view fallback_of(std::string_view key) {
  for (const CollectorOption& option : kOptions) {
    if (option.name == key) return option.fallback;
  }
  return {};
}

std::string_view text_of(const Options& options, const std::string& key) {
  const auto found = options.find(key);
  return found == options.end() || found->second.empty() ? fallback_of(key) : found->second.front();
}

/// Reads the keys one by one and keeps the first problem. An invalid value reads as zero or empty.
class Reader {
 public:
  explicit Reader(const Options& options) : options_(options) {}

  const std::optional<OptionProblem>& problem() const noexcept { return problem_; }

  // The comparisons reject NaN.
  template <class Number>
  Number number_in(const std::string& key, Number least, Number most, const std::string& want) {
    const std::string_view text = text_of(options_, key);
    const std::optional<Number> number = parse_number<Number>(text);
    if (number && *number >= least && *number <= most) return *number;
    refuse(key, text, want);
    return {};
  }

  Nanoseconds period() {
    // A meter that samples in whole seconds cannot resolve a shorter wave.
    constexpr Nanoseconds kShortest = std::chrono::milliseconds(1);
    const std::string_view text = text_of(options_, "period");
    const std::optional<Nanoseconds> period = parse_duration(text);
    if (period && *period >= kShortest) return *period;
    refuse("period", text, "1ms or more");
    return {};
  }

  /// Parses the elements of a list; `parse` also receives the number of devices.
  template <class T>
  std::vector<T> list(const std::string& key, int device_count,
                      Result<T> (*parse)(std::string_view text, int device_count)) {
    std::vector<T> parsed;
    const auto found = options_.find(key);
    if (found == options_.end()) return parsed;
    for (std::size_t element = 0; element < found->second.size(); ++element) {
      Result<T> value = parse(found->second[element], device_count);
      if (value) {
        parsed.push_back(*std::move(value));
      } else {
        note({key, element, value.error().message()});
      }
    }
    return parsed;
  }

 private:
  void refuse(const std::string& key, std::string_view text, const std::string& want) {
    note({key, 0, "must be " + want + ", not \"" + std::string(text) + '"'});
  }
  void note(OptionProblem problem) {
    if (!problem_) problem_ = std::move(problem);
  }

  const Options& options_;
  std::optional<OptionProblem> problem_;
};

Workload workload_of(Reader& reader) {
  constexpr double kMostWatts = 1e6;
  Workload workload;
  workload.period = reader.period();
  workload.duty = reader.number_in("duty", 0.0, 1.0, "a number from 0 to 1");
  workload.idle_watts = reader.number_in("idle_power", 0.0, kMostWatts, "watts from 0 to 1000000");
  workload.busy_watts =
      reader.number_in("busy_power", workload.idle_watts, kMostWatts, "watts from idle_power to 1000000");
  return workload;
}

constexpr std::string_view kForm =
    R"(must be "GPU=WHO[,busy=RATIO][,memory=BYTES]", such as "0=/run/pids,busy=0.5,memory=2GiB")";
constexpr std::pair<std::string_view, double> kUnits[] = {
    {"KiB", 0x1p10}, {"MiB", 0x1p20}, {"GiB", 0x1p30}, {"", 1}};

std::optional<Error> read_device(std::string_view text, int device_count, ProcessOption& option) {
  if (text == "*") return std::nullopt;
  option.device = parse_number<int>(text);
  if (option.device && *option.device >= 0 && *option.device < device_count) return std::nullopt;
  return Error("no device " + quoted(text) + "; must be * or a number below " + std::to_string(device_count));
}

std::optional<Error> read_who(std::string_view text, ProcessOption& option) {
  if (text.starts_with('/')) {
    option.file = text;
    return std::nullopt;
  }
  option.pid = parse_number<int>(text).value_or(0);
  if (option.pid > 0) return std::nullopt;
  return Error(quoted(text) + " is neither a pid nor an absolute path");
}

std::optional<Error> read_busy(std::string_view text, ProcessOption& option) {
  option.busy = parse_number<double>(text);
  if (option.busy && *option.busy >= 0 && *option.busy <= 1) return std::nullopt;
  return Error("busy must be a number from 0 to 1, not " + quoted(text));
}

std::optional<Error> read_memory(std::string_view text, ProcessOption& option) {
  constexpr double kMost = 0x1p50;  // a pebibyte; up to there, doubles count bytes exactly
  for (const auto& [unit, bytes] : kUnits) {
    if (!text.ends_with(unit)) continue;
    const auto number = parse_number<double>(text.substr(0, text.size() - unit.size()));
    if (!number || !(*number >= 0) || *number * bytes > kMost) break;
    option.memory_bytes = std::floor(*number * bytes);
    return std::nullopt;
  }
  return Error("memory must be bytes, or a number with KiB, MiB or GiB, not " + quoted(text));
}

std::optional<Error> read_trait(std::string_view text, ProcessOption& option) {
  const std::string_view name = take_until(text, '=');
  if (name == "busy" && !option.busy) return read_busy(text, option);
  if (name == "memory" && !option.memory_bytes) return read_memory(text, option);
  return Error(std::string(kForm));
}

std::optional<Error> read_option(std::string_view text, int device_count, ProcessOption& option) {
  std::string_view rest = text;
  std::string_view subject = take_until(rest, ',');
  const bool ends_with_comma = text.ends_with(',');
  const std::string_view device = take_until(subject, '=');
  if (device.empty() || subject.empty() || ends_with_comma) return Error(std::string(kForm));
  if (auto error = read_device(device, device_count, option)) return error;
  if (auto error = read_who(subject, option)) return error;
  while (!rest.empty()) {
    if (auto error = read_trait(take_until(rest, ','), option)) return error;
  }
  return std::nullopt;
}

}  // namespace

Result<ProcessOption> parse_process_option(std::string_view text, int device_count) {
  ProcessOption option;
  if (const auto error = read_option(text, device_count, option)) return error->with(quoted(text));
  return option;
}

std::variant<Settings, OptionProblem> read_settings(const Options& options) {
  Reader reader(options);
  Settings settings;
  settings.devices = reader.number_in("devices", 1, static_cast<int>(kMostDevices),
                                      "a whole number from 1 to " + std::to_string(kMostDevices));
  settings.seed = reader.number_in("seed", std::uint64_t{0}, UINT64_MAX, "a whole number, 0 or more");
  settings.workload = workload_of(reader);
  settings.events = reader.list("events", settings.devices, parse_event);
  settings.processes = reader.list("processes", settings.devices, parse_process_option);
  if (reader.problem()) return *reader.problem();
  return settings;
}

namespace {

// No value may be mistaken for that of a real card.
DeviceInfo info_of(std::uint64_t seed, std::size_t device, bool has_other_driver) {
  const std::string number = std::to_string(device);
  const std::string uuid = "SIM-" + std::to_string(seed) + "-" + number;
  DeviceInfo info;
  info.uuid = uuid;
  info.vendor = "simulated";
  info.model = "Simulated GPU";
  info.serial = "serial-of-" + uuid;
  info.driver = "simulated";
  info.driver_version = has_other_driver ? "simulated, another" : "simulated";
  info.vbios_version = "simulated";
  info.firmware_version = "simulated";
  info.architecture = "simulated";
  info.vendor_index = number;
  info.compute_units = 132;
  info.source = number;
  return info;
}

class SimulatedCollector final : public Collector {
 public:
  SimulatedCollector(const Settings& settings, const CollectorContext& context)
      : seed_(settings.seed),
        simulation_(std::make_shared<const Simulation>(settings, *context.clock, context.procfs_root)) {}

  Result<Discovery> discover() override {
    Discovery found;
    const Nanoseconds now = simulation_->now();
    for (std::size_t i = 0; i < simulation_->devices().size(); ++i) {
      const Timeline& timeline = simulation_->devices()[i].timeline();
      if (timeline.holds(Event::Kind::lose, now)) continue;
      found.devices.push_back(info_of(seed_, i, timeline.holds(Event::Kind::driver, now)));
    }
    found.notes.emplace_back("these GPUs are simulated: their numbers are made up");
    return found;
  }

  // `info` comes from discover(), so its source is the number of a device.
  std::unique_ptr<Device> device(const DeviceInfo& info) override {
    const std::size_t number = parse_number<std::size_t>(info.source).value_or(0);
    return std::make_unique<ListingDevice<SimulatedContext>>(SimulatedContext(simulation_, number),
                                                             simulated_rows());
  }

 private:
  const std::uint64_t seed_;
  const std::shared_ptr<const Simulation> simulation_;
};

}  // namespace

std::optional<OptionProblem> check_simulated(const CollectorContext& context) {
  const auto read = read_settings(context.options);
  if (const auto* problem = std::get_if<OptionProblem>(&read)) return *problem;
  return std::nullopt;
}

Result<std::unique_ptr<Collector>> open_simulated(const CollectorContext& context) {
  const auto read = read_settings(context.options);
  if (const auto* problem = std::get_if<OptionProblem>(&read))
    return Error("collectors.simulated." + problem->key + ": " + problem->text);
  std::unique_ptr<Collector> collector =
      std::make_unique<SimulatedCollector>(std::get<Settings>(read), context);
  return collector;
}

}  // namespace gpumeter::simulated
