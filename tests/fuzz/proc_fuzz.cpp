// The texts of /proc about a process, of which any user chooses the name, the host's memory, and the option
// that shows processes on simulated GPUs.
#include <string>

#include "base/proc.hpp"
#include "collectors/simulated/collector.hpp"
#include "collectors/sources/host.hpp"
#include "tests/fuzz/fuzz.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace gpumeter;
  const std::string text(fuzz::text_of(data, size));
  for (const int number : {3, 4, 20, 22, 52, 1000}) {
    fuzz::expect(proc::stat_field(text, number).find_first_of(" \n") == std::string_view::npos);
  }
  proc::start_ticks(text);
  proc::uids(text);
  if (const auto memory = parse_meminfo(text))
    fuzz::expect(memory->available >= 0 && memory->available <= memory->total);
  // The name of a process decides nothing.
  if (text.find(')') == std::string::npos) fuzz::expect(proc::is_alive("1 (" + text + ") R 4 5 6"));
  constexpr int kDevices = 4;
  const Result<simulated::ProcessOption> option = simulated::parse_process_option(text, kDevices);
  if (!option) {
    fuzz::expect(!option.error().message().empty());
    return 0;
  }
  fuzz::expect(!option->device || (*option->device >= 0 && *option->device < kDevices));
  fuzz::expect((option->pid > 0) != !option->file.empty());
  fuzz::expect(option->busy.value_or(0) >= 0 && option->memory_bytes.value_or(0) >= 0);
  return 0;
}
