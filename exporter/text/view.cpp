#include "exporter/text/view.hpp"

#include <utility>

#include "exporter/text/protobuf.hpp"
#include "exporter/text/syntax.hpp"

namespace gpumeter {
namespace {

void append_line(std::string_view prefix, double value, std::string& out) {
  char number[kValueTextMax + 1];
  char* end = write_value(number, value);
  *end++ = '\n';
  out.append(prefix).append(number, end);
}

void append_created(const Family& family, const Series& series, double since, std::string& out) {
  append_created_prefix(family.descriptor(), series.labels(), out);
  append_line({}, since, out);
}

/// Selects series by their collector. Compares names once for consecutive series of the same source.
class CollectorChoice {
 public:
  explicit CollectorChoice(const Filter& filter) : filter_(filter), all_(filter.empty()) {}

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

/// One page that is being rendered.
struct Request {
  Format format;
  CollectorChoice collectors;
  PageTime now;
};

/// The bytes before the number of each series of a list, by position.
class Prefixes {
 public:
  bool empty() const noexcept { return ends_.empty(); }
  /// Calls make(labels, part, bytes), which appends those of one series.
  template <class Make>
  void renew(const Family& family, const FamilySeries& series, Make&& make) {
    std::string made;
    family.for_each_listed([&](const Labels& labels, SeriesPart part) {
      if (series.may_show(ends_.size())) make(labels, part, made);
      ends_.push_back(static_cast<std::uint32_t>(made.size()));
    });
    ends_.shrink_to_fit();
    bytes_ = std::string(made);  // copied, to drop the excess capacity
  }
  std::string_view operator[](std::size_t position) const noexcept {
    const std::size_t begin = position == 0 ? 0 : ends_[position - 1];
    return {bytes_.data() + begin, ends_[position] - begin};
  }

 private:
  std::string bytes_;                ///< of all series, concatenated
  std::vector<std::uint32_t> ends_;  ///< end of each one
};

}  // namespace

/// A family's selected series, and the bytes that stay the same from page to page.
struct TextView::FamilyText {
  FamilySeries series = {};
  std::array<std::string, kFormatCount> headers = {};
  Prefixes lines = {};
  Prefixes messages = {};  ///< the labels of each series in protobuf; empty until a page needs them

  /// The list of series changed, or this is another family in the place of one that was removed.
  void forget() {
    headers = {};
    lines = messages = {};
  }

  /// Appends the family's series on the page, below its header.
  void append_lines(const Family& family, Request& request, std::string& out) {
    if (lines.empty()) {
      lines.renew(family, series, [&family](const Labels& labels, SeriesPart part, std::string& to) {
        append_line_prefix(family.descriptor(), part, labels, to);
      });
    }
    bool is_mentioned = false;
    series.for_each(family, request.now, [&](const Series& line, const Shown& shown) {
      if (!request.collectors.wants(line)) return;
      if (!std::exchange(is_mentioned, true)) out += header(family.descriptor(), request.format);
      append_line(lines[line.position()], shown.value, out);
      const bool has_start = shown.since > 0 && request.format == Format::openmetrics;
      if (has_start) append_created(family, line, shown.since, out);
    });
  }

  void append_message(const Family& family, Request& request, std::string& out) {
    if (messages.empty()) {
      messages.renew(family, series, [](const Labels& labels, SeriesPart part, std::string& to) {
        if (part == SeriesPart::value) to += protobuf::label_fields(labels);
      });
    }
    protobuf::FamilyMessage message(family.descriptor());
    series.for_each(family, request.now, [&](const Series& each, const Shown& shown) {
      if (request.collectors.wants(each)) message.add(each, messages[each.position()], shown);
    });
    message.append_to(out, header(family.descriptor(), request.format));
  }

  const std::string& header(const MetricDescriptor& family, Format format) {
    std::string& header = headers[static_cast<std::size_t>(format)];
    if (!header.empty()) return header;
    header = format == Format::protobuf ? protobuf::family_fields(family) : family_header(family, format);
    return header;
  }
};

TextView::TextView(const Store& store) : TextView(store, system_) {}
TextView::TextView(const Store& store, const Clock& clock) : store_(store), clock_(clock) {}
TextView::~TextView() = default;

void TextView::select(PageSelection selection) {
  const MutexLock lock(mutex_);
  selection_ = std::move(selection);
  ++selected_;
}

Rendered TextView::render(Format format, const Filter& filter) {
  constexpr std::size_t kSlack = 4096;  // for numbers that gain a digit
  Rendered page;
  const MutexLock lock(mutex_);
  Request request{format, CollectorChoice(filter), {clock_.monotonic(), clock_.realtime()}};
  std::size_t& last_size = last_size_[static_cast<std::size_t>(format)];
  if (filter.empty()) page.text.reserve(last_size + kSlack);
  page.generation = store_.walk([&](const Family& family) GPUMETER_REQUIRES(mutex_) {
    if (family.id() >= families_.size()) families_.resize(family.id() + 1);
    FamilyText& text = families_[family.id()];
    if (text.series.refresh(family, selection_, selected_)) text.forget();
    format == Format::protobuf ? text.append_message(family, request, page.text)
                               : text.append_lines(family, request, page.text);
  });
  if (format == Format::openmetrics) page.text += kOpenMetricsEnd;
  if (filter.empty()) last_size = page.text.size();
  return page;
}

}  // namespace gpumeter
