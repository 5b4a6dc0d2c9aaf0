// The compute driver's event stream, in one read and byte by byte.
#include <vector>

#include "collectors/amd/events.hpp"
#include "tests/fuzz/fuzz.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace gpumeter;
  const std::string_view text = fuzz::text_of(data, size);
  std::vector<std::size_t> at_once;
  std::vector<std::size_t> in_parts;
  amd::SmiStream whole;
  whole.add(text, [&](std::size_t place) { at_once.push_back(place); });
  amd::SmiStream parts;
  for (std::size_t i = 0; i < text.size(); ++i)
    parts.add(text.substr(i, 1), [&](std::size_t place) { in_parts.push_back(place); });
  fuzz::expect(at_once == in_parts);
  for (const std::size_t place : at_once) fuzz::expect(place < amd::kEventCount);
  return 0;
}
