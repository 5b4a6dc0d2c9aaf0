#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/proc.hpp"
#include "collectors/api/sample.hpp"
#include "collectors/attribution/cgroup/workload_of.hpp"
#include "collectors/sources/sysfs.hpp"

namespace gpumeter::cgroup {

/// A process that uses a device. Its pid and start time identify it until the next reboot.
struct Process {
  std::uint64_t start_ticks = 0;  ///< 0 if unreadable
  std::string group;              ///< the path from which `attribution` is derived
  Attribution attribution;
};

/// Attributes the processes that a pass finds on the devices. Each call of of() reads the process's group
/// again, because processes are moved (by Slurm after the fork, by systemd if it delegates). The labels are
/// rebuilt only if the text has changed. One thread.
class Cache {
 public:
  /// Limit of cached processes, each with a text of one page at most: 9 MiB if all texts are that long, a
  /// hundredth in practice. NVML lists about a hundred per device. Further processes are read again each
  /// time.
  static constexpr std::size_t kMostProcesses = 2048;

  /// `procfs`: /proc, or a copy of it in tests.
  explicit Cache(std::string procfs, std::size_t most_processes = kMostProcesses)
      : procfs_(std::move(procfs)), most_processes_(most_processes), buffer_(kLongestText) {}

  /// Removes the processes for which of() was not called since the last begin_pass().
  void begin_pass() {
    std::erase_if(entries_, [](const auto& entry) { return !entry.second.seen; });
    for (auto& [pid, entry] : entries_) entry.seen = false;
  }

  /// Reads two small files. A process that is gone or hidden is `unattributed`, with a Reason. The reference
  /// is valid until the next call on this object.
  const Process& of(int pid) {
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

  std::size_t size() const noexcept { return entries_.size(); }

 private:
  /// A path has less than PATH_MAX (4096) bytes. The file may have one line each for 14 controllers (kernel
  /// 6.12), name=systemd and v2.
  static constexpr std::size_t kLongestText = 65536;
  static constexpr std::size_t kLongestRemembered = 4096;

  struct Entry {
    Process process;
    std::string text;
    bool seen = false;
  };

  /// The view is valid until the next read. A text that does not fit is cut after its last whole line.
  std::string_view read(const std::string& path, ReadStatus& status) {
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
  const Process& nobodys(Reason reason) {
    unremembered_ = {};
    unremembered_.process.attribution.reason = reason;
    return unremembered_.process;
  }
  /// If a process has just ended, reading its open file fails with ESRCH, which maps to no specific status.
  /// Process 1 always exists: if /proc omits it, /proc hides other users' processes (proc(5), hidepid=2).
  Reason why_not(const std::string& stat, ReadStatus status) const {
    const auto is_gone = [](const std::string& path) {
      return sysfs::File(path).status() == ReadStatus::gone;
    };
    if (status == ReadStatus::gone || is_gone(stat)) {
      return is_gone(proc::path(procfs_, 1, "stat")) ? Reason::hidden : Reason::gone;
    }
    return status == ReadStatus::denied ? Reason::denied : Reason::failed;
  }

  std::string procfs_;
  std::size_t most_processes_;
  std::vector<char> buffer_;
  std::map<int, Entry> entries_;
  Entry unremembered_;
};

/// The real user of a process; nullopt if the process is gone or hidden. Any thread; reads one small file.
inline std::optional<std::uint32_t> real_uid_of(const std::string& procfs, int pid) {
  const auto uids = proc::uids(sysfs::read_text(proc::path(procfs, pid, "status")));
  return uids ? std::optional(uids->front()) : std::nullopt;
}

/// /proc/PID/comm as a label. The process sets it, so it may contain any bytes. Empty if it cannot be read.
/// Any thread; reads one small file.
inline std::string name_of(const std::string& procfs, int pid) {
  return label_text(sysfs::read_text(proc::path(procfs, pid, "comm")));
}

}  // namespace gpumeter::cgroup
