#include "base/signals.hpp"

#include <poll.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

namespace gpumeter {
namespace {

sigset_t handled_signals() noexcept {
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : {SIGTERM, SIGINT, SIGHUP, SIGUSR1, SIGUSR2}) sigaddset(&set, signal);
  return set;
}

}  // namespace

Result<Signals> Signals::block() {
  const sigset_t handled = handled_signals();
  sigset_t previous;
  if (const int error = pthread_sigmask(SIG_BLOCK, &handled, &previous); error != 0) {
    return Error(std::string("signals cannot be blocked: ") + std::strerror(error));
  }
  Descriptor fd(signalfd(-1, &handled, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!fd) {
    const int error = errno;
    pthread_sigmask(SIG_SETMASK, &previous, nullptr);
    return Error(std::string("signalfd: ") + std::strerror(error));
  }
  struct sigaction ignore {};
  ignore.sa_handler = SIG_IGN;
  sigaction(SIGPIPE, &ignore, nullptr);
  return Signals(std::move(fd), previous);
}

Signals::~Signals() {
  if (fd_) pthread_sigmask(SIG_SETMASK, &previous_, nullptr);
}

std::optional<int> Signals::wait(std::chrono::milliseconds at_most, int other) noexcept {
  std::array<pollfd, 2> ready = {{{fd_.number(), POLLIN, 0}, {other, POLLIN, 0}}};  // poll() ignores -1
  if (poll(ready.data(), ready.size(), static_cast<int>(at_most.count())) <= 0) return std::nullopt;
  if (ready[0].revents == 0) return std::nullopt;
  signalfd_siginfo info{};
  if (read(fd_.number(), &info, sizeof info) != static_cast<ssize_t>(sizeof info)) return std::nullopt;
  return static_cast<int>(info.ssi_signo);
}

}  // namespace gpumeter
