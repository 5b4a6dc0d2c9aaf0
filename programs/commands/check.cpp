#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "base/json/scalars.hpp"
#include "base/program.hpp"
#include "base/text.hpp"
#include "daemon/cli/once.hpp"
#include "exporter/health/judge.hpp"
#include "exporter/json/api.hpp"
#include "programs/client/http.hpp"
#include "programs/commands/commands.hpp"

namespace gpumeter {
namespace {

using health::DeviceHealth;
using health::Finding;
using health::Report;
using health::Severity;
using health::State;

// The summary names this many GPUs and reasons; plugins' hosts cut long lines.
constexpr std::size_t kMostNamed = 4;

/// A check of another program, by the conditions that cover it.
struct SuiteCheck {
  std::string_view name;  ///< as that program names it
  /// Of conditions, separated by spaces. One that ends in * stands for all with its beginning.
  std::string_view reasons;
};

// docs/health-checks.md has the sources, and the checks that no condition covers.
constexpr std::string_view kCount = "devices_missing device_lost reads_failing";
constexpr std::string_view kThrottling = "hardware_throttling thermal_throttling power_brake";

constexpr SuiteCheck kNvidia[] = {
    {"gpu_count", kCount},
    {"nvlink_active", "links_down"},
    {"nvlink_bandwidth_count_speed", "links_down link_slow"},
    {"NVLinkFabric", "fabric_failed"},
    {"NVLinkFabricHealth", "fabric_unhealthy"},
    {"gpu_xid_46", "xid_46"},
    {"gpu_xid_48", "xid_48"},
    {"gpu_xid_warning", "xid_*"},
    {"gpu_xid_154", "recovery_action"},
};

constexpr SuiteCheck kGpud[] = {
    {"accelerator-nvidia-gpu-counts", kCount},
    {"accelerator-nvidia-ecc", "memory_errors_uncorrected memory_errors_corrected"},
    {"accelerator-nvidia-remapped-rows", "row_remap_pending row_remap_failed"},
    {"accelerator-nvidia-xid", "xid_*"},
    {"accelerator-nvidia-nvlink", "links_down link_errors fabric_unhealthy"},
    {"accelerator-nvidia-fabric-manager", "fabric_failed"},
    {"accelerator-nvidia-hw-slowdown", kThrottling},
    {"accelerator-nvidia-temperature", "temperature_near_limit"},
    {"accelerator-nvidia-power", "reads_failing"},
    {"accelerator-nvidia-clock-speed", "clocks_low"},
    {"accelerator-nvidia-memory", "memory_nearly_full"},
};

constexpr SuiteCheck kAzure[] = {
    {"check_gpu_count", kCount},
    {"check_nvsmi_healthmon", "device_lost reads_failing"},
    {"check_gpu_xid", "xid_*"},
    {"check_gpu_ecc",
     "row_remap_pending row_remap_failed memory_errors_uncorrected memory_errors_corrected "
     "memory_unrepairable retired_pages_pending"},
    {"check_gpu_clock_throttling", kThrottling},
    {"check_nvlink_status", "links_down"},
    {"check_gpu_xgmi", "link_errors"},
};

struct Suite {
  std::string_view name;
  std::span<const SuiteCheck> checks;
};
constexpr Suite kSuites[] = {{"nvidia", kNvidia}, {"gpud", kGpud}, {"azure", kAzure}};

std::size_t count_of(const Report& report, State state) {
  return static_cast<std::size_t>(std::ranges::count(report.devices, state, &DeviceHealth::state));
}

std::string reason_text(const Finding& finding) {
  return finding.reason + " (" + std::string(to_string(finding.action)) + ")";
}

std::string joined(const std::vector<std::string>& items) {
  std::string text;
  for (std::size_t i = 0; i < std::min(items.size(), kMostNamed); ++i) text += (i > 0 ? ", " : "") + items[i];
  const std::size_t rest = items.size() - std::min(items.size(), kMostNamed);
  return text + (rest > 0 ? " and " + std::to_string(rest) + " more" : "");
}

/// "GPU 0 xid_79 (reboot)" for the GPUs in this state; findings are sorted by severity.
std::vector<std::string> named(const Report& report, State state) {
  std::vector<std::string> names;
  for (const DeviceHealth& device : report.devices) {
    if (device.state != state) continue;
    const std::string reason = device.findings.empty() ? "" : " " + reason_text(device.findings.front());
    names.push_back("GPU " + device.gpu + reason);
  }
  return names;
}

std::string gpus(std::size_t count) { return std::to_string(count) + (count == 1 ? " GPU" : " GPUs"); }

std::string part(const Report& report, State state) {
  const std::vector<std::string> names = named(report, state);
  if (names.empty()) return {};
  return std::to_string(names.size()) + " of " + gpus(report.devices.size()) + " " +
         std::string(to_string(state)) + ": " + joined(names);
}

std::string machine_part(const Report& report) {
  std::vector<std::string> reasons;
  for (const Finding& finding : report.machine) reasons.push_back(reason_text(finding));
  return reasons.empty() ? "" : "machine: " + joined(reasons);
}

std::string summary(const Report& report) {
  std::string text;
  for (const std::string& each : {part(report, State::failed), part(report, State::degraded),
                                  part(report, State::unknown), machine_part(report)}) {
    if (!each.empty()) text += (text.empty() ? "" : "; ") + each;
  }
  if (!text.empty()) return text;
  return report.devices.empty() ? "no GPU is known" : gpus(report.devices.size()) + " ok";
}

/// The plugins' hosts split the text at a bar.
std::string without_bars(std::string text) {
  std::ranges::replace(text, '|', '/');
  return text;
}

std::string line_of(const std::string& whose, const Finding& finding, Nanoseconds now) {
  const auto age = static_cast<long>(std::max(0.0, to_seconds(now - finding.since)));
  return whose + " " + std::string(to_string(finding.severity)) + ": " + finding.reason + ": " +
         finding.text + "; action: " + std::string(to_string(finding.action)) + "; for " +
         std::to_string(age) + " s\n";
}

std::string lines_of(const DeviceHealth& device, Nanoseconds now) {
  const std::string whose = "GPU " + device.gpu + " (" + device.model + ", " + device.uuid + ")";
  std::string text;
  for (const Finding& finding : device.findings) text += line_of(whose, finding, now);
  for (const health::Advice& advice : device.advice)
    text += whose + " advisory: " + advice.name + ": " + advice.text + " (" + advice.source + ")\n";
  if (device.state == State::unknown) text += whose + " unknown: it is not read\n";
  return text;
}

std::string_view word(CheckStatus status) {
  constexpr std::string_view kWords[] = {"OK", "WARNING", "CRITICAL", "UNKNOWN"};
  return kWords[static_cast<std::size_t>(status)];
}

std::string first_line(CheckStatus status, const std::string& text, const std::string& counts) {
  return without_bars("GPU " + std::string(word(status)) + " - " + text) + counts + "\n";
}

// The daemon answers from memory.
constexpr auto kPatience = std::chrono::seconds(5);
// A daemon without any GPU answers after this time.
constexpr auto kFirstJudgement = std::chrono::seconds(3);
constexpr auto kBetweenQuestions = std::chrono::milliseconds(250);
// An answer for 4096 GPUs with some findings each has less.
constexpr std::size_t kMostBytes = std::size_t{8} << 20;
// For own passes: a driver that initialises 8 GPUs first may need 15 s.
constexpr unsigned kWholeSeconds = 30;

constexpr std::string_view kTimeOver =
    "GPU UNKNOWN - no result within 30 s: a driver or the network does not answer\n";

// Calls only functions that are allowed in a signal handler. Exit 3 is "unknown".
extern "C" void end_without_result(int) {
  [[maybe_unused]] const ssize_t ignored = write(STDOUT_FILENO, kTimeOver.data(), kTimeOver.size());
  _exit(3);
}

void limit_time() {
  struct sigaction action {};
  action.sa_handler = end_without_result;
  sigaction(SIGALRM, &action, nullptr);
  alarm(kWholeSeconds);
}

health::Report judge_here(const config::Config& config) {
  health::Report report;
  sample_once(config, 2, [&report](const Store& store) {
    report = health::Judge(health::Judge::History::none).judge(store, SystemClock().monotonic());
  });
  return report;
}

std::string no_user(const client::Address& address) {
  if (address.login.user.empty()) return " requires a user (web.config_file): check --login-file";
  return " refuses the user " + address.login.user;
}

/// nullopt: no daemon listens there.
Result<std::optional<health::Report>> ask_daemon(const client::Address& address) {
  const std::string& url = address.text;
  client::HttpClient client(address, {kPatience, kPatience, kMostBytes}, "gpumeter-commands");
  const Result<client::HttpClient::Answer> answer = client.get("/api/v1/health");
  if (!answer && client.was_refused()) return std::optional<health::Report>();
  if (!answer) return answer.error().with(url);
  if (answer->status == 404) return Error(url + " has no /api/v1/health; is it an older gpumeter?");
  if (answer->status == 401) return Error(url + no_user(address));
  if (answer->status != 200) return Error(url + " answers with status " + std::to_string(answer->status));
  Result<health::Report> report = parse_health_json(answer->body, SystemClock().monotonic());
  if (!report) return report.error().with(url);
  return std::optional(*std::move(report));
}

/// Waits for the first judgement of a daemon that has just started, as after a restart of the service.
Result<std::optional<health::Report>> ask_patiently(const client::Address& address) {
  const auto until = std::chrono::steady_clock::now() + kFirstJudgement;
  while (true) {
    Result<std::optional<health::Report>> asked = ask_daemon(address);
    const bool is_judged = !asked || !*asked || !(*asked)->devices.empty() || !(*asked)->machine.empty();
    if (is_judged || std::chrono::steady_clock::now() >= until) return asked;
    std::this_thread::sleep_for(kBetweenQuestions);
  }
}

Result<health::Report> report_of(const CheckOptions& options, const config::Config& config) {
  const Result<client::Address> address = options.daemon.address(config);
  if (!address) return address.error();
  Result<std::optional<health::Report>> asked = ask_patiently(*address);
  if (!asked) return asked.error();
  if (*asked) return **std::move(asked);
  if (!options.daemon.url.empty()) return Error(address->text + ": no daemon listens there");
  return judge_here(config);
}

bool is_covered_by(const SuiteCheck& check, std::string_view reason) {
  for (std::string_view rest = check.reasons; !rest.empty();) {
    std::string_view each = take_until(rest, ' ');
    const bool is_beginning = each.ends_with('*');
    if (is_beginning) each.remove_suffix(1);
    if (is_beginning ? reason.starts_with(each) : reason == each) return true;
  }
  return false;
}

/// Keeps the findings that the suite's checks are about. A GPU that is not read stays unknown.
void keep_only(const Suite& suite, Report& report) {
  const auto is_other = [&suite](const Finding& finding) {
    return std::ranges::none_of(suite.checks,
                                [&](const SuiteCheck& each) { return is_covered_by(each, finding.reason); });
  };
  std::erase_if(report.machine, is_other);
  report.state =
      report.devices.empty() && report.machine.empty() ? State::unknown : health::state_of(report.machine);
  for (DeviceHealth& device : report.devices) {
    std::erase_if(device.findings, is_other);
    if (device.state != State::unknown) device.state = health::state_of(device.findings);
    report.state = std::max(report.state, device.state);
  }
}

/// "check gpu_count: failed: GPU 1 device_lost (reboot); by devices_missing device_lost reads_failing".
std::string line_of(const SuiteCheck& check, const Report& report) {
  State state = report.devices.empty() ? State::unknown : State::ok;
  std::vector<std::string> found;
  const auto add = [&](const std::string& whose, const std::vector<Finding>& findings) {
    for (const Finding& finding : findings) {
      if (!is_covered_by(check, finding.reason)) continue;
      state = std::max(state, health::state_of(std::span(&finding, 1)));
      found.push_back(whose + " " + reason_text(finding));
    }
  };
  add("machine", report.machine);
  for (const DeviceHealth& device : report.devices) {
    if (device.state == State::unknown) state = std::max(state, State::unknown);
    add("GPU " + device.gpu, device.findings);
  }
  return "check " + std::string(check.name) + ": " + std::string(to_string(state)) +
         (found.empty() ? "" : ": " + joined(found)) + "; by " + std::string(check.reasons) + "\n";
}

/// The text of a report of the suite's findings, with a line for each check after the first line.
std::string suite_text(const Suite& suite, const Report& report, CheckStatus status) {
  std::string checks;
  for (const SuiteCheck& each : suite.checks) checks += without_bars(line_of(each, report));
  std::string text = check_text(report, status);
  return text.insert(text.find('\n') + 1, checks);
}

/// Keeps one GPU, and nothing that belongs to the machine.
bool keep_only(unsigned gpu, health::Report& report) {
  std::erase_if(report.devices, [name = std::to_string(gpu)](const auto& each) { return each.gpu != name; });
  report.machine.clear();
  report.state = report.devices.empty() ? health::State::unknown : report.devices.front().state;
  return !report.devices.empty();
}

}  // namespace

CheckStatus check_status(const Report& report, FailOn fail_on) {
  const auto is_there = [&](Severity severity, State state) {
    return count_of(report, state) > 0 ||
           std::ranges::find(report.machine, severity, &Finding::severity) != report.machine.end();
  };
  if (is_there(Severity::failed, State::failed)) return CheckStatus::critical;
  if (is_there(Severity::degraded, State::degraded) && fail_on != FailOn::failed) {
    return fail_on == FailOn::degraded ? CheckStatus::critical : CheckStatus::warning;
  }
  if (report.devices.empty() || count_of(report, State::unknown) > 0) return CheckStatus::unknown;
  return CheckStatus::ok;
}

std::string check_text(const Report& report, CheckStatus status) {
  std::string counts = " |";
  for (const State state : {State::ok, State::degraded, State::failed, State::unknown}) {
    counts += " " + std::string(to_string(state)) + "=" + std::to_string(count_of(report, state));
  }
  std::string text = first_line(status, summary(report), counts);
  for (const Finding& finding : report.machine) text += without_bars(line_of("machine", finding, report.at));
  for (const DeviceHealth& device : report.devices) text += without_bars(lines_of(device, report.at));
  return text;
}

std::vector<std::string> suite_names() {
  std::vector<std::string> names;
  for (const Suite& suite : kSuites) names.emplace_back(suite.name);
  return names;
}

std::string unknown_text(const std::string& reason) { return first_line(CheckStatus::unknown, reason, ""); }

int check_is_unknown(const CheckOptions& options, const std::string& reason) {
  const std::string json = "{\"state\":\"unknown\",\"error\":" + json_quoted(reason) + "}\n";
  print(options.json ? json : unknown_text(reason));
  return static_cast<int>(CheckStatus::unknown);
}

int check(const CheckOptions& options, const config::Config& config) {
  limit_time();
  Result<health::Report> report = report_of(options, config);
  if (!report) return check_is_unknown(options, report.error().message());
  if (options.gpu && !keep_only(*options.gpu, *report)) {
    return check_is_unknown(options, "there is no GPU " + std::to_string(*options.gpu));
  }
  const auto* const suite = std::ranges::find(kSuites, options.suite, &Suite::name);
  const bool has_suite = suite != std::end(kSuites);
  if (has_suite) keep_only(*suite, *report);
  const CheckStatus status = check_status(*report, options.fail_on);
  const std::string text = has_suite ? suite_text(*suite, *report, status) : check_text(*report, status);
  const int printed = print(options.json ? health_json(*report, report->at) : text);
  return printed == 0 ? static_cast<int>(status) : static_cast<int>(CheckStatus::unknown);
}

}  // namespace gpumeter
