#include <chrono>
#include <cstdio>
#include <exception>

#include "programs/held/options.hpp"

namespace {

using namespace gpumeter;
using namespace gpumeter::held;

std::chrono::seconds since_1970() {
  return std::chrono::duration_cast<std::chrono::seconds>(
      std::chrono::system_clock::now().time_since_epoch());
}

int run(const Settings& settings) {
  const Result<Outcome> outcome = pass(settings, ask, since_1970());
  if (!outcome) {
    std::fprintf(stderr, "gpumeter-held: %s\n", outcome.error().message().c_str());
    return 1;
  }
  for (const std::string& failure : outcome->failures) {
    std::fprintf(stderr, "gpumeter-held: %s\n", failure.c_str());
  }
  if (outcome->entered > 0) {
    std::printf("%zu jobs, %zu control groups entered\n", outcome->jobs, outcome->entered);
  }
  return outcome->failures.empty() ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const auto parsed = parse_options(argc, argv);
    if (const auto* exit = std::get_if<Exit>(&parsed)) {
      std::fputs(exit->text.c_str(), exit->code == 0 ? stdout : stderr);
      return exit->code;
    }
    return run(std::get<Settings>(parsed));
  } catch (const std::exception& problem) {
    std::fprintf(stderr, "gpumeter-held: %s\n", problem.what());
    return 1;
  }
}
