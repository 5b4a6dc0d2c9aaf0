// Answers of the profiler service of TensorFlow and JAX.
#include "programs/profiler/services.hpp"
#include "tests/fuzz/fuzz.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace gpumeter;
  const auto is_empty = profiles::parse_profile_response(fuzz::text_of(data, size));
  fuzz::expect(is_empty || !is_empty.error().message().empty());
  return 0;
}
