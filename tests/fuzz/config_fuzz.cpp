// A configuration file gives either a configuration or problems, and each problem names its file.
#include "config/config.hpp"
#include "daemon/setup.hpp"
#include "tests/fuzz/fuzz.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace gpumeter;
  using Kind = OptionSchema::Kind;
  static const config::Schema kSchema = {
      .sections = schema().sections,
      .collectors = {
          {"amd", {{"ids_file", Kind::text, "/usr/share/libdrm/amdgpu.ids", "Names."}}},
          {"simulated",
           {{"devices", Kind::integer, "2", "How many."},
            {"load", Kind::number, "0.5", "How busy."},
            {"period", Kind::duration, "5m", "How long."},
            {"events", Kind::list, "", "What happens."}}},
      }};
  const config::Loaded loaded = config::load_text(fuzz::text_of(data, size), "fuzz.yaml", kSchema);
  for (const options::Problem& problem : loaded.problems) {
    fuzz::expect(!problem.text.empty() && to_string(problem).starts_with("fuzz.yaml:"));
  }
  return 0;
}
