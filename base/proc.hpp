#pragma once

#include <sys/types.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/descriptor.hpp"
#include "base/result.hpp"

/// Parses the kernel's text about a process, by proc(5). Reads no file. Any thread.
namespace gpumeter::proc {

/// Returns <procfs>/<pid>/<name>.
std::string path(const std::string& procfs, int pid, std::string_view name);

/// Returns a field of /proc/PID/stat by its number in proc(5), 3 or above; empty if the text has no such
/// field. The process chooses the name in field 2, and the name may look like fields.
std::string_view stat_field(std::string_view stat, int number) noexcept;

/// Returns the start time of the process, in clock ticks since boot.
std::optional<std::uint64_t> start_ticks(std::string_view stat) noexcept;

/// Returns false if the process has ended. A zombie has ended, although its parent has not waited for it yet;
/// PID 1 of many containers never does. A process is alive if only its first thread has ended.
bool is_alive(std::string_view stat) noexcept;

/// Returns the four UIDs of the line `Uid:` in /proc/PID/status: real, effective, saved, file system.
std::optional<std::array<std::uint32_t, 4>> uids(std::string_view status) noexcept;

}  // namespace gpumeter::proc

namespace gpumeter {

/// The start of a file of /proc.
struct SmallFile {
  std::string text;
  int error = 0;         ///< errno of the failure; 0: read
  bool is_whole = true;  ///< false: the file has more bytes than the limit
};

SmallFile read_small_file(const std::string& path, std::size_t most);

/// The numbers of a process in its pid namespaces, the outermost first: the line `NSpid:` of proc(5)'s status
/// and of a pidfd's fdinfo. Empty if there is none.
std::vector<int> numbers_in_namespaces(std::string_view status);

/// False once the process has ended, whether or not its parent has waited for it.
bool is_alive(const Descriptor& pidfd);

/// The process that connected a Unix socket. A pidfd holds it, so its number cannot become that of another
/// process unnoticed. Whoever inherited the connection sends in its name.
///
/// SO_PEERPIDFD (Linux 6.5) is exact. On an older kernel the pidfd is opened by the number of SO_PEERCRED,
/// which is right unless the process has ended and its number was used again before the daemon accepted the
/// connection. Before Linux 5.3 there is only the number.
class PeerProcess {
 public:
  /// Returns an Error if the kernel does not name the peer.
  static Result<PeerProcess> of(int connection);

  int pid() const noexcept { return pid_; }  ///< in the daemon's pid namespace; 0 if not visible there
  std::uint32_t uid() const noexcept { return uid_; }
  /// Its numbers in its pid namespaces, also where /proc hides the process (hidepid=2). Returns an Error,
  /// which says why, if they cannot be known.
  Result<std::vector<int>> numbers() const;
  /// False once the process has ended. Without a pidfd only an end before of() is noticed.
  bool is_alive() const;

 private:
  int pid_ = 0;
  std::uint32_t uid_ = 0;
  Descriptor process_;
  bool has_ended_ = false;  ///< before of()
};

}  // namespace gpumeter
