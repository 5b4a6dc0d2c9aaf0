#include "programs/service/service.hpp"

#include <curl/curl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "base/build_info.hpp"
#include "base/command_line.hpp"
#include "base/folder.hpp"
#include "base/log.hpp"
#include "base/mutex.hpp"
#include "base/paths.hpp"
#include "base/program.hpp"
#include "base/result.hpp"
#include "base/worker.hpp"
#include "collectors/api/machine.hpp"
#include "collectors/api/sampling.hpp"
#include "collectors/attribution/device_use.hpp"
#include "collectors/jobs/model/run_list.hpp"
#include "config/config.hpp"
#include "exporter/health/report.hpp"
#include "exporter/store/store.hpp"
#include "exporter/text/view.hpp"
#include "programs/client/http.hpp"
#include "systemd/notify.hpp"

namespace gpumeter::service {
namespace {

using Json = nlohmann::json;

constexpr client::Limits kLimits{std::chrono::seconds(1), std::chrono::seconds(3),
                                 std::size_t{64} << 20U};  // 100 000 processes, each on eight devices

std::string text_at(const Json& object, const char* key) {
  const Json& value = object.at(key);
  return value.is_null() ? std::string() : value.get<std::string>();
}

template <class Number>
std::optional<Number> number_at(const Json& object, const char* key) {
  const Json& value = object.at(key);
  return value.is_null() ? std::nullopt : std::optional(value.get<Number>());
}

workloads::ProcessId id_of(const Json& process) {
  return {process.at("pid").get<int>(), process.at("start_ticks").get<std::uint64_t>()};
}

jobs::RunName run_of(const Json& object) { return {text_at(object, "user"), text_at(object, "run")}; }

using Uses = std::map<std::string, workloads::DeviceUse>;  // by uuid

void take_process(const Json& process, Uses& uses) {
  workloads::ProcessUse use;
  use.id = id_of(process);
  use.uid = number_at<std::uint32_t>(process, "uid");
  use.group = text_at(process, "group");
  for (const Json& each : process.at("devices")) {
    const std::string uuid = text_at(each, "uuid");
    const std::optional<double> joules = number_at<double>(each, "joules");
    workloads::DeviceUse& device = uses[uuid];
    device.uuid = uuid;
    device.index = each.at("gpu").get<unsigned>();
    device.has_energy = joules.has_value();
    use.present = each.at("present").get<bool>();
    use.energy_joules = joules.value_or(0);
    use.busy_seconds = number_at<double>(each, "busy_seconds");
    device.processes.push_back(use);
  }
}

/// The library throws if a value is missing or has another type.
template <class Take>
Result<Done> read(std::string_view text, Take take) {
  try {
    take(Json::parse(text));
    return Done{};
  } catch (const Json::exception& problem) {
    return Error(std::string("the answer is not understood: ") + problem.what());
  }
}

/// A turn that takes longer is given up: systemd gets no ping any more and starts the program again. Each of
/// 32 servers may take 2 s to answer.
constexpr auto kLongestTurn = std::chrono::minutes(2);
/// TimeoutStopSec= is 10 s.
constexpr auto kStop = std::chrono::seconds(2);
constexpr auto kLastRecords = std::chrono::seconds(1);
constexpr auto kWatch = std::chrono::seconds(1);

struct Override {
  const char* flag;
  const char* key;
  const char* value;
  const char* help;
};
constexpr Override kOverrides[] = {
    {"--api", "paths.api", "SOCKET", "The daemon's socket for programs (default /run/gpumeter/api.sock)"},
    {"--path.sysfs", "paths.sysfs", "DIR", "Mount point of sysfs (default /sys)"},
    {"--path.procfs", "paths.procfs", "DIR", "Mount point of procfs (default /proc)"},
    {"--log.level", "log.level", "LEVEL", "debug, info (default), warn or error"},
    {"--log.format", "log.format", "FORMAT", "auto (default), logfmt or json"},
};

std::vector<Flag> flags() {
  constexpr std::string_view kGroup = "Options";
  std::vector<Flag> all = {
      {"--help", "", "Print this help", kGroup},
      {"--version", "", "Print the version", kGroup},
      {"--config.file", "FILE", "Configuration (default /etc/gpumeter/gpumeter.yaml)", kGroup},
      {"--pages", "FOLDER", "Folder of the daemon's pages (default /run/gpumeter/pages)", kGroup},
  };
  for (const Override& each : kOverrides) all.push_back({each.flag, each.value, each.help, kGroup});
  return all;
}

/// The program's section and those that all programs use; the rest of the file is the daemon's.
config::Loaded load(const Program& program, const CommandLine& line) {
  const options::Section* const sections[] = {program.part.options, &kPathSection, &kLogSection,
                                              &kSamplingSection};
  const config::Schema schema{.sections = sections, .is_partial = true};
  config::Loaded loaded = load_config(line.value("--config.file"), schema);
  const std::vector<config::Key> keys = config::keys(schema);
  for (const Override& each : kOverrides) {
    const std::string value = line.value(each.flag);
    if (value.empty()) continue;
    const auto complaint = config::set(keys, loaded.config, each.key, std::span(&value, 1));
    if (complaint) loaded.problems.push_back({each.flag, 0, "", complaint->text});
  }
  return loaded;
}

/// What a program knows of the machine: it asks the daemon on the API's socket, and publishes the answers as
/// the daemon's parts publish them there. While the daemon does not answer, its last answers stay. One
/// thread.
class Facts {
 public:
  Facts(const std::string& socket, Machine& machine, Log& log)
      : socket_(socket),
        client_({.url = "http://localhost", .host = {}, .socket = socket}, kLimits, "gpumeter"),
        machine_(machine),
        log_(log) {}

