#include <malloc.h>

#include <cstdio>
#include <exception>
#include <variant>

#include "collectors/builtin.hpp"
#include "daemon/actions.hpp"
#include "daemon/options.hpp"
#include "daemon/setup.hpp"

int main(int argc, char** argv) {
  using namespace gpumeter;
  mallopt(M_ARENA_MAX, 1);  // a dozen threads that hardly allocate; glibc would give each an arena of its own
  try {
    const auto schemas = schemas_of(builtin_collectors());
    const auto parsed = parse_options(argc, argv, schemas);
    if (const auto* exit = std::get_if<Exit>(&parsed)) {
      std::fputs(exit->text.c_str(), exit->code == 0 ? stdout : stderr);
      return exit->code;
    }
    return act(std::get<Options>(parsed));
  } catch (const std::exception& problem) {
    std::fprintf(stderr, "gpumeter: %s\n", problem.what());
    return 1;
  }
}
