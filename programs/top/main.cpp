#include <curl/curl.h>

#include <cstdio>
#include <exception>
#include <variant>

#include "programs/top/app.hpp"
#include "programs/top/options.hpp"

int main(int argc, char** argv) {
  using namespace gpumeter::top;
  try {
    curl_global_init(CURL_GLOBAL_DEFAULT);
    const auto parsed = parse_options(argc, argv);
    if (const auto* exit = std::get_if<Exit>(&parsed)) {
      std::fputs(exit->text.c_str(), exit->code == 0 ? stdout : stderr);
      return exit->code;
    }
    return run(std::get<Options>(parsed));
  } catch (const std::exception& problem) {
    std::fprintf(stderr, "gpumeter-top: %s\n", problem.what());
    return 1;
  }
}
