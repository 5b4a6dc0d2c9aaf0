#include "daemon/control/allocate.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <ctime>
#include <optional>
#include <utility>

#include "base/descriptor.hpp"
#include "base/text.hpp"
#include "collectors/attribution/names/small_files.hpp"
#include "daemon/fleet/device_directory.hpp"

namespace gpumeter {
namespace {

using workloads::TrustedFolder;

Error failed(const std::string& what) {
  return Error(what + ": " + std::strerror(errno) + (errno == EACCES ? "; run it as root" : ""));
}

Result<TrustedFolder> open_or_make(const std::string& path) {
  if (mkdir(path.c_str(), 0755) == 0) {
    if (chmod(path.c_str(), 0755) != 0) return failed(path);  // whatever the umask is
  } else if (errno != EEXIST) {
    return failed(path);
  }
  return TrustedFolder::open(path);
}

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

// Renamed into place, so that the daemon reads the whole file or none.
Result<Done> replace(const TrustedFolder& folder, const std::string& name, const std::string& text) {
  const std::string draft = "." + name;
  unlinkat(folder.number(), draft.c_str(), 0);
  constexpr int kFlags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
  const Descriptor file(openat(folder.number(), draft.c_str(), kFlags, 0644));
  if (!file) return failed(name);
  const bool is_written =
      fchmod(file.number(), 0644) == 0 &&
      write(file.number(), text.data(), text.size()) == static_cast<ssize_t>(text.size()) &&
      renameat(folder.number(), draft.c_str(), folder.number(), name.c_str()) == 0;
  if (is_written) return Done{};
  const Error error = failed(name);
  unlinkat(folder.number(), draft.c_str(), 0);
  return error;
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
  const Result<TrustedFolder> folder = open_or_make(path);
  if (!folder) return folder.error();
  if (Result<Done> done = replace(*folder, manual::file_name(grant.workload), text); !done)
    return done.error();
  return std::to_string(grant.gpus.size()) + " GPU(s) are allocated to " + grant.workload.name + "\n";
}

Result<std::string> clear(const AllocateOptions& options, const std::string& path) {
  const Result<TrustedFolder> folder = TrustedFolder::open(path);
  if (!folder) return folder.error();
  const std::string name = manual::file_name(options.workload);
  const bool is_there = folder->number() >= 0;
  if (is_there && unlinkat(folder->number(), name.c_str(), 0) == 0) {
    return "the allocation of " + options.workload.name + " has ended\n";
  }
  if (is_there && errno != ENOENT) return failed(name);
  return Error(options.workload.name + " has no allocation of the kind " +
               std::string(to_string(options.workload.kind)));
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
