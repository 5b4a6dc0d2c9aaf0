// Files of other benchmarks, through the parser of every format, with and without the line ends that a cut
// file lacks.
#include <algorithm>
#include <string>

#include "collectors/import/formats/formats.hpp"
#include "collectors/import/mapping.hpp"
#include "tests/fuzz/fuzz.hpp"

namespace gpumeter::import {
namespace {

using fuzz::expect;

/// "12: the reason".
bool has_place(const std::string& message) {
  const std::size_t colon = message.find(": ");
  return colon != std::string::npos && colon > 0 && message.find_first_not_of("0123456789") == colon;
}

/// What the daemon takes: lines of a bounded length, without a character that would end a tag.
void check(const Parcel& parcel) {
  expect(parcel.lines.ends_with('\n') && parcel.lines.size() < 65'536);
  for (std::size_t begin = 0; begin < parcel.lines.size();) {
    const std::size_t end = parcel.lines.find('\n', begin);
    const std::string_view line(parcel.lines.data() + begin, end - begin);
    expect(line.starts_with("gpu.benchmark.") && std::ranges::count(line, '|') == 2);
    begin = end + 1;
  }
}

void parse(std::string_view text, const Format& format) {
  const Result<Sheet> sheet = parse_file(format, text, {"host"});
  if (!sheet) return expect(has_place(sheet.error().message()));
  expect(!sheet->gpus.empty());
  Mapping mapping;
  for (const auto& [number, gpu] : sheet->gpus) mapping.by_number[number] = "gpu:" + std::to_string(number);
  const auto parcels = parcels_of(*sheet, mapping, 1);
  expect(parcels && parcels->size() == sheet->gpus.size());
  std::ranges::for_each(*parcels, check);
}

}  // namespace
}  // namespace gpumeter::import

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace gpumeter;
  const std::string_view text = fuzz::text_of(data, size);
  for (const import::Format& format : import::formats()) import::parse(text, format);
  return 0;
}
