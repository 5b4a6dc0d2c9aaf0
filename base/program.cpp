#include "base/program.hpp"

#include <fcntl.h>
#include <link.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <span>
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

// open() returns the lowest free number, so the streams are filled in this order.
void open_closed_streams() noexcept {
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    const bool is_closed = fcntl(stream, F_GETFD) < 0 && errno == EBADF;
    if (is_closed && open("/dev/null", O_RDONLY) < 0) return;
  }
}

int print(std::string_view text) {
  const bool written = std::fwrite(text.data(), 1, text.size(), stdout) == text.size();
  if (written && std::fflush(stdout) == 0) return 0;
  std::fprintf(stderr, "gpumeter: stdout cannot be written: %s\n", std::strerror(errno));
  return 1;
}

int print(const Exit& exit) {
  if (exit.code == 0) return print(exit.text);
  std::fputs(exit.text.c_str(), stderr);
  return exit.code;
}

namespace {

// The dynamic linker relocates writable segments only, so all other pages are those of the file.
bool is_unchanged(const ElfW(Phdr) & segment) noexcept {
  return segment.p_type == PT_LOAD && (segment.p_flags & PF_W) == 0;
}

int unmap_object(dl_phdr_info* object, std::size_t, void*) noexcept {
  const auto page = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
  for (const ElfW(Phdr) & segment : std::span(object->dlpi_phdr, object->dlpi_phnum)) {
    if (!is_unchanged(segment)) continue;
    const std::uintptr_t begin = (object->dlpi_addr + segment.p_vaddr) / page * page;
    const std::uintptr_t end = object->dlpi_addr + segment.p_vaddr + segment.p_memsz;
    madvise(reinterpret_cast<void*>(begin), end - begin, MADV_DONTNEED);  // NOLINT(performance-no-int-to-ptr)
  }
  return 0;
}

}  // namespace

void unmap_code() noexcept { dl_iterate_phdr(unmap_object, nullptr); }

}  // namespace gpumeter
