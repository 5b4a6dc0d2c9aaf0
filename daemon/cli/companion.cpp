#include "daemon/cli/companion.hpp"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <string_view>
#include <system_error>

namespace gpumeter {
namespace {

struct Companion {
  std::string_view command;
  const char* program;
  bool is_told = false;  ///< the program's first argument is the command
};
constexpr Companion kCompanions[] = {
    {"import", "gpumeter-import"}, {"profile", "gpumeter-profiler", true}, {"top", "gpumeter-top"}};

}  // namespace

std::optional<int> run_companion(int argc, char* const* argv) {
  if (argc < 2) return std::nullopt;
  const auto* const companion =
      std::ranges::find(kCompanions, std::string_view(argv[1]), &Companion::command);
  if (companion == std::end(kCompanions)) return std::nullopt;
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
