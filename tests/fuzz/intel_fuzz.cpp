// What an Intel GPU's driver answers: throttle reasons, the texts of a PMU, memory regions, netlink messages.
#include <cmath>
#include <span>
#include <string_view>

#include "collectors/intel/gts.hpp"
#include "collectors/intel/memory.hpp"
#include "collectors/intel/pmu.hpp"
#include "collectors/intel/ras.hpp"
#include "tests/fuzz/fuzz.hpp"

namespace gpumeter::intel {
namespace {

void check_texts(std::string_view text) {
  constexpr ThrottleMask kAll = (ThrottleMask{1} << kThrottleReasonCount) - 1;
  fuzz::expect((active_reasons(text) & ~kAll) == 0);
  fuzz::expect(mask_of_reason(text) != 0);
  if (const auto field = pmu::parse_field(text)) {
    const auto nothing = field->place(0);
    fuzz::expect(nothing && *nothing == 0);
  }
  pmu::term_of(text, "event");
  const auto cpu = pmu::first_cpu(text);
  fuzz::expect(!cpu || *cpu >= 0);
  const auto engine = pmu::parse_busy_event(text);
  fuzz::expect(!engine || !engine->engine_class.empty());
}

void check_regions(const memory::Regions& regions) {
  fuzz::expect((regions.status == ReadStatus::ok) == regions.size.has_value());
  for (const auto& part : {regions.size, regions.used, regions.visible_size, regions.visible_used}) {
    fuzz::expect(!part || (std::isfinite(*part) && *part >= 0));
  }
}

void check_messages(std::span<const std::byte> bytes) {
  const std::uint32_t sequence = bytes.size() > 8 ? std::to_integer<std::uint32_t>(bytes[8]) : 0;
  ras::Messages messages(bytes, sequence);
  ras::Counts counts;
  while (const auto attributes = messages.next()) {
    ras::family_of(*attributes);
    if (const auto node = ras::node_of(*attributes)) {
      fuzz::expect(node->name.find('\0') == std::string_view::npos);
      const auto severity = ras::severity_of(node->name);
      fuzz::expect(!severity || *severity < ras::kSeverityCount);
    }
    if (const auto counter = ras::counter_of(*attributes)) counts.add(0, counter->name, 1);
  }
  fuzz::expect(messages.end().is_done || messages.end().error == 0);
}

}  // namespace
}  // namespace gpumeter::intel

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace gpumeter;
  const std::span<const std::byte> bytes = std::as_bytes(std::span(data, size));
  intel::check_texts(fuzz::text_of(data, size));
  for (const bool may_see_use : {false, true}) {
    intel::check_regions(intel::memory::decode_i915(bytes, may_see_use));
    intel::check_regions(intel::memory::decode_xe(bytes, may_see_use));
  }
  intel::check_messages(bytes);
  return 0;
}
