#include "collectors/amd/rows/modes.hpp"

namespace gpumeter::amd::readers {

Handle bind_mode(AmdContext& context, const ReadSource& source) {
  const Handle file = context.lines_file(source.name);
  const bool refused = file && context.awake() && context.lines(*file).status != ReadStatus::ok;
  if (!file || refused) return std::nullopt;
  return context.keep(AmdContext::Entry{*file, kModes[source.argument].word});
}

Sample read_mode(AmdContext& context, int handle) noexcept {
  const AmdContext::Entry entry = context.entry(handle);
  const TextCache::Text lines = context.lines(entry.lines_file);
  if (lines.status != ReadStatus::ok) return Sample::miss(lines.status);
  return Sample::of(sysfs::trimmed(lines.text) == entry.key ? 1 : 0);
}

}  // namespace gpumeter::amd::readers
