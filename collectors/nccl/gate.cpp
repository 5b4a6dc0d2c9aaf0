#include "collectors/nccl/gate.hpp"

#include <cerrno>
#include <system_error>
#include <utility>

#include "base/proc.hpp"
#include "base/small_file.hpp"
#include "collectors/sources/tcp/holders.hpp"

namespace gpumeter::nccl {
namespace {

constexpr std::size_t kMostMaps = 16U << 20U;  // some 100,000 mappings; PyTorch has some thousand

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
  const tcp::Held held = tcp::sockets_of(procfs_, pid, sockets);
  member.sockets = held.sockets;
  member.error = held.error;
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
