// The lists of containers that Docker and Podman answer.
#include "collectors/containers/part.hpp"
#include "tests/fuzz/fuzz.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace gpumeter;
  const auto names = containers::parse_list(fuzz::text_of(data, size));
  if (!names) return 0;
  for (const auto& [key, labels] : names->labels) {
    fuzz::expect(!key.id.empty() && !labels.empty());
    for (const Label& label : labels) fuzz::expect(label.value == cgroup::label_text(label.value));
  }
  return 0;
}
