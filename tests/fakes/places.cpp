#include "tests/fakes/places.hpp"

#include <cstdlib>

namespace gpumeter::places {

constinit const char* const kFakeNvml = GPUMETER_FAKE_NVML;
constinit const char* const kFakeBlasFolder = GPUMETER_FAKE_BLAS;
constinit const char* const kFakeDcgm = GPUMETER_FAKE_DCGM;

std::string in_tests(const std::string& path) { return GPUMETER_TESTS_DIR "/" + path; }

std::string in_captures(const std::string& path) {
  const char* const told = std::getenv("GPUMETER_CAPTURES");
  return (told != nullptr ? told : in_tests("../../shared/captures")) + "/" + path;
}

}  // namespace gpumeter::places
