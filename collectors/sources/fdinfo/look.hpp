#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "collectors/sources/fdinfo/client.hpp"

namespace gpumeter::fdinfo {

/// The order for a look at a process. Owns all of it, because a look that hangs outlives its scan.
struct LookOrder {
  std::string procfs;                ///< "/proc"
  std::string sysfs;                 ///< "/sys", to find the device of a descriptor
  std::vector<std::string> devices;  ///< only these are read: reading fdinfo wakes devices of some drivers
  std::shared_ptr<const Clock> clock;
  Nanoseconds until{};  ///< CLOCK_MONOTONIC; a look that begins later is not made
};

enum class LookOutcome : std::uint8_t {
  ok,
  skipped,  ///< the time is over
  ended,    ///< there is no such process, or it is a zombie
  kernel,   ///< a kernel thread, which has no descriptors
  denied,   ///< its descriptors may not be read
};

/// A process's DRM descriptors.
struct Look {
  LookOutcome outcome = LookOutcome::skipped;
  std::uint64_t start_ticks = 0;  ///< field 22 of /proc/PID/stat
  Nanoseconds at{};               ///< CLOCK_MONOTONIC, of the end of the look
  bool is_cut = false;            ///< it has more descriptors or clients than were read
  bool holds_drm = false;         ///< a descriptor of any DRM device, asked for or not
  std::vector<Client> clients;    ///< each client of the asked devices once
  unsigned malformed = 0;         ///< lines, see Text
};

/// Reads the process's stat, the type of each of its descriptors, and the fdinfo of those that are DRM
/// devices (character devices with major 226 or 261). May hang in a driver. A process that holds very many
/// descriptors is read up to order.until and some milliseconds.
Look look_at(const LookOrder& order, int pid);

/// True if two descriptors are one open file, by kcmp(2), for kernels before 5.19, whose fdinfo has no client
/// id. nullopt: the kernel refuses to compare them.
std::optional<bool> is_same_file(int pid, int fd, int other_pid, int other_fd) noexcept;

}  // namespace gpumeter::fdinfo
