#include "collectors/amd/readers/texts.hpp"

#include <algorithm>
#include <array>

#include "collectors/amd/readers/sysfs_texts.hpp"

namespace gpumeter::amd::readers {
namespace {

/// What `parse` makes of a file's text.
template <class Parse>
Sample parsed(AmdContext& context, int lines_file, Parse parse) noexcept {
  const TextCache::Text lines = context.lines(lines_file);
  if (lines.status != ReadStatus::ok) return Sample::miss(lines.status);
  return sample_of(parse(lines.text));
}

using Parse = std::optional<double> (*)(std::string_view text) noexcept;
Reader bind_parsed(AmdContext& context, const ReadSource& source, Parse parse) {
  const std::optional<int> file = context.lines_file(source.name);
  if (!file) return {};
  return probed(context, [&context, file = *file, parse] { return parsed(context, file, parse); });
}

Reader bind_count(AmdContext& context, const ReadSource& source, std::string_view key) {
  const std::optional<int> file = context.lines_file(source.name);
  if (!file) return {};
  return probed(context, [&context, file = *file, key] {
    const Sample sample = parsed(context, file, [&](std::string_view text) { return count_of(text, key); });
    if (sample.status != ReadStatus::unsupported) return sample;
    const std::string_view text = context.lines(file).text;
    return Sample::miss(text.empty() || has_counts(text) ? ReadStatus::unsupported : ReadStatus::failed);
  });
}

}  // namespace

Reader bind_ras(AmdContext& context, const ReadSource& source) {
  return bind_count(context, source, kRasSeverities[source.argument].key);
}

Reader bind_aer(AmdContext& context, const ReadSource& source) {
  return bind_count(context, source, kAerKinds[source.argument].key);
}

Reader bind_highest_level(AmdContext& context, const ReadSource& source) {
  return bind_parsed(context, source, highest_level);
}

Reader bind_current_level(AmdContext& context, const ReadSource& source) {
  return bind_parsed(context, source, current_level);
}

Reader bind_links(AmdContext& context, const ReadSource& source) {
  return bind_parsed(context, source, sum_of_links);
}

// Lines are "0x000a1b2c : 0x00001000 : R" (kernel 6.12, amdgpu_ras_sysfs_badpages_read), so a capital R is a
// flag; the file has no bound but the kernel gives a page of it at a time.
Reader bind_bad_pages(AmdContext& context, const ReadSource& source) {
  const std::shared_ptr<sysfs::File> file = context.text_file(source.name);
  if (!file) return {};
  return probed(context, [file] {
    std::array<char, 4096> buffer{};
    std::size_t offset = 0;
    std::ptrdiff_t pages = 0;
    for (;;) {
      const sysfs::Bytes bytes = read_again(*file, buffer, offset);
      if (bytes.status != ReadStatus::ok) return Sample::miss(bytes.status);
      if (bytes.size == 0) return Sample::of(static_cast<double>(pages));
      pages += std::count(buffer.begin(), buffer.begin() + static_cast<std::ptrdiff_t>(bytes.size), 'R');
      offset += bytes.size;
    }
  });
}

Reader bind_mode(AmdContext& context, const ReadSource& source) {
  const std::optional<int> file = context.lines_file(source.name);
  const bool is_refused = file && context.awake() && context.lines(*file).status != ReadStatus::ok;
  if (!file || is_refused) return {};
  return [&context, file = *file, word = kModes[source.argument].word] {
    return parsed(context, file, [&](std::string_view text) {
      return std::optional<double>(sysfs::trimmed(text) == word ? 1 : 0);
    });
  };
}

}  // namespace gpumeter::amd::readers
