#include "collectors/attribution/cgroup/cache.hpp"

#include <span>
#include <utility>

#include "base/proc.hpp"
#include "collectors/sources/sysfs.hpp"

namespace gpumeter::cgroup {
namespace {

// A path has less than PATH_MAX (4096) bytes, and 14 controllers (kernel 6.12), name=systemd and v2 may have
// a line each.
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
  const std::string folder = procfs_ + "/" + std::to_string(pid);
  ReadStatus status = ReadStatus::ok;
  const std::optional<std::uint64_t> start = proc::start_ticks(read(folder + "/stat", status));
  if (status == ReadStatus::ok && !start) status = ReadStatus::failed;
  const std::string_view text = start ? read(folder + "/cgroup", status) : std::string_view();
  if (status != ReadStatus::ok) return nobodys(why_not(folder, status));
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

// Reading what is open of a process that has just ended is ESRCH, which is no status of its own. /proc/1 is
// always there; where it is not, /proc hides what is not the reader's (proc(5), hidepid=2).
Reason Cache::why_not(const std::string& folder, ReadStatus status) const {
  const bool gone = status == ReadStatus::gone || sysfs::File(folder + "/stat").status() == ReadStatus::gone;
  if (gone) {
    return sysfs::File(procfs_ + "/1/stat").status() == ReadStatus::gone ? Reason::hidden : Reason::gone;
  }
  return status == ReadStatus::denied ? Reason::denied : Reason::failed;
}

// Valid until the next one. A text that does not fit ends with its last whole line.
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

}  // namespace gpumeter::cgroup
