// Events of simulated devices, in the syntax of the configuration.
#include "collectors/simulated/model.hpp"
#include "tests/fuzz/fuzz.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace gpumeter;
  constexpr int kDevices = 4;
  const Result<simulated::Event> event = simulated::parse_event(fuzz::text_of(data, size), kDevices);
  if (!event) {
    fuzz::expect(!event.error().message().empty());
    return 0;
  }
  fuzz::expect(event->device >= 0 && event->device < kDevices);
  fuzz::expect(event->begin >= Nanoseconds{0} && event->begin <= event->end);
  const simulated::Timeline timeline({&*event, 1}, event->device);
  fuzz::expect(timeline.holds(event->kind, event->begin) == (event->end > event->begin));
  return 0;
}
