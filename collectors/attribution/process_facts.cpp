#include "collectors/attribution/process_facts.hpp"

#include "base/proc.hpp"
#include "collectors/attribution/cgroup/text.hpp"
#include "collectors/sources/sysfs.hpp"

namespace gpumeter::workloads {

std::optional<std::uint32_t> real_uid_of(const std::string& procfs, int pid) {
  const auto uids = proc::uids(sysfs::read_text(proc::path(procfs, pid, "status")));
  return uids ? std::optional(uids->front()) : std::nullopt;
}

std::string name_of(const std::string& procfs, int pid) {
  return cgroup::label_text(sysfs::read_text(proc::path(procfs, pid, "comm")));
}

}  // namespace gpumeter::workloads
