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
};
constexpr Companion kCompanions[] = {{"import", "gpumeter-import"}, {"top", "gpumeter-top"}};

}  // namespace

std::optional<int> run_companion(int argc, char* const* argv) {
  if (argc < 2) return std::nullopt;
  const auto* const companion =
      std::ranges::find(kCompanions, std::string_view(argv[1]), &Companion::command);
  if (companion == std::end(kCompanions)) return std::nullopt;
  const char* const program = companion->program;
  std::error_code ignored;
  const auto self = std::filesystem::read_symlink("/proc/self/exe", ignored);
  // argv[1] becomes the program's own name in its argv[0].
  if (!ignored) execv((self.parent_path() / program).c_str(), argv + 1);
  execvp(program, argv + 1);
  std::fprintf(stderr, "gpumeter: %s cannot be run: %s\n", program, std::strerror(errno));
  return 1;
}

}  // namespace gpumeter
