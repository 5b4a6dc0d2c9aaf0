// Parsers of sysfs texts: integers, PCI addresses, link speeds, words; levels, counts, links.
#include <cmath>
#include <optional>
#include <string>

#include "collectors/amd/card.hpp"
#include "collectors/files/text.hpp"
#include "collectors/sources/pci.hpp"
#include "collectors/sources/sysfs.hpp"
#include "tests/fuzz/fuzz.hpp"

namespace {

// Files with several values: clock levels, error counts, links.
void expect_lists(std::string_view text) {
  using namespace gpumeter;
  const std::optional<double> highest = amd::highest_level(text);
  const std::optional<double> current = amd::current_level(text);
  fuzz::expect(!highest || (std::isfinite(*highest) && *highest >= 0));
  fuzz::expect(!current || (highest && *current <= *highest) || text.find("S:") != std::string_view::npos);
  const std::optional<double> links = amd::sum_of_links(text);
  fuzz::expect(!links || (std::isfinite(*links) && *links >= 0));
  for (const char* const key : {"ue", "ce", "de", "RxErr", "TLP", "PCRC_CHECK"}) {
    const std::optional<double> count = files::count_of(text, key);
    fuzz::expect(!count || (std::isfinite(*count) && files::has_counts(text)));
  }
}

}  // namespace

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
  expect_lists(text);
  return 0;
}
