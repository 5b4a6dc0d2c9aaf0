// Lines of the kernel's log, in all formats of the tools that print it.
#include "collectors/events/log.hpp"
#include "tests/fuzz/fuzz.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace gpumeter;
  events::LogReader reader;
  std::string_view text = fuzz::text_of(data, size);
  while (!text.empty()) {
    const std::optional<events::Event> event = reader.take(take_until(text, '\n'));
    if (!event) continue;
    fuzz::expect(event->text.size() <= events::kLongestText && event->number_count <= events::kMostNumbers);
    fuzz::expect(event->pci.empty() || event->pci.size() >= 12);
    const bool has_code = event->kind == events::Kind::xid || event->kind == events::Kind::sxid;
    fuzz::expect(event->code.has_value() == has_code && (event->message != nullptr) != has_code);
    const events::Verdict verdict = verdict_of(*event);
    fuzz::expect(!verdict.meaning.empty() && !to_string(verdict.severity).empty());
    // Whoever must leave the GPU alone is never told to take it away.
    fuzz::expect(verdict.severity != events::Severity::none || verdict.action <= events::Action::restart_job);
  }
  return 0;
}
