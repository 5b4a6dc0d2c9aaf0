#include "daemon/cli/companion.hpp"

#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <string_view>
#include <system_error>

namespace gpumeter {

std::optional<int> run_companion(int argc, char* const* argv) {
  constexpr const char* kProgram = "gpumeter-top";
  if (argc < 2 || std::string_view(argv[1]) != "top") return std::nullopt;
  std::error_code ignored;
  const auto self = std::filesystem::read_symlink("/proc/self/exe", ignored);
  // argv[1] becomes the program's own name in its argv[0].
  if (!ignored) execv((self.parent_path() / kProgram).c_str(), argv + 1);
  execvp(kProgram, argv + 1);
  std::fprintf(stderr, "gpumeter: %s cannot be run: %s\n", kProgram, std::strerror(errno));
  return 1;
}

}  // namespace gpumeter
