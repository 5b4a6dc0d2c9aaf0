#include "collectors/simulated/options.hpp"

#include <optional>
#include <string_view>
#include <utility>

#include "base/duration.hpp"
#include "base/text.hpp"

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

/// Reads the keys one by one and keeps the first problem; what is refused reads as zero or as nothing.
class Reader {
 public:
  explicit Reader(const Options& options) : options_(options) {}

  const std::optional<OptionProblem>& problem() const noexcept { return problem_; }

  // NaN is in no range.
  template <class Number>
  Number number_in(const std::string& key, Number least, Number most, const std::string& want) {
    const std::string_view text = text_of(options_, key);
    const std::optional<Number> number = parse_number<Number>(text);
    if (number && *number >= least && *number <= most) return *number;
    refuse(key, text, want);
    return {};
  }

  Nanoseconds period() {
    // Below a millisecond a wave is nothing that a meter of whole seconds could be tried with.
    constexpr Nanoseconds kShortest = std::chrono::milliseconds(1);
    const std::string_view text = text_of(options_, "period");
    const std::optional<Nanoseconds> period = parse_duration(text);
    if (period && *period >= kShortest) return *period;
    refuse("period", text, "1ms or more");
    return {};
  }

  /// The elements of a list, each by `parse`, with the number of devices.
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

}  // namespace

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

Result<Settings> parse_settings(const Options& options) {
  auto read = read_settings(options);
  if (auto* settings = std::get_if<Settings>(&read)) return std::move(*settings);
  const auto& problem = std::get<OptionProblem>(read);
  return Error("collectors.simulated." + problem.key + ": " + problem.text);
}

}  // namespace gpumeter::simulated
