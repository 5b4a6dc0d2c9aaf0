#include "exporter/text/view.hpp"

#include <utility>

#include "exporter/text/syntax.hpp"

namespace gpumeter {
namespace {

void append_line(std::string_view prefix, double value, std::string& out) {
  char number[kValueTextMax + 1];
  char* end = write_value(number, value);
  *end++ = '\n';
  out.append(prefix).append(number, end);
}

}  // namespace

/// Selects series by their collector. Compares names once for consecutive series of the same source.
class TextView::Selection {
 public:
  explicit Selection(const Filter& filter) : filter_(filter), all_(filter.empty()) {}

  bool wants(const Series& series) noexcept {
    if (all_) return true;
    const std::string_view collector = series.collector();
    if (collector.data() != last_.data()) {
      last_ = collector;
      is_wanted_ = filter_.wants(collector);
    }
    return is_wanted_;
  }

 private:
  const Filter& filter_;
  const bool all_;
  std::string_view last_;
  bool is_wanted_ = filter_.wants({});
};

void TextView::FamilyText::refresh(const Family& family) {
  if (version == family.version()) return;
  version = family.version();
  std::string made;
  ends.clear();
  family.for_each_listed([&](const Labels& labels, Part part) {
    append_line_prefix(family.descriptor(), part, labels, made);
    ends.push_back(static_cast<std::uint32_t>(made.size()));
  });
  ends.shrink_to_fit();
  prefixes = std::string(made);  // copied, to drop the excess capacity
}

void TextView::FamilyText::append(const Family& family, Format format, Selection& selection,
                                  std::string& out) {
  refresh(family);
  bool is_mentioned = false;
  family.for_each([&](const Series& series) {
    if (!selection.wants(series)) return;
    if (!std::exchange(is_mentioned, true)) out += header(family.descriptor(), format);
    append_line(prefix(series.position()), series.value(), out);
  });
}

const std::string& TextView::FamilyText::header(const MetricDescriptor& family, Format format) {
  std::string& header = headers[static_cast<std::size_t>(format)];
  if (header.empty()) header = family_header(family, format);
  return header;
}

std::string_view TextView::FamilyText::prefix(std::size_t line) const noexcept {
  const std::size_t begin = line == 0 ? 0 : ends[line - 1];
  return {prefixes.data() + begin, ends[line] - begin};
}

Rendered TextView::render(Format format, const Filter& filter) {
  constexpr std::size_t kSlack = 4096;  // for numbers that gain a digit
  Rendered page;
  Selection selection(filter);
  const MutexLock lock(mutex_);
  std::size_t& last_size = last_size_[static_cast<std::size_t>(format)];
  if (filter.empty()) page.text.reserve(last_size + kSlack);
  page.generation = store_.walk([&](const Family& family) GPUMETER_REQUIRES(mutex_) {
    if (family.id() >= families_.size()) families_.resize(family.id() + 1);
    families_[family.id()].append(family, format, selection, page.text);
  });
  if (format == Format::openmetrics) page.text += kOpenMetricsEnd;
  if (filter.empty()) last_size = page.text.size();
  return page;
}

}  // namespace gpumeter
