#include "collectors/import/files.hpp"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "base/descriptor.hpp"

namespace gpumeter::import {
namespace {

Error system_error() { return Error(std::strerror(errno)); }

constexpr double kNanosecond = 1e-9;

Result<std::string> read_all(int descriptor) {
  std::string text;
  std::array<char, 65'536> part{};
  while (true) {
    const ssize_t count = read(descriptor, part.data(), part.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return system_error();
    if (count == 0) return text;
    text.append(part.data(), static_cast<std::size_t>(count));
    if (text.size() > kMostBytes) return Error("more than 64 MiB");
  }
}

}  // namespace

Result<File> read_file(const std::string& path) {
  const bool is_input = path == "-";
  const Descriptor opened(is_input ? dup(STDIN_FILENO) : open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!opened) return system_error();
  Result<std::string> text = read_all(opened.number());
  if (!text) return text.error();
  File file{*std::move(text), {}};
  struct stat status {};
  if (fstat(opened.number(), &status) == 0 && S_ISREG(status.st_mode)) {
    file.written = static_cast<double>(status.st_mtim.tv_sec) +
                   static_cast<double>(status.st_mtim.tv_nsec) * kNanosecond;
  }
  return file;
}

Result<Done> send_parcels(std::span<const Parcel> parcels, const std::string& socket_path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (socket_path.size() >= sizeof address.sun_path) return Error("the path is too long");
  std::ranges::copy(socket_path, address.sun_path);
  const Descriptor out(socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!out) return system_error();
  constexpr int kLargest = 1 << 18;
  setsockopt(out.number(), SOL_SOCKET, SO_SNDBUF, &kLargest, sizeof kLargest);
  if (connect(out.number(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
    return system_error();
  for (const Parcel& parcel : parcels) {
    if (send(out.number(), parcel.lines.data(), parcel.lines.size(), 0) < 0) return system_error();
  }
  return Done{};
}

}  // namespace gpumeter::import
