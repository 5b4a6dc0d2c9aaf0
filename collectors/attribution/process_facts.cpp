#include "collectors/attribution/process_facts.hpp"

#include <charconv>
#include <system_error>

#include "collectors/attribution/cgroup/text.hpp"
#include "collectors/sources/sysfs.hpp"

namespace gpumeter::workloads {
namespace {

// The line before it is the name, in which the kernel escapes newlines (proc(5)), so none can forge it.
constexpr std::string_view kUid = "\nUid:\t";

std::string file_of(const std::string& procfs, int pid, const char* name) {
  return procfs + "/" + std::to_string(pid) + "/" + name;
}

}  // namespace

std::optional<std::uint32_t> real_uid(std::string_view status) noexcept {
  const std::size_t line = status.find(kUid);
  if (line == std::string_view::npos) return std::nullopt;
  status.remove_prefix(line + kUid.size());
  std::uint32_t uid = 0;
  const auto [end, error] = std::from_chars(status.data(), status.data() + status.size(), uid);
  const bool whole = end != status.data() + status.size() && *end == '\t';
  return error == std::errc{} && whole ? std::optional(uid) : std::nullopt;
}

std::optional<std::uint32_t> real_uid_of(const std::string& procfs, int pid) {
  return real_uid(sysfs::read_text(file_of(procfs, pid, "status")));
}

std::string name_of(const std::string& procfs, int pid) {
  return cgroup::label_text(sysfs::read_text(file_of(procfs, pid, "comm")));
}

}  // namespace gpumeter::workloads
