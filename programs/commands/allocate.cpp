#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <ctime>
#include <optional>
#include <utility>

#include "base/folder.hpp"
#include "base/text.hpp"
#include "daemon/fleet/device_directory.hpp"
#include "programs/commands/commands.hpp"

namespace gpumeter {
namespace {

/// The uuid of the GPU with this index; anything else as it is.
Result<std::string> uuid_of(const std::string& gpu, const std::string& state) {
  const auto index = parse_number<unsigned>(gpu);
  if (!index) return gpu;
  DeviceDirectory directory(state);
  if (const Result<Done> loaded = directory.load(); !loaded) return loaded.error();
  for (const auto& [uuid, device] : directory.devices()) {
    if (device.index == *index) return uuid;
  }
  return Error("no GPU " + gpu + " is known in " + state + "; use its uuid");
}

Result<std::string> set(const AllocateOptions& options, const std::string& path, const std::string& state) {
  if (options.gpus.empty()) return Error("allocate set requires --gpu");
  manual::Grant grant = {.workload = options.workload, .user = options.user};
  for (const std::string& gpu : options.gpus) {
    Result<std::string> uuid = uuid_of(gpu, state);
    if (!uuid) return uuid.error();
    grant.gpus.push_back(*std::move(uuid));
  }
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  grant.since = std::chrono::duration_cast<std::chrono::seconds>(now);
  const std::string text = manual::to_text(grant);
  const auto kept = manual::parse_grant(text);
  if (!kept || kept->gpus.size() != grant.gpus.size() || text.size() > manual::kMostBytes) {
    return Error("a GPU is given twice, or there are too many");
  }
  constexpr mode_t kReadable = 0644;  // by the daemon
  if (const Result<Folder> made = Folder::make(path, kReadable | S_IXUSR | S_IXGRP | S_IXOTH); !made) {
    return with_advice(made.error());
  }
  const Result<Folder> folder = Folder::open_trusted(path);
  if (!folder) return folder.error();
  const Result<Done> done =
      folder->replace(manual::file_name(grant.workload), text, kReadable, Folder::Outlives::power_cut);
  if (!done) return with_advice(done.error());
  return std::to_string(grant.gpus.size()) + " GPU(s) are allocated to " + grant.workload.name + "\n";
}

Result<std::string> clear(const AllocateOptions& options, const std::string& path) {
  const Result<Folder> folder = Folder::open_trusted(path);
  if (!folder) return folder.error();
  const std::string name = manual::file_name(options.workload);
  if (folder->lacks(name)) {
    return Error(options.workload.name + " has no allocation of the kind " +
                 std::string(to_string(options.workload.kind)));
  }
  if (const Result<Done> removed = folder->remove(name); !removed) return with_advice(removed.error());
  return "the allocation of " + options.workload.name + " has ended\n";
}

std::string time_text(std::optional<std::chrono::seconds> since) {
  if (!since) return "-";
  const std::time_t seconds = since->count();
  std::tm parts{};
  char text[32];
  gmtime_r(&seconds, &parts);
  return std::string(text, std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts));
}

Result<std::string> list(const std::string& path) {
  const Result<std::vector<manual::Grant>> grants = manual::read_grants(path);
  if (!grants) return grants.error();
  std::string text;
  for (const manual::Grant& grant : *grants) {
    std::string gpus;
    for (const std::string& gpu : grant.gpus) gpus += (gpus.empty() ? "" : ",") + gpu;
    text += grant.workload.name + " " + std::string(to_string(grant.workload.kind)) + " " +
            (grant.user.empty() ? "-" : grant.user) + " " + time_text(grant.since) + " " + gpus + "\n";
  }
  return text.empty() ? "no GPU is allocated by hand\n" : "WORKLOAD KIND USER SINCE GPUS\n" + text;
}

}  // namespace

Result<std::string> allocate(const AllocateOptions& options, const std::string& folder,
                             const std::string& state) {
  using Verb = AllocateOptions::Verb;
  if (folder.empty()) return Error("allocations.manual is empty, so no allocation is made by hand");
  if (options.verb == Verb::list) return list(folder);
  if (!manual::is_name(options.workload.name)) {
    return Error("a workload's name has letters, digits and . _ @ : + -, " +
                 std::to_string(manual::kLongestName) + " at most");
  }
  return options.verb == Verb::set ? set(options, folder, state) : clear(options, folder);
}

}  // namespace gpumeter
