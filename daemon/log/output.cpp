#include "daemon/log/output.hpp"

#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <string>
#include <vector>

#include "systemd/journal.hpp"

namespace gpumeter {
namespace {

// Another process that shares the pipe may make it non-blocking; EAGAIN then means that the reader is slow.
bool may_write_again(int error) {
  if (error == EINTR) return true;
  pollfd room{STDERR_FILENO, POLLOUT, 0};
  return error == EAGAIN && (poll(&room, 1, -1) > 0 || errno == EINTR);
}

std::vector<std::string> unpack(std::string_view entry) {
  std::vector<std::string> fields;
  while (!entry.empty()) {
    fields.emplace_back(entry.substr(0, entry.find('\0')));
    entry.remove_prefix(fields.back().size() + 1);
  }
  return fields;
}

}  // namespace

bool stderr_is_journal() { return systemd::is_journal_stream(STDERR_FILENO, std::getenv("JOURNAL_STREAM")); }

bool write_to_stderr(std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(STDERR_FILENO, text.data(), text.size());
    if (written < 0 && !may_write_again(errno)) return false;
    if (written > 0) text.remove_prefix(static_cast<std::size_t>(written));
  }
  return true;
}

bool write_to_journal(std::string_view entry) {
  const std::vector<std::string> fields = unpack(entry);
  return systemd::send_to_journal(fields) >= 0 || write_to_stderr(fields.front() + "\n");
}

}  // namespace gpumeter
