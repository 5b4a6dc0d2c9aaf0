#include "daemon/cli/check_text.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <string_view>
#include <vector>

namespace gpumeter {
namespace {

using health::DeviceHealth;
using health::Finding;
using health::Report;
using health::Severity;
using health::State;

// The summary names this many GPUs and reasons; plugins' hosts cut long lines.
constexpr std::size_t kMostNamed = 4;

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

std::string unknown_text(const std::string& reason) { return first_line(CheckStatus::unknown, reason, ""); }

}  // namespace gpumeter
