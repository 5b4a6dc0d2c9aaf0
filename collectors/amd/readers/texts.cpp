#include "collectors/amd/readers/texts.hpp"

#include <algorithm>
#include <array>

#include "collectors/amd/readers/sysfs_texts.hpp"

namespace gpumeter::amd::readers {
namespace {

/// As a file of integers binds: not where the card says that it lacks the value. Asking a sleeping card would
/// wake it.
Handle probed(AmdContext& context, Handle handle, Sample (*read)(AmdContext&, int) noexcept) {
  if (!handle || !context.awake()) return handle;
  return read(context, *handle).status == ReadStatus::unsupported ? std::nullopt : handle;
}

Handle bind_count(AmdContext& context, const ReadSource& source, std::string_view key) {
  const Handle file = context.lines_file(source.name);
  if (!file) return std::nullopt;
  return probed(context, context.keep(AmdContext::Entry{*file, key}), read_error_count);
}

/// What `parse` makes of a file's text.
template <class Parse>
Sample parsed(AmdContext& context, int lines_file, Parse parse) noexcept {
  const TextCache::Text lines = context.lines(lines_file);
  if (lines.status != ReadStatus::ok) return Sample::miss(lines.status);
  const std::optional<double> value = parse(lines.text);
  return value ? Sample::of(*value) : Sample::miss(ReadStatus::unsupported);
}

}  // namespace

Handle bind_ras(AmdContext& context, const ReadSource& source) {
  return bind_count(context, source, kRasSeverities[source.argument].key);
}

Handle bind_aer(AmdContext& context, const ReadSource& source) {
  return bind_count(context, source, kAerKinds[source.argument].key);
}

Sample read_error_count(AmdContext& context, int handle) noexcept {
  const AmdContext::Entry entry = context.entry(handle);
  const Sample sample =
      parsed(context, entry.lines_file, [&](std::string_view text) { return count_of(text, entry.key); });
  if (sample.status != ReadStatus::unsupported) return sample;
  const std::string_view text = context.lines(entry.lines_file).text;
  return Sample::miss(text.empty() || has_counts(text) ? ReadStatus::unsupported : ReadStatus::failed);
}

Handle bind_highest_level(AmdContext& context, const ReadSource& source) {
  return probed(context, context.lines_file(source.name), read_highest_level);
}

Sample read_highest_level(AmdContext& context, int handle) noexcept {
  return parsed(context, handle, amd::highest_level);
}

Handle bind_current_level(AmdContext& context, const ReadSource& source) {
  return probed(context, context.lines_file(source.name), read_current_level);
}

Sample read_current_level(AmdContext& context, int handle) noexcept {
  return parsed(context, handle, amd::current_level);
}

Handle bind_links(AmdContext& context, const ReadSource& source) {
  return probed(context, context.lines_file(source.name), read_links);
}

Sample read_links(AmdContext& context, int handle) noexcept {
  return parsed(context, handle, amd::sum_of_links);
}

Handle bind_bad_pages(AmdContext& context, const ReadSource& source) {
  return probed(context, context.text_file(source.name), read_bad_pages);
}

// Lines are "0x000a1b2c : 0x00001000 : R" (kernel 6.12, amdgpu_ras_sysfs_badpages_read), so a capital R is a
// flag; the file has no bound but the kernel gives a page of it at a time.
Sample read_bad_pages(AmdContext& context, int handle) noexcept {
  std::array<char, 4096> buffer{};
  std::size_t offset = 0;
  std::ptrdiff_t pages = 0;
  for (;;) {
    const sysfs::Bytes bytes = context.text(handle, buffer, offset);
    if (bytes.status != ReadStatus::ok) return Sample::miss(bytes.status);
    if (bytes.size == 0) return Sample::of(static_cast<double>(pages));
    pages += std::count(buffer.begin(), buffer.begin() + static_cast<std::ptrdiff_t>(bytes.size), 'R');
    offset += bytes.size;
  }
}

}  // namespace gpumeter::amd::readers
