#include "daemon/state/durable_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <string_view>
#include <system_error>

#include "base/descriptor.hpp"

namespace gpumeter {
namespace {

Error system_error(const std::string& what) { return Error(what + ": " + std::strerror(errno)); }

/// O_NONBLOCK: open() must not wait for the other end of a FIFO.
Result<Descriptor> open_regular(const std::string& path, int flags) {
  Descriptor file(open(path.c_str(), flags | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, 0644));
  struct stat status {};
  if (!file || fstat(file.number(), &status) != 0) return system_error(path);
  if (!S_ISREG(status.st_mode)) return Error(path + ": is not a regular file");
  return file;
}

/// Only root can give the file away. Everyone else owns both the folder and the file.
void give_to_owner_of(const std::string& folder, const Descriptor& file) {
  struct stat status {};
  if (geteuid() != 0 || stat(folder.c_str(), &status) != 0) return;
  [[maybe_unused]] const int ignored = fchown(file.number(), status.st_uid, status.st_gid);
}

// A signal or a nearly full disk may cut a write short.
Result<Done> write_all(const Descriptor& file, const std::string& path, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = write(file.number(), text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return system_error(path);
    if (written == 0) return Error(path + ": No space left on device");
    text.remove_prefix(static_cast<std::size_t>(written));
  }
  return Done{};
}

Result<Done> write_new(const std::string& folder, const std::string& path, const std::string& text,
                       Outlives event) {
  const Result<Descriptor> file = open_regular(path, O_WRONLY | O_CREAT | O_TRUNC);
  if (!file) return file.error();
  give_to_owner_of(folder, *file);
  if (Result<Done> written = write_all(*file, path, text); !written) return written;
  if (event == Outlives::power_cut && fsync(file->number()) != 0) return system_error(path);
  return Done{};
}

/// Makes a rename in the folder durable. Not all file systems can: EINVAL.
Result<Done> sync_folder(const std::string& path) {
  const Descriptor folder(open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  const bool is_done = folder && (fsync(folder.number()) == 0 || errno == EINVAL);
  if (!is_done) return system_error(path);
  return Done{};
}

}  // namespace

Result<std::string> read_state_file(const std::string& path, std::size_t most) {
  const Result<Descriptor> file = open_regular(path, O_RDONLY);
  if (!file) return file.error();
  std::string text;
  std::array<char, 16384> piece;
  while (text.size() <= most) {
    const ssize_t got = read(file->number(), piece.data(), piece.size());
    if (got == 0) return text;
    if (got < 0 && errno != EINTR) return system_error(path);
    if (got > 0) text.append(piece.data(), static_cast<std::size_t>(got));
  }
  return Error(path + ": is larger than " + std::to_string(most) + " bytes");
}

Result<Done> replace_state_file(const std::string& folder, const std::string& name, const std::string& text,
                                Outlives event) {
  std::error_code ignored;
  std::filesystem::create_directories(folder, ignored);
  const std::string path = folder + "/" + name;
  if (Result<Done> written = write_new(folder, path + ".new", text, event); !written) return written;
  if (std::rename((path + ".new").c_str(), path.c_str()) != 0) return system_error(path);
  return event == Outlives::power_cut ? sync_folder(folder) : Result<Done>(Done{});
}

void set_aside(const std::string& path) {
  std::error_code ignored;
  std::filesystem::rename(path, path + ".bad", ignored);
}

std::string machine_id_in(const std::string& path) {
  constexpr std::size_t kMost = 4096;
  const Result<std::string> text = read_state_file(path, kMost);
  const std::string id = text ? text->substr(0, text->find('\n')) : "";
  constexpr std::size_t kDigits = 32;
  return id.size() == kDigits && id.find_first_not_of("0123456789abcdef") == std::string::npos ? id : "";
}

}  // namespace gpumeter
