#include "collectors/sources/sysfs.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>
#include <system_error>
#include <utility>

#include "base/text.hpp"

namespace gpumeter::sysfs {
namespace {

constexpr std::size_t kPage = 4096;       // the longest text of sysfs
constexpr std::size_t kIntegerText = 64;  // 20 digits, a sign, a newline, and room to detect more

Descriptor open_read_only(const std::string& path) noexcept {
  int number = -1;
  do {
    number = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
  } while (number < 0 && errno == EINTR);
  return Descriptor(number);
}

/// Length of the run of digits at the start of `text`.
std::size_t digits(std::string_view text) noexcept {
  return std::min(text.find_first_not_of("0123456789"), text.size());
}

/// Compares runs of digits by value, as in a natural sort.
bool by_number(std::string_view left, std::string_view right) noexcept {
  while (!left.empty() && !right.empty()) {
    const std::size_t left_digits = digits(left);
    const std::size_t right_digits = digits(right);
    if (left_digits != right_digits) return left_digits < right_digits;
    const std::size_t run = std::max<std::size_t>(left_digits, 1);
    if (const int order = left.substr(0, run).compare(right.substr(0, run)); order != 0) return order < 0;
    left.remove_prefix(run);
    right.remove_prefix(run);
  }
  return left.size() < right.size();
}

/// Decimal digits and at most a line's end, as in most files; nullopt: another form.
std::optional<std::int64_t> plain_number(std::string_view text) noexcept {
  constexpr std::size_t kMostDigits = 18;  // every such number fits
  if (text.ends_with('\n')) text.remove_suffix(1);
  if (text.empty() || text.size() > kMostDigits) return std::nullopt;
  std::int64_t value = 0;
  for (const char each : text) {
    const auto digit = static_cast<unsigned char>(each - '0');
    if (digit > 9) return std::nullopt;
    value = 10 * value + digit;
  }
  return value;
}

}  // namespace

File::File(const std::string& path) noexcept
    : descriptor_(open_read_only(path)), status_(descriptor_ ? ReadStatus::ok : status_of(errno)) {
  if (!descriptor_ && status_ != ReadStatus::gone) path_ = path;
}

void File::retry() noexcept {
  if (path_.empty() || descriptor_) return;
  descriptor_ = open_read_only(path_);
  status_ = descriptor_ ? ReadStatus::ok : status_of(errno);
}

Bytes File::read(std::span<char> buffer, std::size_t offset) const noexcept {
  if (!descriptor_) return {0, status_};
  ssize_t size = -1;
  do {
    size = ::pread(descriptor_.number(), buffer.data(), buffer.size(), static_cast<off_t>(offset));
  } while (size < 0 && errno == EINTR);
  if (size < 0) return {0, status_of(errno)};
  return {static_cast<std::size_t>(size), ReadStatus::ok};
}

Sample File::read_integer() const noexcept {
  std::array<char, kIntegerText> buffer;
  const Bytes bytes = read(buffer);
  if (bytes.status != ReadStatus::ok) return Sample::miss(bytes.status);
  const std::string_view text(buffer.data(), bytes.size);
  if (const std::optional<std::int64_t> value = parse_integer(text)) {
    return Sample::of(static_cast<double>(*value));
  }
  return Sample::miss(trimmed(text).empty() ? ReadStatus::unsupported : ReadStatus::failed);
}

ReadStatus status_of(int error_number) noexcept {
  switch (error_number) {
    case ENODEV:
    case ENOENT:
      return ReadStatus::gone;
    case EACCES:
    case EPERM:
      return ReadStatus::denied;
    case ETIMEDOUT:
    case ETIME:
      return ReadStatus::timeout;
    case EOPNOTSUPP:
    case ENODATA:
    case EINVAL:
    case ENOSYS:
      return ReadStatus::unsupported;
    default:
      return ReadStatus::failed;
  }
}

// Every sampling cycle runs this, so it does not search for the text's end as trimmed() does.
std::optional<std::int64_t> parse_integer(std::string_view text) noexcept {
  if (const std::optional<std::int64_t> plain = plain_number(text)) return plain;
  const auto is_blank = [](char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; };
  while (!text.empty() && is_blank(text.front())) text.remove_prefix(1);
  const bool hexadecimal = text.starts_with("0x") || text.starts_with("0X");
  if (hexadecimal) text.remove_prefix(2);
  if (hexadecimal && text.starts_with('-')) return std::nullopt;
  const auto value = take_number<std::int64_t>(text, hexadecimal ? 16 : 10);
  const auto rest = std::find_if_not(text.begin(), text.end(), is_blank);
  return rest == text.end() || *rest == '\0' ? value : std::nullopt;
}

std::string_view trimmed(std::string_view text) noexcept {
  return gpumeter::trimmed(text.substr(0, text.find('\0')));
}

std::string read_text(const std::string& path) {
  std::array<char, kPage> buffer{};
  const Bytes bytes = File(path).read(buffer);
  return std::string(trimmed({buffer.data(), bytes.size}));
}

std::optional<std::int64_t> read_integer(const std::string& path) { return parse_integer(read_text(path)); }

ReadStatus probe(const std::string& path) {
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) {
    return list(path).empty() ? ReadStatus::unsupported : ReadStatus::ok;
  }
  const File file(path);
  std::array<char, kPage> buffer{};
  const Bytes bytes = file.read(buffer);
  const bool is_empty = bytes.status == ReadStatus::ok && trimmed({buffer.data(), bytes.size}).empty();
  return is_empty ? ReadStatus::unsupported : bytes.status;
}

std::string link_name(const std::string& path) {
  std::error_code error;
  return std::filesystem::read_symlink(path, error).filename().string();
}

std::vector<std::string> list(const std::string& folder) {
  std::vector<std::string> names;
  std::error_code error;
  std::filesystem::directory_iterator entry(folder, error);
  for (; !error && entry != std::filesystem::directory_iterator{}; entry.increment(error)) {
    names.push_back(entry->path().filename().string());
  }
  std::sort(names.begin(), names.end(), by_number);
  return names;
}

}  // namespace gpumeter::sysfs
