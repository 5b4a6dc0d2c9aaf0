#include "collectors/attribution/cgroup/cache.hpp"

#include <span>
#include <utility>

#include "base/proc.hpp"
#include "collectors/attribution/cgroup/workload_of.hpp"
#include "collectors/sources/sysfs.hpp"

namespace gpumeter::cgroup {
namespace {

// A path has less than PATH_MAX (4096) bytes. The file may have one line each for 14 controllers (kernel
// 6.12), name=systemd and v2.
constexpr std::size_t kLongestText = 65536;
constexpr std::size_t kLongestRemembered = 4096;

}  // namespace

Cache::Cache(std::string procfs, std::size_t most_processes)
    : procfs_(std::move(procfs)), most_processes_(most_processes), buffer_(kLongestText) {}

void Cache::begin_pass() {
  std::erase_if(entries_, [](const auto& entry) { return !entry.second.seen; });
  for (auto& [pid, entry] : entries_) entry.seen = false;
}

const Process& Cache::of(int pid) {
  const std::string stat = proc::path(procfs_, pid, "stat");
  ReadStatus status = ReadStatus::ok;
  const std::optional<std::uint64_t> start = proc::start_ticks(read(stat, status));
  if (status == ReadStatus::ok && !start) status = ReadStatus::failed;
  const std::string_view text = start ? read(proc::path(procfs_, pid, "cgroup"), status) : "";
  if (status != ReadStatus::ok) return nobodys(why_not(stat, status));
  const bool room = entries_.contains(pid) || entries_.size() < most_processes_;
  Entry& entry = room && text.size() <= kLongestRemembered ? entries_[pid] : unremembered_;
  entry.seen = true;
  entry.process.start_ticks = *start;
  if (entry.text == text) return entry.process;
  entry.text = text;
  const Path path = most_telling_path(text);
  entry.process.group = path.text;
  entry.process.attribution = attribution_of(path);
  return entry.process;
}

const Process& Cache::nobodys(Reason reason) {
  unremembered_ = {};
  unremembered_.process.attribution.reason = reason;
  return unremembered_.process;
}

// If a process has just ended, reading its open file fails with ESRCH, which maps to no specific status.
// Process 1 always exists: if /proc omits it, /proc hides other users' processes (proc(5), hidepid=2).
Reason Cache::why_not(const std::string& stat, ReadStatus status) const {
  const auto is_gone = [](const std::string& path) { return sysfs::File(path).status() == ReadStatus::gone; };
  if (status == ReadStatus::gone || is_gone(stat)) {
    return is_gone(proc::path(procfs_, 1, "stat")) ? Reason::hidden : Reason::gone;
  }
  return status == ReadStatus::denied ? Reason::denied : Reason::failed;
}

// The view is valid until the next read. A text that does not fit is cut after its last whole line.
std::string_view Cache::read(const std::string& path, ReadStatus& status) {
  const sysfs::File file(path);
  std::size_t size = 0;
  sysfs::Bytes bytes{1, file.status()};
  while (bytes.status == ReadStatus::ok && bytes.size > 0 && size < buffer_.size()) {
    bytes = file.read(std::span(buffer_).subspan(size), size);
    size += bytes.size;
  }
  status = bytes.status;
  const std::string_view text(buffer_.data(), size);
  return size < buffer_.size() ? text : text.substr(0, text.rfind('\n') + 1);
}

std::optional<std::uint32_t> real_uid_of(const std::string& procfs, int pid) {
  const auto uids = proc::uids(sysfs::read_text(proc::path(procfs, pid, "status")));
  return uids ? std::optional(uids->front()) : std::nullopt;
}

std::string name_of(const std::string& procfs, int pid) {
  return label_text(sysfs::read_text(proc::path(procfs, pid, "comm")));
}

}  // namespace gpumeter::cgroup