  /// Asks for the processes and the runs. Blocks for a few seconds at most. Logs when the daemon does not
  /// answer, and when it does again.
  void ask() {
    Result<Done> done = ask("/api/v1/processes", take_processes);
    if (done) done = ask("/api/v1/runs", take_runs);
    const std::string error = done ? "" : done.error().message();
    const std::string before = std::exchange(error_, error);
    if (error == before) return;
    if (error.empty()) return log_.info("the daemon answers again");
    log_.warn("the daemon does not answer; its last answer stays in force", {{"error", error}});
  }

 private:
  Result<Done> ask(const std::string& path, Result<Done> (*take)(std::string_view, Machine&)) {
    constexpr long kOk = 200;
    const auto answer = client_.get(path);
    if (client_.was_refused()) return Error("no daemon listens on " + socket_);
    if (!answer) return answer.error();
    if (answer->status != kOk) return Error(path + ": HTTP status " + std::to_string(answer->status));
    return take(answer->body, machine_);
  }

  const std::string socket_;
  client::HttpClient client_;
  Machine& machine_;
  Log& log_;
  std::string error_;  ///< of the last time; empty: it succeeded
};

/// An open part and what it works with. The thread of its turns owns it, except where stated.
class Opened {
 public:
  Opened(const PartEntry& entry, const config::Config& config, const std::string& pages, const Clock& clock,
         Log& log, const std::function<void()>& wake)
      : pages_(pages),
        name_(std::string(entry.name) + ".prom"),
        clock_(clock),
        log_(log),
        paths_(config.of<Paths>()),
        facts_(paths_.api, machine_, log),
        part_(entry.open({entry.name, store_, machine_, clock, log, paths_,
                          config.of<SamplingIntervals>().normal, config.at(*entry.options->type), wake})) {}

  bool is_enabled() const noexcept { return part_ != nullptr; }

  Nanoseconds turn() GPUMETER_EXCLUDES(mutex_) {
    facts_.ask();
    const Nanoseconds pause = part_->turn(clock_.monotonic());
    const Result<Done> written = write_page(pause);
    const std::string error = written ? "" : written.error().message();
    const std::string before = std::exchange(error_, error);
    if (error != before && error.empty()) log_.info("the page is written again");
    if (error != before && !error.empty())
      log_.warn("the page cannot be written; the program retries", {{"error", error}});
    return pause;
  }

