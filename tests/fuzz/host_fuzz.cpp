// Texts of the host: /proc/pressure and a cgroup's cpu.stat.
#include "collectors/host/part.hpp"
#include "tests/fuzz/fuzz.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace gpumeter;
  const std::string_view text = fuzz::text_of(data, size);
  const host::Pressure pressure = host::parse_pressure(text);
  fuzz::expect(pressure.some.value_or(0) >= 0 && pressure.full.value_or(0) >= 0);
  fuzz::expect(host::parse_cpu_stat(text).value_or(0) >= 0);
  return 0;
}
