#include "base/standard_streams.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

namespace gpumeter {

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

}  // namespace gpumeter
