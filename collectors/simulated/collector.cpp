#include "collectors/simulated/collector.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

#include "base/clock.hpp"
#include "base/proc.hpp"
#include "base/text.hpp"
#include "collectors/sources/sysfs.hpp"
#include "collectors/table/device.hpp"

namespace gpumeter::simulated {
namespace {

/// Enough for more than a thousand pids; the rest of the file is not read.
constexpr std::size_t kMostText = 8192;

std::vector<int> pids_in(const std::string& path) {
  std::array<char, kMostText> buffer{};
  const sysfs::Bytes bytes = sysfs::File(path).read(buffer);
  std::string_view text(buffer.data(), bytes.size);
  std::vector<int> pids;
  while (!text.empty()) {
    const int pid = parse_number<int>(trimmed(take_until(text, '\n'))).value_or(0);
    if (pid > 0) pids.push_back(pid);
  }
  return pids;
}

bool lives(const std::string& procfs, int pid) {
  return proc::is_alive(sysfs::read_text(proc::path(procfs, pid, "stat")));
}

}  // namespace

Processes::Processes(std::shared_ptr<const Simulation> simulation, std::size_t device)
    : simulation_(std::move(simulation)),
      model_(simulation_->devices()[device]),
      listed_at_(simulation_->now()) {
  for (const ProcessOption& option : simulation_->processes()) {
    if (!option.device || static_cast<std::size_t>(*option.device) == device) options_.push_back(option);
  }
}

void Processes::list(Nanoseconds now, std::vector<DeviceProcess>& out) {
  const Nanoseconds time = std::max(simulation_->since_start(now), listed_at_);
  for (const ProcessOption& option : options_) add(option, to_seconds(time - listed_at_), out);
  const auto is_open = [](const DeviceProcess& process) { return !process.busy_seconds; };
  const auto sharing = static_cast<double>(std::count_if(out.begin(), out.end(), is_open));
  const double busy = model_.busy_seconds(time) - model_.busy_seconds(listed_at_);
  for (DeviceProcess& process : out) {
    if (is_open(process)) process.busy_seconds = busy / sharing;
  }
  listed_at_ = time;
}

void Processes::add(const ProcessOption& option, double seconds, std::vector<DeviceProcess>& out) const {
  const std::vector<int> pids = option.pid > 0 ? std::vector{option.pid} : pids_in(option.file);
  for (const int pid : pids) {
    const auto same = [pid](const DeviceProcess& process) { return process.pid == pid; };
    if (std::any_of(out.begin(), out.end(), same) || !lives(simulation_->procfs(), pid)) continue;
    DeviceProcess process{pid, option.memory_bytes, std::nullopt};
    if (option.busy) process.busy_seconds = *option.busy * seconds;
    out.push_back(process);
  }
}

namespace {

// How often a hung call reads the clock. The clock may be a test's and jump.
constexpr auto kHangStep = std::chrono::milliseconds(20);

}  // namespace

Simulation::Simulation(const Settings& settings, const Clock& clock, std::string procfs)
    : clock_(clock), start_(clock.monotonic()), procfs_(std::move(procfs)), processes_(settings.processes) {
  for (int device = 0; device < settings.devices; ++device) {
    devices_.emplace_back(settings.workload, settings.seed, device, settings.events);
  }
}

SimulatedContext::SimulatedContext(std::shared_ptr<const Simulation> simulation, std::size_t device)
    : simulation_(std::move(simulation)),
      model_(&simulation_->devices()[device]),
      processes_(simulation_, device) {}

Result<Done> SimulatedContext::open(const DeviceInfo& info) {
  if (!model_->timeline().holds(Event::Kind::lose, simulation_->now())) return Done{};
  return Error(info.uuid + ": lost by a simulated event");
}

Readiness SimulatedContext::begin_pass(const Pass& pass) noexcept {
  time_ = simulation_->since_start(pass.now);
  sit_out_hang();
  return model_->timeline().holds(Event::Kind::lose, time_) ? Readiness::gone : Readiness::awake;
}

ReadStatus SimulatedContext::processes(const Pass& pass, std::vector<DeviceProcess>& out) noexcept {
  processes_.list(pass.now, out);
  return ReadStatus::ok;
}

// As with a stuck driver, nothing interrupts the wait except the end of the event.
void SimulatedContext::sit_out_hang() noexcept {
  while (model_->timeline().holds(Event::Kind::hang, time_)) {
    std::this_thread::sleep_for(kHangStep);
    time_ = simulation_->now();
  }
}

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

std::optional<Error> read_option(std::string_view text, int device_count, ProcessOption& option) {
  std::string_view rest = text;
  std::string_view subject = take_until(rest, ',');
  const std::string_view device = take_until(subject, '=');
  if (device.empty() || subject.empty() || text.ends_with(',')) return Error(std::string(kForm));
  if (auto error = read_device(device, device_count, option)) return error;
  if (auto error = read_who(subject, option)) return error;
  while (!rest.empty()) {
    std::string_view value = take_until(rest, ',');
    const std::string_view name = take_until(value, '=');
    std::optional<Error> error = Error(std::string(kForm));
    if (name == "busy" && !option.busy) error = read_busy(value, option);
    if (name == "memory" && !option.memory_bytes) error = read_memory(value, option);
    if (error) return error;
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
  return std::unique_ptr<Collector>(std::make_unique<SimulatedCollector>(std::get<Settings>(read), context));
}

}  // namespace gpumeter::simulated
