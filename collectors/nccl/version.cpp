#include "collectors/nccl/version.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>

#include "base/descriptor.hpp"
#include "base/text.hpp"

namespace gpumeter::nccl {
namespace {

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
  for (std::size_t read = 0; read < Libraries::kMostSearched;) {
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

}  // namespace

std::string to_string(const Version& version) {
  return std::to_string(version.major) + "." + std::to_string(version.minor) + "." +
         std::to_string(version.patch);
}

std::optional<Version> take_version(std::string_view& text) noexcept {
  const auto major = take_number<unsigned>(text);
  if (!major || !text.starts_with('.')) return std::nullopt;
  text.remove_prefix(1);
  const auto minor = take_number<unsigned>(text);
  if (!minor || !text.starts_with('.')) return std::nullopt;
  text.remove_prefix(1);
  const auto patch = take_number<unsigned>(text);
  if (!patch) return std::nullopt;
  return Version{*major, *minor, *patch};
}

std::optional<Version> parse_version(std::string_view text) noexcept {
  const auto version = take_version(text);
  return text.empty() ? version : std::nullopt;
}

bool is_library(std::string_view file_name) noexcept {
  return file_name.starts_with("libnccl.so") || file_name.starts_with("librccl.so");
}

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

std::optional<Version> Libraries::version_of(const std::string& root, const Mapping& mapping) {
  if (const auto version = version_in_name(file_name_of(mapping.path))) return version;
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
