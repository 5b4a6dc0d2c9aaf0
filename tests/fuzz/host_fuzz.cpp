// Texts of the host: /proc/pressure and a cgroup's cpu.stat.
#include "collectors/attribution/cgroup/cpu_time.hpp"
#include "collectors/sources/host/pressure.hpp"
#include "tests/fuzz/fuzz.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace gpumeter;
  const std::string_view text = fuzz::text_of(data, size);
  const Pressure pressure = parse_pressure(text);
  fuzz::expect(pressure.some.value_or(0) >= 0 && pressure.full.value_or(0) >= 0);
  fuzz::expect(cgroup::parse_cpu_stat(text).value_or(0) >= 0);
  return 0;
}
