#include <string_view>

#include "programs/profiler/command.hpp"
#include "programs/profiler/profiler.hpp"
#include "programs/service/service.hpp"

int main(int argc, char** argv) {
  using namespace gpumeter;
  if (argc > 1 && std::string_view(argv[1]) == "profile")
    return profiles::ask_for_profile(argc - 1, argv + 1);
  profiles::take_passed_socket();
  return service::run(
      {"gpumeter-profiler", "Takes profiles of jobs on request and by condition.", profiles::kPart}, argc,
      argv);
}