  /// A turn that hangs does not write the page again. Any thread.
  void remove_page() GPUMETER_EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    is_removed_ = true;
    const Result<Folder> folder = Folder::open(pages_);
    if (!folder) return;
    [[maybe_unused]] const Result<Done> ignored = folder->remove(name_);
  }

 private:
  // Two turns may fail or be late before the page expires.
  Result<Done> write_page(Nanoseconds pause) GPUMETER_EXCLUDES(mutex_) {
    constexpr Nanoseconds kSlack = std::chrono::seconds(30);
    constexpr mode_t kEveryUser = 0644;
    const auto expires = std::chrono::ceil<std::chrono::seconds>(
        3 * std::min<Nanoseconds>(pause, std::chrono::hours(1)) + kSlack);
    const std::string text =
        "# gpumeter: expires " + std::to_string(expires.count()) + "s\n" + view_.render(Format::text).text;
    const MutexLock lock(mutex_);
    if (is_removed_) return Done{};
    const Result<Folder> folder = Folder::open(pages_);
    return folder ? folder->replace(name_, text, kEveryUser, Folder::Outlives::crash) : folder.error();
  }

  const std::string pages_, name_;
  const Clock& clock_;
  Log& log_;
  const Paths paths_;
  Store store_;
  TextView view_{store_};
  Machine machine_;
  Facts facts_;
  const std::shared_ptr<Part> part_;
  std::string error_;  ///< of the last write; empty: it succeeded
  Mutex mutex_;
  bool is_removed_ GPUMETER_GUARDED_BY(mutex_) = false;
};

/// The program while it serves. The main thread.
class Service {
 public:
  Service(const Program& program, const CommandLine& line, config::Config config)
      : program_(program),
        line_(line),
        config_(std::move(config)),
        log_(kClock, config_.of<Logging>(), is_journal() ? systemd::send_to_journal : nullptr) {}

  int run(Signals& signals) {
    log_.info("starting", {{"program", program_.name}, {"version", build::kVersion}});
    int code = open();
    systemd::notify_ready("");
    while (worker_ != nullptr) {
      const std::optional<int> signal = signals.wait(kWatch);
      if (signal == SIGTERM || signal == SIGINT) break;
      if (signal == SIGHUP) code = reload();
      if (worker_ != nullptr && !worker_->is_busy_for(kLongestTurn)) systemd::notify_watchdog();
    }
    systemd::notify_stopping();
    close();
    log_.info("stopped");
    left_behind_ = !log_.flush(kLastRecords) || left_behind_;
    return code;
  }
  /// A thread hangs; the process must end by _exit().
  bool left_behind() const noexcept { return left_behind_; }

 private:
  static bool is_journal() {
    return systemd::is_journal_stream(STDERR_FILENO, std::getenv("JOURNAL_STREAM"));
  }

  /// Returns the exit status if there is no worker then.
  int open() {
    auto worker = std::make_shared<Worker>(kClock);
    const auto wake = [weak = std::weak_ptr<Worker>(worker)] {
      if (const auto alive = weak.lock()) alive->wake();
    };
    const auto opened = std::make_shared<Opened>(
        program_.part, config_, line_.value("--pages", "/run/gpumeter/pages"), kClock, log_, wake);
    if (!opened->is_enabled()) {
      log_.info("the configuration does not enable it", {{"program", program_.name}});
      return 0;
    }
    const Result<Done> started =
        worker->start(std::string(program_.part.name), [opened] { return opened->turn(); });
    if (!started) {
      log_.error("cannot start", {{"error", started.error().message()}});
      return 1;
    }
    worker_ = std::move(worker);
    opened_ = opened;
    return 0;
  }

  void close() {
    if (worker_ == nullptr) return;
    if (!worker_->stop(kClock.monotonic() + kStop)) left_behind_ = true;
    worker_ = nullptr;
    opened_->remove_page();
    opened_ = nullptr;
  }

