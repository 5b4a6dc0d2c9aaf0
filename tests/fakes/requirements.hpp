#pragma once

#include <fcntl.h>
#include <linux/netlink.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <string>

#include "base/descriptor.hpp"

namespace gpumeter {

/// The test is built with a sanitizer, which keeps freed memory and ends the process if none is left.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kIsSanitized = true;
#elif defined(__has_feature)
inline constexpr bool kIsSanitized = __has_feature(address_sanitizer) || __has_feature(thread_sanitizer);
#else
inline constexpr bool kIsSanitized = false;
#endif

/// What some emulators and containers lack. Each function tries it and returns why the test cannot run here,
/// or nothing; it names no architecture, so that a test runs again once the machine has it.

inline std::string no_socket_timestamps() {
  const Descriptor socket(::socket(AF_UNIX, SOCK_DGRAM, 0));
  constexpr int kOn = 1;
  const bool has = setsockopt(socket.number(), SOL_SOCKET, SO_TIMESTAMPNS, &kOn, sizeof kOn) == 0;
  return has ? "" : "this machine has no SO_TIMESTAMPNS, with which the sockets of jobs are opened";
}

/// An emulator's prefix for libraries replaces "/" too. PATH is an absolute path that exists.
inline std::string no_root_folder(const std::string& path) {
  const Descriptor root(open("/", O_PATH | O_DIRECTORY | O_CLOEXEC));
  struct stat status {};
  const bool has = fstatat(root.number(), path.substr(1).c_str(), &status, 0) == 0;
  return has ? "" : "\"/\" is another folder here than the one in which absolute paths begin";
}

/// A kernel answers ENOTTY to a request that a device does not know.
inline std::string no_unknown_requests() {
  const Descriptor null(open("/dev/null", O_RDONLY | O_CLOEXEC));
  const bool has = ioctl(null.number(), _IO('?', 0)) == -1 && errno == ENOTTY;
  return has ? "" : "this machine does not pass unknown ioctls to the device";
}

/// SO_PASSPIDFD of Linux 6.5.
inline std::string no_pidfds_of_senders() {
  constexpr int kPassPidfd = 76;
  const Descriptor socket(::socket(AF_UNIX, SOCK_DGRAM, 0));
  constexpr int kOn = 1;
  const bool has = setsockopt(socket.number(), SOL_SOCKET, kPassPidfd, &kOn, sizeof kOn) == 0;
  return has ? "" : "this kernel sends no pidfd along with a datagram";
}

inline std::string no_generic_netlink() {
  const Descriptor socket(::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_GENERIC));
  return socket ? "" : "this machine has no sockets of generic netlink";
}

/// A process with the memory of its parent, as gpumeter-held starts it.
inline std::string no_process_in_own_memory() {
  alignas(16) std::array<char, 64 * 1024> stack;
  const auto end = [](void*) { return 0; };
  const pid_t process = clone(end, stack.data() + stack.size(), CLONE_VM | SIGCHLD, nullptr);
  if (process < 0) return "this machine starts no process with CLONE_VM alone";
  waitpid(process, nullptr, 0);
  return "";
}

}  // namespace gpumeter
