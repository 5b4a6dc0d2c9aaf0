#include "daemon/log/sinks.hpp"

#include <poll.h>
#include <spdlog/sinks/base_sink.h>
#include <unistd.h>

#include <cerrno>
#include <mutex>
#include <string_view>
#include <vector>

#include "systemd/journal.hpp"

namespace gpumeter {
namespace {

// Values have every control character escaped (to_journal), so that this one can end a field.
constexpr char kFieldEnd = '\0';

std::vector<std::string> unpack(std::string_view entry) {
  std::vector<std::string> fields;
  while (!entry.empty()) {
    const std::size_t end = entry.find(kFieldEnd);
    fields.emplace_back(entry.substr(0, end));
    entry.remove_prefix(end == std::string_view::npos ? entry.size() : end + 1);
  }
  return fields;
}

// A pipe may be shared with a process that made it non-blocking; then EAGAIN stands for "the reader is slow".
bool may_write_again(int error) {
  if (error == EINTR) return true;
  pollfd room{STDERR_FILENO, POLLOUT, 0};
  return error == EAGAIN && (poll(&room, 1, -1) > 0 || errno == EINTR);
}

/// spdlog's logger catches the exception and calls its error handler.
void write_line(std::string line) {
  line += '\n';
  std::string_view rest = line;
  while (!rest.empty()) {
    const ssize_t written = ::write(STDERR_FILENO, rest.data(), rest.size());
    if (written < 0 && !may_write_again(errno)) spdlog::throw_spdlog_ex("stderr", errno);
    if (written > 0) rest.remove_prefix(static_cast<std::size_t>(written));
  }
}

class StderrSink final : public spdlog::sinks::base_sink<std::mutex> {
 protected:
  void sink_it_(const spdlog::details::log_msg& message) override {
    write_line(std::string(message.payload.data(), message.payload.size()));
  }
  void flush_() override {}
};

class JournalSink final : public spdlog::sinks::base_sink<std::mutex> {
 protected:
  void sink_it_(const spdlog::details::log_msg& message) override {
    const auto fields = unpack({message.payload.data(), message.payload.size()});
    if (fields.empty() || systemd::send_to_journal(fields) >= 0) return;
    write_line(fields.front());
  }
  void flush_() override {}
};

}  // namespace

std::string pack_journal_entry(std::span<const std::string> fields) {
  std::string entry;
  for (const std::string& field : fields) (entry += field) += kFieldEnd;
  return entry;
}

std::shared_ptr<spdlog::sinks::sink> make_stderr_sink() { return std::make_shared<StderrSink>(); }

std::shared_ptr<spdlog::sinks::sink> make_journal_sink() { return std::make_shared<JournalSink>(); }

}  // namespace gpumeter
