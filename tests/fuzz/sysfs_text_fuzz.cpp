// What is made of the text of a sysfs file: integers, PCI addresses, link speeds, words.
#include <string>

#include "collectors/support/pci.hpp"
#include "collectors/support/sysfs.hpp"
#include "tests/fuzz/fuzz.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace gpumeter;
  const std::string_view text = fuzz::text_of(data, size);
  const std::string_view trimmed = sysfs::trimmed(text);
  fuzz::expect(sysfs::trimmed(trimmed) == trimmed);
  fuzz::expect(sysfs::parse_integer(text) == sysfs::parse_integer(trimmed));
  if (const auto value = sysfs::parse_integer(text)) {
    fuzz::expect(sysfs::parse_integer(std::to_string(*value)) == value);
  }
  if (const auto address = pci::parse_address(text)) {
    fuzz::expect(pci::parse_address(pci::to_string(*address)) == address);
  }
  if (const auto generation = pci::link_generation(text)) fuzz::expect(*generation >= 1 && *generation <= 6);
  fuzz::expect(!pci::is_suspended(text) || !text.empty());
  fuzz::expect(!pci::vendor_word(static_cast<std::uint16_t>(size)).empty());
  fuzz::expect(!pci::is_gpu_driver({}));
  return 0;
}
