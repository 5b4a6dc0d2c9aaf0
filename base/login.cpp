#include "base/login.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <system_error>

#include "base/descriptor.hpp"
#include "base/text.hpp"

namespace gpumeter {
namespace {

constexpr std::size_t kLongestLine = 1024;

Result<std::string> first_line(const std::string& path) {
  const auto failed = [&path](int error) { return Error(std::generic_category().message(error)).with(path); };
  const Descriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  struct stat facts {};
  if (!file || fstat(file.number(), &facts) != 0) return failed(errno);
  if ((facts.st_mode & S_IROTH) != 0)
    return Error(path + " has a password, and every user can read it (chmod o-r)");
  std::array<char, kLongestLine> bytes{};
  const ssize_t got = read(file.number(), bytes.data(), bytes.size());
  if (got < 0) return failed(errno);
  std::string_view text(bytes.data(), static_cast<std::size_t>(got));
  std::string_view line = take_until(text, '\n');
  if (line.ends_with('\r')) line.remove_suffix(1);
  return std::string(line);
}

}  // namespace

Result<Login> read_login(const std::string& path) {
  const Result<std::string> line = first_line(path);
  if (!line) return line.error();
  const std::size_t colon = line->find(':');
  if (colon == std::string::npos || colon == 0) return Error(path + ": its first line must be USER:PASSWORD");
  return Login{line->substr(0, colon), line->substr(colon + 1)};
}

}  // namespace gpumeter
