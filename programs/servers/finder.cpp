#include "programs/servers/finder.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>

#include "base/proc.hpp"
#include "base/text.hpp"
#include "collectors/attribution/cgroup/cache.hpp"
#include "collectors/sources/sysfs.hpp"
#include "collectors/sources/tcp/holders.hpp"

namespace gpumeter::servers {
namespace {

constexpr std::size_t kMostMembers = 1024;  ///< of a cgroup
constexpr std::size_t kWords = 4;           ///< of a command line: interpreter, options, script

}  // namespace

std::set<std::string> names_of(const std::string& procfs, int pid) {
  std::set<std::string> names = {cgroup::name_of(procfs, pid)};
  std::array<char, 4096> buffer{};
  const sysfs::Bytes bytes = sysfs::File(proc::path(procfs, pid, "cmdline")).read(buffer);
  std::string_view words(buffer.data(), bytes.size);
  for (std::size_t i = 0; !words.empty() && i < kWords; ++i) {
    const std::string_view word = take_until(words, '\0');
    names.emplace(word.substr(word.rfind('/') + 1));
  }
  return names;
}

Finder::Candidates Finder::candidates(const jobs::DeviceUses& devices) {
  Candidates found;
  for (const auto& device : devices) {
    for (const workloads::ProcessUse& use : device->processes) {
      if (!use.present) continue;
      found.pids.insert(use.id.pid);
      for (const int ancestor : kin_.ancestors_of(use.id.pid)) found.pids.insert(ancestor);
      if (!use.group.empty() && use.uid) found.groups[use.group].insert(*use.uid);
    }
  }
  for (const auto& [group, users] : found.groups) {
    if (!jobs::workload_of_one_purpose(group).empty()) add_members(group, found.pids);
  }
  return found;
}

void Finder::add_members(const std::string& group, std::set<int>& pids) const {
  const std::string text = sysfs::read_text(roots_.cgroups + group + "/cgroup.procs");
  std::string_view rest = text;
  for (std::size_t i = 0; !rest.empty() && i < kMostMembers; ++i) {
    if (const auto pid = parse_number<int>(take_until(rest, '\n')); pid && *pid > 0) pids.insert(*pid);
  }
}

int Finder::holder_of(const tcp::Listener& listener, const std::set<int>& pids) {
  const auto found = std::ranges::find_if(
      pids, [&](int pid) { return !tcp::sockets_of(roots_.procfs, pid, {listener.inode}).sockets.empty(); });
  return found == pids.end() ? 0 : *found;
}

std::string Finder::group_of(const tcp::Listener& listener, const Candidates& candidates) const {
  for (const auto& [group, users] : candidates.groups) {
    struct stat folder {};
    const bool is_same = listener.cgroup_id != 0 && users.contains(listener.uid) &&
                         stat((roots_.cgroups + group).c_str(), &folder) == 0 &&
                         folder.st_ino == listener.cgroup_id;
    if (is_same) return group;
  }
  return {};
}

bool Finder::is_asked(std::uint16_t port) const {
  return std::ranges::find(settings_.ports, port, &options::Port::number) != settings_.ports.end();
}

bool Finder::is_wanted(int pid) const {
  if (settings_.processes.empty()) return true;
  const std::set<std::string> names = names_of(roots_.procfs, pid);
  return std::ranges::any_of(settings_.processes,
                             [&](const std::string& wanted) { return names.contains(wanted); });
}

bool Finder::has_wanted(const std::string& group, const Candidates& candidates) {
  return std::ranges::any_of(candidates.pids,
                             [&](int pid) { return kin_.of(pid).group == group && is_wanted(pid); });
}

Result<std::vector<Place>> Finder::find(const jobs::DeviceUses& devices) {
  std::vector<Place> places;
  const Candidates among = candidates(devices);
  if (among.pids.empty()) return places;
  const Result<std::vector<tcp::Listener>> listeners = listeners_(roots_.procfs);
  if (!listeners) return listeners.error();
  for (const tcp::Listener& listener : *listeners) {
    const bool is_known = std::ranges::find(places, listener.port, &Place::port) != places.end();
    if (is_known || listener.address.empty() || !is_asked(listener.port)) continue;
    const int pid = holder_of(listener, among.pids);
    const std::string group = pid > 0 ? kin_.of(pid).group : group_of(listener, among);
    const bool is_wanted_one = pid > 0 ? is_wanted(pid) : !group.empty() && has_wanted(group, among);
    if (is_wanted_one) places.push_back({listener.address, listener.port, pid, group});
  }
  std::ranges::sort(places, {}, &Place::port);
  return places;
}

}  // namespace gpumeter::servers
