#include <malloc.h>

#include <cstdio>
#include <exception>
#include <variant>

#include "base/program.hpp"
#include "collectors/builtin.hpp"
#include "daemon/cli/actions.hpp"
#include "daemon/cli/companion.hpp"
#include "daemon/cli/options.hpp"

int main(int argc, char** argv) {
  using namespace gpumeter;
  open_closed_streams();
  if (const auto code = run_companion(argc, argv)) return *code;
  mallopt(M_ARENA_MAX, 1);  // the dozen threads rarely allocate; otherwise glibc creates an arena for each
  // Pages and other large buffers return to the system when they are freed; otherwise glibc raises the limit
  // and keeps them.
  mallopt(M_MMAP_THRESHOLD, 64 * 1024);
  try {
    const auto parsed = parse_options(argc, argv, builtin_collectors());
    if (const auto* exit = std::get_if<Exit>(&parsed)) {
      if (exit->code == 0) return print(exit->text);
      std::fputs(exit->text.c_str(), stderr);
      return exit->code;
    }
    return act(std::get<Options>(parsed));
  } catch (const std::exception& problem) {
    std::fprintf(stderr, "gpumeter: %s\n", problem.what());
    return 1;
  }
}
