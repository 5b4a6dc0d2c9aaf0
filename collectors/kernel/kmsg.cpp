#include "collectors/kernel/kmsg.hpp"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <system_error>
#include <utility>

#include "base/text.hpp"

namespace gpumeter::kernel {
namespace {

// CONSOLE_EXT_LOG_MAX of the kernel's kernel/printk/internal.h: a shorter buffer gets EINVAL.
constexpr std::size_t kLongestRecord = 8192;
// A pipe may end within a record. More than this without an end of a line is no log.
constexpr std::size_t kMostBuffered = 4 * kLongestRecord;
// Overruns in a row. The writer is then faster than the reader, which goes on in its next turn.
constexpr int kMostOverruns = 16;

constexpr unsigned kLevels = 8;  // a priority is 8 * facility + level

/// The end of the record at the start of `text`, whose lines after the first begin with a blank; npos: it is
/// not whole.
std::size_t end_of_record(std::string_view text) noexcept {
  std::size_t end = text.find('\n');
  while (end != std::string_view::npos && end + 1 < text.size() && text[end + 1] == ' ')
    end = text.find('\n', end + 1);
  return end == std::string_view::npos ? end : end + 1;
}

}  // namespace

std::optional<KernelRecord> parse_record(std::string_view record) {
  constexpr std::string_view kDevice = " DEVICE=+pci:";
  const std::size_t separator = record.find(';');
  if (separator == std::string_view::npos) return std::nullopt;
  std::string_view prefix = record.substr(0, separator);
  const auto priority = parse_number<unsigned>(take_until(prefix, ','));
  const auto sequence = parse_number<std::uint64_t>(take_until(prefix, ','));
  const auto microseconds = parse_number<std::int64_t>(take_until(prefix, ','));
  constexpr std::int64_t kMostMicroseconds = INT64_MAX / 1000;
  if (!priority || !sequence || !microseconds) return std::nullopt;
  if (*microseconds < 0 || *microseconds > kMostMicroseconds) return std::nullopt;
  std::string_view lines = record.substr(separator + 1);
  KernelRecord result{*priority / kLevels, *sequence, std::chrono::microseconds(*microseconds),
                      unescaped(take_until(lines, '\n'))};
  while (!lines.empty()) {
    const std::string_view line = take_until(lines, '\n');
    if (line.starts_with(kDevice)) result.pci_address = unescaped(line.substr(kDevice.size()));
  }
  return result;
}

Result<KernelLog> KernelLog::open(const std::string& path) {
  Descriptor file(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  if (!file) return Error(path + ": " + std::generic_category().message(errno));
  return KernelLog(std::move(file));
}

// Each read of /dev/kmsg returns one whole record. A read after an overrun fails with EPIPE, and the next one
// goes on with the oldest record; EINVAL skips one that the buffer is too short for.
std::optional<KernelRecord> KernelLog::next() {
  for (int overruns = 0; overruns < kMostOverruns;) {
    if (auto record = take_buffered()) return record;
    std::array<char, kLongestRecord> bytes;
    const ssize_t size = ::read(file_.number(), bytes.data(), bytes.size());
    if (size == 0 || (size < 0 && errno != EPIPE && errno != EINVAL && errno != EINTR)) return std::nullopt;
    if (size < 0) ++overruns;
    if (buffer_.size() > kMostBuffered) buffer_.clear();
    if (size > 0) buffer_.append(bytes.data(), static_cast<std::size_t>(size));
  }
  return std::nullopt;
}

std::optional<KernelRecord> KernelLog::take_buffered() {
  while (true) {
    const std::size_t end = end_of_record(buffer_);
    if (end == std::string::npos) return std::nullopt;
    std::optional<KernelRecord> record = parse_record(std::string_view(buffer_).substr(0, end));
    buffer_.erase(0, end);
    if (!record) continue;
    if (expected_ && record->sequence > *expected_) lost_ += record->sequence - *expected_;
    expected_ = std::max(expected_.value_or(0), record->sequence + 1);
    return record;
  }
}

}  // namespace gpumeter::kernel
