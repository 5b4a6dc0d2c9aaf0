#include "daemon/cli/companion.hpp"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <span>
#include <string_view>
#include <system_error>

namespace gpumeter {
namespace {

/// nullptr: the command line names no command.
const Companion* companion_of(std::span<char* const> arguments) {
  for (std::size_t i = 1; i < arguments.size(); ++i) {
    const auto companion =
        std::ranges::find(kCompanions, std::string_view(arguments[i]), &Companion::command);
    if (companion != kCompanions.end() && (i == 1 || !companion->is_first)) return companion;
  }
  return nullptr;
}

}  // namespace

std::optional<int> run_companion(int argc, char* const* argv) {
  const Companion* const companion = companion_of({argv, static_cast<std::size_t>(argc)});
  if (companion == nullptr) return std::nullopt;
  const char* const program = companion->program;
  // argv[1] becomes the program's own name in its argv[0], unless the program does other things too.
  char* const* const arguments = companion->is_told ? argv : argv + 1;
  std::error_code ignored;
  const auto self = std::filesystem::read_symlink("/proc/self/exe", ignored);
  const auto beside = self.parent_path() / program;
  if (!ignored) execv(beside.c_str(), arguments);
  const bool lacks_interpreter = errno == ENOENT && access(beside.c_str(), F_OK) == 0;
  execvp(program, arguments);
  const char* const why =
      lacks_interpreter ? "it requires /usr/bin/python3, which is not installed" : std::strerror(errno);
  std::fprintf(stderr, "gpumeter: %s cannot be run: %s\n", program, why);
  return 1;
}

}  // namespace gpumeter
