#include "collectors/attribution/names/manual_file.hpp"

#include <algorithm>
#include <iterator>
#include <utility>
#include <vector>

#include "base/folder.hpp"
#include "base/text.hpp"
#include "collectors/attribution/cgroup/slurm.hpp"
#include "collectors/attribution/cgroup/workload_of.hpp"

namespace gpumeter::manual {
namespace {

using workloads::DeviceSelector;

bool is_letter_or_digit(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

// "0000:0c:00.0"; uuids have no dot after a colon.
bool is_pci_address(const std::string& text) {
  const std::size_t colon = text.rfind(':');
  return colon != std::string::npos && text.find('.', colon) != std::string::npos;
}

void take(std::string_view name, std::string_view value, Grant& grant) {
  if (name == "WORKLOAD" && is_name(value)) grant.workload.name = value;
  if (name == "KIND") grant.workload.kind = cgroup::kKindNames.find(value).value_or(cgroup::Kind::other);
  if (name == "USER") grant.user = cgroup::label_text(value);
  if (name == "SINCE") {
    const auto seconds = parse_number<std::uint32_t>(value);
    if (seconds) grant.since = std::chrono::seconds(*seconds);
  }
  if (name == "GPU" && !value.empty() && grant.gpus.size() < kMostGpus) {
    std::string gpu = cgroup::label_text(value);
    if (std::ranges::find(grant.gpus, gpu) == grant.gpus.end()) grant.gpus.push_back(std::move(gpu));
  }
}

}  // namespace

bool is_name(std::string_view text) {
  constexpr std::string_view kOthers = "._@:+-";
  const auto is_allowed = [&](char c) {
    return is_letter_or_digit(c) || kOthers.find(c) != std::string_view::npos;
  };
  return !text.empty() && text.size() <= kLongestName && is_letter_or_digit(text.front()) &&
         std::ranges::all_of(text, is_allowed);
}

std::string file_name(const workloads::WorkloadId& workload) {
  return std::string(to_string(workload.kind)) + ":" + workload.name;
}

std::string to_text(const Grant& grant) {
  std::string text = "WORKLOAD=" + grant.workload.name + "\n";
  text += "KIND=" + std::string(to_string(grant.workload.kind)) + "\n";
  if (!grant.user.empty()) text += "USER=" + grant.user + "\n";
  if (grant.since) text += "SINCE=" + std::to_string(grant.since->count()) + "\n";
  for (const std::string& gpu : grant.gpus) text += "GPU=" + gpu + "\n";
  return text;
}

std::optional<Grant> parse_grant(std::string_view text) {
  Grant grant;
  grant.workload.kind = cgroup::Kind::other;
  text = text.substr(0, kMostBytes);
  while (!text.empty()) {
    std::string_view line = take_until(text, '\n');
    const std::string_view name = take_until(line, '=');
    take(name, line, grant);
  }
  return grant.workload.name.empty() ? std::nullopt : std::optional(std::move(grant));
}

std::vector<workloads::Allocation> allocations_of(const Grant& grant) {
  std::vector<Label> names;
  if (!grant.user.empty()) names.push_back({"user", grant.user});
  std::vector<workloads::Allocation> allocations;
  for (const std::string& gpu : grant.gpus) {
    const auto by = is_pci_address(gpu) ? DeviceSelector::By::pci_address : DeviceSelector::By::uuid;
    allocations.push_back(
        {{by, gpu, ""}, grant.workload, workloads::AllocationSource::manual, grant.since, names});
  }
  return allocations;
}

Result<std::vector<Grant>> read_grants(const std::string& folder) {
  const auto opened = Folder::open_trusted(folder);
  if (!opened) return opened.error();
  std::vector<Grant> grants;
  for (const std::string& name : opened->names(kMostFiles)) {
    const auto file = opened->read_of(opened->owner(), name, kMostBytes);
    auto grant = file ? parse_grant(file->text) : std::nullopt;
    if (grant && file_name(grant->workload) == name) grants.push_back(*std::move(grant));
  }
  return grants;
}

Result<workloads::Names> read_allocated(const std::string& folder) {
  const Result<std::vector<Grant>> grants = read_grants(folder);
  if (!grants) return grants.error();
  workloads::Names names;
  for (const Grant& grant : *grants)
    std::ranges::move(allocations_of(grant), std::back_inserter(names.allocations));
  return names;
}

Result<workloads::Names> read_held(const std::string& folder, const std::string& sysfs) {
  Result<std::vector<Grant>> grants = read_grants(folder);
  if (!grants) return grants.error();
  std::erase_if(*grants, [](const Grant& grant) { return grant.gpus.empty(); });
  workloads::Names names;
  if (grants->empty()) return names;
  const cgroup::JobGroups groups = cgroup::read_job_groups(sysfs);
  for (const Grant& grant : *grants) {
    const std::string& job = grant.workload.name;
    if (grant.workload.kind != cgroup::Kind::slurm_job || !groups.folders.contains(job)) continue;
    for (workloads::Allocation& each : allocations_of(grant)) {
      each.source = workloads::AllocationSource::cgroup;
      each.names = {{cgroup::is_sluid(job) ? "slurm_sluid" : "slurm_job", job}};  // without a process
      names.allocations.push_back(std::move(each));
    }
  }
  return names;
}

}  // namespace gpumeter::manual
