#include "programs/nccl/settings.hpp"

#include <set>

#include "base/text.hpp"

namespace gpumeter::nccl {

using options::check_optional_path;
using options::check_port;
using options::check_users;
using options::checked;
using options::Complaint;
using options::Option;
using options::option;
using options::printable;
using options::Reload;

std::string to_string(const Version& version) {
  return std::to_string(version.major) + "." + std::to_string(version.minor) + "." +
         std::to_string(version.patch);
}

std::optional<Version> take_version(std::string_view& text) noexcept {
  const auto major = take_number<unsigned>(text);
  if (!major || !text.starts_with('.')) return std::nullopt;
  text.remove_prefix(1);
  const auto minor = take_number<unsigned>(text);
  if (!minor || !text.starts_with('.')) return std::nullopt;
  text.remove_prefix(1);
  const auto patch = take_number<unsigned>(text);
  if (!patch) return std::nullopt;
  return Version{*major, *minor, *patch};
}

std::optional<Version> parse_version(std::string_view text) noexcept {
  const auto version = take_version(text);
  return text.empty() ? version : std::nullopt;
}

/// Requires MAJOR.MINOR.PATCH that is not below the default.
Complaint parse_option(const std::string& text, Version& version) {
  const auto parsed = parse_version(text);
  if (!parsed || *parsed < kOldestAsked) {
    return "must be a version from 2.29.2 on, not \"" + printable(text) + "\"";
  }
  version = *parsed;
  return std::nullopt;
}
std::string text_of(const Version& version) { return to_string(version); }

namespace {

constexpr Duration kShortest = std::chrono::seconds(30);  // also Inspector's own minimum

Complaint check_interval(const Duration& interval) {
  if (interval >= kShortest) return std::nullopt;
  return "must be at least 30s: a query is work for all processes of the job";
}

Complaint check_inspector_interval(const Duration& interval) {
  if (interval >= kShortest) return std::nullopt;
  return "must be at least 30s: NCCL Inspector does not write Prometheus files more often";
}

/// Requires absolute paths, none twice.
Complaint check_dump_prefixes(const std::vector<std::string>& prefixes) {
  std::set<std::string> seen;
  for (const std::string& prefix : prefixes) {
    if (!prefix.starts_with('/')) {
      return "must have absolute paths, such as \"/var/log/torch/trace_rank_\", not \"" + printable(prefix) +
             "\"";
    }
    if (!seen.insert(prefix).second) {
      return "must list each prefix once, not \"" + printable(prefix) + "\" twice";
    }
  }
  return std::nullopt;
}

// One row an option.
// clang-format off
constexpr Option kOptions[] = {
    option<&Settings::enabled>("enabled", Reload::applies, "Ask the NCCL or RCCL of jobs about their ranks (ml_nccl_*), by its RAS socket on this machine. gpumeter-nccl.service does it (docs/nccl.md)."),
    option<&Settings::users>("users", Reload::applies, "Users whose jobs are asked, and whose files are read, by name or uid. Empty: all.", checked<check_users>),
    option<&Settings::interval>("interval", Reload::applies, "Time between two queries of a job, at least 30s. A query is work for all processes of the job, so machines without its first rank ask ten times less often.", checked<check_interval>),
    option<&Settings::port>("port", Reload::applies, "Port of NCCL's RAS on loopback, as in the jobs' NCCL_RAS_ADDR.", checked<check_port>),
    option<&Settings::oldest>("oldest", Reload::applies, "Oldest version of NCCL that is asked, at least 2.29.2: a query may crash jobs with earlier ones."),
    option<&Settings::inspector, &InspectorSettings::folder>("inspector", Reload::applies, "Folder of NCCL Inspector's Prometheus files (NCCL_INSPECTOR_DUMP_DIR of the jobs), which gpumeter-nccl-files.service reads also if nccl.enabled is false. Empty: none.", checked<check_optional_path>),
    option<&Settings::inspector, &InspectorSettings::interval>("inspector_interval", Reload::applies, "Time between two of Inspector's dumps (NCCL_INSPECTOR_DUMP_THREAD_INTERVAL_MICROSECONDS of the jobs), at least 30s. The values of a file leave the page after three of them.", checked<check_inspector_interval>),
    option<&Settings::flight_recorder>("flight_recorder", Reload::applies, "Prefixes of the dumps of PyTorch's flight recorder (TORCH_FR_DUMP_TEMP_FILE of the jobs), such as `/var/log/torch/trace_rank_`; the number of the rank follows. Empty: none.", checked<check_dump_prefixes>),
};
// clang-format on

}  // namespace

constinit const options::Section kSection = options::section("nccl", kOptions);

}  // namespace gpumeter::nccl
