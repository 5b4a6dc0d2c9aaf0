#include "programs/nccl/gate.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <utility>

#include "base/descriptor.hpp"
#include "base/proc.hpp"
#include "base/text.hpp"
#include "collectors/sources/tcp.hpp"

namespace gpumeter::nccl {
namespace {

constexpr std::size_t kMostMaps = 16U << 20U;  // some 100,000 mappings; PyTorch has some thousand

void refuse(Verdict& verdict, State state, std::string reason) {
  if (verdict.refusal) return;
  verdict.refusal = state;
  verdict.reason = std::move(reason);
}

// The text is among the program's constants, which precede the code for GPUs: at 3 MB of the 250 MB of NCCL
// 2.30.7, and at 2 MB of the 430 MB of 2.27.3.
constexpr std::size_t kMostSearched = 64U << 20U;
constexpr std::size_t kMostFiles = 256;     // in the cache
constexpr std::size_t kMostLibraries = 16;  // of a process
constexpr std::size_t kChunk = 1U << 20U;
constexpr std::size_t kLongestText = 64;  // of the sought text: overlap of two chunks
constexpr std::string_view kDeleted = " (deleted)";

std::string_view file_name_of(std::string_view path) noexcept {
  return path.substr(std::min(path.rfind('/') + 1, path.size()));  // npos + 1 is 0
}

std::optional<Version> search(int file) {
  std::string bytes;
  for (std::size_t read = 0; read < kMostSearched;) {
    const std::size_t kept = bytes.size();
    bytes.resize(kept + kChunk);
    const ssize_t count = ::pread(file, bytes.data() + kept, kChunk, static_cast<off_t>(read));
    if (count <= 0) return std::nullopt;
    read += static_cast<std::size_t>(count);
    bytes.resize(kept + static_cast<std::size_t>(count));
    if (const auto version = find_version(bytes)) return version;
    bytes.erase(0, bytes.size() - std::min(bytes.size(), kLongestText));
  }
  return std::nullopt;
}

/// True for the file names of NCCL and RCCL; false for their plugins (libnccl-net.so).
bool is_library(std::string_view file_name) noexcept {
  return file_name.starts_with("libnccl.so") || file_name.starts_with("librccl.so");
}

}  // namespace

std::optional<Version> version_in_name(std::string_view file_name) noexcept {
  constexpr std::string_view kStart = "libnccl.so.";
  if (!file_name.starts_with(kStart)) return std::nullopt;
  file_name.remove_prefix(kStart.size());
  return parse_version(file_name);
}

std::optional<Version> find_version(std::string_view bytes) noexcept {
  constexpr std::string_view kText = "CCL version ";  // NCCL's and RCCL's
  for (auto at = bytes.find(kText); at != std::string_view::npos; at = bytes.find(kText, at + 1)) {
    std::string_view rest = bytes.substr(at + kText.size(), kLongestText - kText.size() - 1);
    const auto version = take_version(rest);
    if (version && !rest.empty()) return version;  // an empty rest: the digits may go on in the next chunk
  }
  return std::nullopt;
}

// A line of proc(5): ADDRESSES PERMISSIONS OFFSET DEVICE INODE PATH. The path may have blanks.
std::vector<Mapping> libraries_in(std::string_view maps) {
  std::vector<Mapping> found;
  while (!maps.empty() && found.size() < kMostLibraries) {
    std::string_view line = take_until(maps, '\n');
    constexpr int kInodeField = 4;
    std::string_view field;
    for (int i = 0; i <= kInodeField; ++i) field = take_until(line, ' ');
    std::string_view path = trimmed(line);
    if (path.ends_with(kDeleted)) path.remove_suffix(kDeleted.size());
    if (!is_library(file_name_of(path))) continue;
    Mapping mapping = {std::string(path), parse_number<std::uint64_t>(field).value_or(0)};
    if (std::ranges::find(found, mapping) == found.end()) found.push_back(std::move(mapping));
  }
  return found;
}

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
    const auto version = version_of(pid, library);
    if (!version) {
      refuse(verdict, State::unknown_version, process + ": " + library.path + " has no version");
    } else if (*version < oldest_) {
      refuse(verdict, State::old_version,
             process + " has NCCL " + to_string(*version) + "; its RAS is safe from " + to_string(oldest_) +
                 " on");
    }
  }
}

std::optional<Version> Gate::version_of(int pid, const Mapping& mapping) {
  if (const auto version = version_in_name(file_name_of(mapping.path))) return version;
  const std::string root = proc::path(procfs_, pid, "root");
  const Descriptor file(::open((root + mapping.path).c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  struct stat facts = {};
  if (!file || ::fstat(file.number(), &facts) != 0 || !S_ISREG(facts.st_mode)) return std::nullopt;
  if (facts.st_ino != mapping.inode) return std::nullopt;
  if (found_.size() >= kMostFiles) found_.clear();
  const FileKey key = {facts.st_dev, facts.st_ino, facts.st_size, facts.st_mtim.tv_sec};
  const auto [entry, is_new] = found_.try_emplace(key);
  if (is_new) entry->second = search(file.number());
  return entry->second;
}

}  // namespace gpumeter::nccl
