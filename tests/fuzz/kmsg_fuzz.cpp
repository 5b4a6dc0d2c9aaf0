// Records of /dev/kmsg, one a line with the lines of its dictionary, and what repeats in them.
#include <algorithm>
#include <chrono>

#include "base/text.hpp"
#include "collectors/events/line.hpp"
#include "collectors/kernel/kmsg.hpp"
#include "collectors/kernel/repetition.hpp"
#include "tests/fuzz/fuzz.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace gpumeter;
  kernel::Repetition repetition;
  Nanoseconds now{};
  std::string_view text = fuzz::text_of(data, size);
  while (!text.empty()) {
    std::size_t end = text.find('\n');
    while (end < text.size() - 1 && text[end + 1] == ' ') end = text.find('\n', end + 1);
    const std::string_view one = text.substr(0, end);
    text.remove_prefix(std::min(text.size(), one.size() + 1));
    const std::optional<kernel::KernelRecord> record = kernel::parse_record(one);
    if (!record) continue;
    fuzz::expect(record->text.size() + record->pci_address.size() <= one.size());
    fuzz::expect(record->since_boot >= Nanoseconds{0} && one.find(';') != std::string_view::npos);
    const std::optional<events::Event> event = events::parse(record->text);
    if (!event) continue;
    now = std::max(now, record->since_boot);
    repetition.take(*event, record->since_boot, size % 3, !record->is_of_kernel());
    for (const kernel::Repetition::Found& each : repetition.found(now))
      fuzz::expect(each.code != 0 && each.text.starts_with("XID ") && each.pci_address.size() >= 12);
  }
  return 0;
}
