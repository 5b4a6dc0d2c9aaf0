// Asks a profiler service: `profiler_service PORT MILLISECONDS FOLDER SESSION HOST` prints the path of the
// trace and "empty" or "full", or "failed REASON: MESSAGE".
#include <cstdio>
#include <cstdlib>

#include "programs/profiler/services.hpp"

int main(int count, char** arguments) {
  using namespace gpumeter;
  if (count != 6) return 2;
  const SystemClock clock;
  const profiles::ServiceOrder order = {.port = static_cast<std::uint16_t>(std::atoi(arguments[1])),
                                        .duration = std::chrono::milliseconds(std::atoi(arguments[2])),
                                        .folder = arguments[3],
                                        .session = arguments[4],
                                        .host = arguments[5],
                                        .is_host_traced = true};
  const profiles::ServiceAnswer answer = profiles::ask_service(order, clock);
  if (answer.error.empty()) {
    std::printf("%s %s\n", path_of(order).c_str(), answer.is_empty ? "empty" : "full");
  } else {
    std::printf("failed %s: %s\n", std::string(to_string(answer.failure)).c_str(), answer.error.c_str());
  }
  return 0;
}