  /// A bad file changes nothing.
  int reload() {
    systemd::notify_reloading(std::chrono::duration_cast<std::chrono::microseconds>(kClock.monotonic()));
    config::Loaded loaded = load(program_, line_);
    int code = 0;
    for (const options::Problem& problem : loaded.problems) {
      log_.error("the configuration is rejected; the old one stays in force",
                 {{"error", to_string(problem)}});
    }
    if (loaded.problems.empty() && !(loaded.config == config_)) {
      close();
      config_ = std::move(loaded.config);
      log_.configure(config_.of<Logging>());
      code = open();
      log_.info("the configuration was reloaded");
    }
    systemd::notify_ready("");
    return code;
  }

  const Program& program_;
  const CommandLine& line_;
  static inline const SystemClock kClock;  ///< a call that is left behind reads it even after main()
  config::Config config_;
  Log log_;
  std::shared_ptr<Worker> worker_;  ///< null: the configuration does not enable the part
  std::shared_ptr<Opened> opened_;  ///< also owned by the thread of its turns
  bool left_behind_ = false;
};

int serve(const Program& program, std::span<const char* const> arguments) {
  const std::vector<Flag> known = flags();
  const CommandLine line(known, arguments);
  if (const auto exit = early_exit(line, program.name, program.purpose, known)) return print(*exit);
  config::Loaded loaded = load(program, line);
  for (const options::Problem& problem : loaded.problems)
    std::fprintf(stderr, "%s\n", to_string(problem).c_str());
  if (!loaded.problems.empty()) return 2;
  Result<Signals> signals = Signals::block();
  if (!signals || curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK) {
    std::fprintf(stderr, "%s: signals or libcurl cannot be set up\n", program.name);
    return 1;
  }
  Service service(program, line, std::move(loaded.config));
  const int code = service.run(*signals);
  if (service.left_behind()) _exit(code);
  return code;
}

}  // namespace

Result<Done> take_processes(std::string_view json, Machine& machine) {
  Uses uses;
  jobs::RunList runs = *machine.runs.get();
  runs.on_devices.clear();
  const Result<Done> done = read(json, [&](const Json& answer) {
    for (const Json& process : answer.at("processes")) {
      take_process(process, uses);
      if (jobs::RunName run = run_of(process); !run.run.empty()) {
        runs.on_devices.emplace(id_of(process), std::move(run));
      }
    }
  });
  if (!done) return done;
  std::vector<std::shared_ptr<const workloads::DeviceUse>> list;
  for (auto& [uuid, use] : uses) {
    list.push_back(std::make_shared<const workloads::DeviceUse>(std::move(use)));
  }
  machine.uses.publish(std::move(list));
  machine.runs.publish(std::move(runs));
  return Done{};
}

Result<Done> take_runs(std::string_view json, Machine& machine) {
  jobs::RunList runs;
  runs.on_devices = machine.runs.get()->on_devices;
  const Result<Done> done = read(json, [&](const Json& answer) {
    for (const Json& each : answer.at("runs")) {
      runs.runs.push_back(run_of(each));
      if (each.at("state") == "ended") runs.ended.push_back(runs.runs.back());
    }
    for (const Json& each : answer.at("processes")) {
      const workloads::ProcessId id = id_of(each);
      runs.processes.push_back({{each.at("uid").get<std::uint32_t>(), id.pid, id.start_ticks}, run_of(each)});
    }
  });
  if (done) machine.runs.publish(std::move(runs));
  return done;
}

config::Loaded load_config(const std::string& file, const config::Schema& schema) {
  constexpr const char* kDefault = "/etc/gpumeter/gpumeter.yaml";
  std::error_code ignored;
  if (!file.empty()) return config::load_file(file, schema);
  if (std::filesystem::exists(kDefault, ignored)) return config::load_file(kDefault, schema);
  return {config::defaults(schema)};
}

int run(const Program& program, int argc, char** argv) {
  open_closed_streams();
  try {
    return serve(program, std::span(argv, static_cast<std::size_t>(argc)).subspan(1));
  } catch (const std::exception& problem) {
    std::fprintf(stderr, "%s: %s\n", program.name, problem.what());
    return 1;
  }
}

}  // namespace gpumeter::service
