// amdgpu's gpu_metrics: for any bytes, no field is read out of bounds, and each returned value is a number.
#include <cmath>
#include <limits>

#include "collectors/amd/gpu_metrics.hpp"
#include "tests/fuzz/fuzz.hpp"

namespace gpumeter::amd {
namespace {

// Tables have arrays of up to 8 x 8 elements, and a place counts elements in a byte.
constexpr std::size_t kElements[] = {0, 1, 2, 3, 7, 8, 31, 32, 63, 64, 127, 254, 255, 256, 100000};

// Values may be below 0: an attribute of the self-describing table may be signed, as a temperature is.
void expect_number(const Sample& sample) {
  if (sample.status == ReadStatus::ok) fuzz::expect(std::isfinite(sample.value));
}

void read_all(const GpuMetricsBlob& blob) {
  for (std::size_t field = 0; field < kBlobFieldCount; ++field) {
    for (const std::size_t element : kElements) {
      const Sample sample = blob.value(field, element);
      expect_number(sample);
      fuzz::expect(sample.status != ReadStatus::ok || blob.has(field));
    }
    expect_number(blob.sum(field));
    expect_number(blob.highest(field));
    for (const std::size_t parts : {1U, 2U, 8U}) expect_number(blob.highest(field, parts - 1, parts));
    expect_number(blob.flags(field).any_of(std::numeric_limits<std::uint64_t>::max()));
  }
}

}  // namespace
}  // namespace gpumeter::amd

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace gpumeter;
  static amd::GpuMetricsBlob blob;  // Static like a card's: it keeps the data that it read before.
  const std::string_view bytes = fuzz::text_of(data, size);
  const ReadStatus status = blob.parse(bytes);
  fuzz::expect(status == blob.status());
  amd::read_all(blob);
  return 0;
}
