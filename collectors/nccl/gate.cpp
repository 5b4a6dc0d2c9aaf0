#include "collectors/nccl/gate.hpp"

#include <dirent.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <memory>
#include <system_error>
#include <utility>

#include "base/proc.hpp"
#include "base/text.hpp"
#include "collectors/nccl/small_file.hpp"

namespace gpumeter::nccl {
namespace {

constexpr std::size_t kMostMaps = 16U << 20U;        // some 100,000 mappings; PyTorch has some thousand
constexpr std::size_t kMostDescriptors = 1U << 20U;  // the kernel's default limit of a process (nr_open)

struct CloseFolder {
  void operator()(DIR* folder) const noexcept { ::closedir(folder); }
};

/// The inode of "socket:[123]".
std::optional<std::uint64_t> socket_of(std::string_view target) noexcept {
  constexpr std::string_view kStart = "socket:[";
  if (!target.starts_with(kStart) || !target.ends_with(']')) return std::nullopt;
  return parse_number<std::uint64_t>(target.substr(kStart.size(), target.size() - kStart.size() - 1));
}

/// Those of `wanted` that the process has open. Returns errno, or 0.
int open_sockets(const std::string& path, const std::set<std::uint64_t>& wanted,
                 std::set<std::uint64_t>& found) {
  const std::unique_ptr<DIR, CloseFolder> folder(::opendir(path.c_str()));
  if (!folder) return errno;
  std::size_t seen = 0;
  while (const dirent* entry = ::readdir(folder.get())) {
    if (++seen > kMostDescriptors || found.size() == wanted.size()) break;
    std::array<char, 64> target{};
    const ssize_t length = ::readlinkat(::dirfd(folder.get()), entry->d_name, target.data(), target.size());
    if (length <= 0) continue;
    const auto inode = socket_of({target.data(), static_cast<std::size_t>(length)});
    if (inode && wanted.contains(*inode)) found.insert(*inode);
  }
  return 0;
}

void refuse(Verdict& verdict, State state, std::string reason) {
  if (verdict.refusal) return;
  verdict.refusal = state;
  verdict.reason = std::move(reason);
}

}  // namespace

Gate::Member Gate::look_at(int pid, const std::set<std::uint64_t>& sockets) const {
  Member member;
  SmallFile maps = read_small_file(proc::path(procfs_, pid, "maps"), kMostMaps);
  if (!maps.is_whole) maps.error = EFBIG;
  member.libraries = libraries_in(maps.text);
  member.error = open_sockets(proc::path(procfs_, pid, "fd"), sockets, member.sockets);
  if (maps.error != 0) member.error = maps.error;
  return member;
}

Verdict Gate::check(const std::vector<int>& pids, const std::set<std::uint64_t>& sockets) {
  Verdict verdict;
  std::set<std::uint64_t> owned;
  for (const int pid : pids) {
    const Member member = look_at(pid, sockets);
    if (member.error == ENOENT || member.error == ESRCH) continue;  // it has ended
    owned.insert(member.sockets.begin(), member.sockets.end());
    if (!member.sockets.empty()) verdict.members.push_back(pid);
    judge(pid, member, verdict);
  }
  if (owned.size() < sockets.size()) {
    refuse(verdict, State::unknown_version,
           "a socket on the port belongs to no process that is known on a GPU");
  }
  return verdict;
}

void Gate::judge(int pid, const Member& member, Verdict& verdict) {
  const std::string process = "process " + std::to_string(pid);
  if (member.error != 0) {
    const bool is_denied = member.error == EACCES || member.error == EPERM;
    return refuse(verdict, is_denied ? State::no_permission : State::unknown_version,
                  process + ": maps: " + std::generic_category().message(member.error));
  }
  if (member.libraries.empty() && !member.sockets.empty()) {
    return refuse(verdict, State::unknown_version, process + " has NCCL within another library");
  }
  for (const Mapping& library : member.libraries) {
    const auto version = libraries_.version_of(proc::path(procfs_, pid, "root"), library);
    if (!version) {
      refuse(verdict, State::unknown_version, process + ": " + library.path + " has no version");
    } else if (*version < oldest_) {
      refuse(verdict, State::old_version,
             process + " has NCCL " + to_string(*version) + "; its RAS is safe from " + to_string(oldest_) +
                 " on");
    }
  }
}

}  // namespace gpumeter::nccl
