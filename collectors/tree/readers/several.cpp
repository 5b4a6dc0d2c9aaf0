#include <string>
#include <utility>
#include <vector>

#include "collectors/tree/growth.hpp"
#include "collectors/tree/readers.hpp"
#include "collectors/tree/readers/parts.hpp"

namespace gpumeter::tree::readers {
namespace {

constexpr double kMicrosecondsPerSecond = 1e6;

double seconds_of(Nanoseconds time) noexcept { return std::chrono::duration<double>(time).count(); }

/// The files of a pattern, each open.
std::vector<int> open_all(TreeContext& context, std::string_view name) {
  std::vector<int> files;
  for (const std::string& path : context.paths().resolve_all(name)) {
    if (const std::optional<int> file = context.number_file_at(path)) files.push_back(*file);
  }
  return files;
}

/// Reads counter i of a list of files.
auto counter_of(TreeContext& context, const std::vector<int>& files, ReadStatus& failure) {
  return [&context, &files, &failure](std::size_t i) -> std::optional<double> {
    const Sample sample = context.number(files[i]);
    if (sample.status == ReadStatus::ok) return sample.value;
    failure = sample.status;
    return std::nullopt;
  };
}

}  // namespace

Reader bind_sum(TreeContext& context, const ReadSource& source) {
  std::vector<int> files = open_all(context, source.name);
  if (files.empty()) return {};
  return [&context, files = std::move(files)] {
    double total = 0;
    for (const int file : files) {
      const Sample part = context.number(file);
      if (part.status != ReadStatus::ok) return part;
      total += part.value;
    }
    return Sample::of(total);
  };
}

Reader bind_busiest(TreeContext& context, const ReadSource& source) {
  std::vector<int> files = open_all(context, source.name);
  if (files.empty()) return {};
  return CountingReader(BusiestTotal(), [&context, files = std::move(files)](Settled<BusiestTotal>& count) {
    ReadStatus failure = ReadStatus::ok;
    const double total = count.current().advance(files.size(), counter_of(context, files, failure));
    return failure == ReadStatus::ok ? Sample::of(total) : Sample::miss(failure);
  });
}

Reader bind_busiest_rate(TreeContext& context, const ReadSource& source) {
  std::vector<int> files = open_all(context, source.name);
  if (files.empty()) return {};
  const Nanoseconds every = std::chrono::milliseconds(source.argument);
  return [&context, files = std::move(files), every, growth = Growth(), at = Nanoseconds{},
          last = kNone]() mutable {
    const Nanoseconds elapsed = context.now() - at;
    if (elapsed < every) return last;
    at = context.now();
    ReadStatus failure = ReadStatus::ok;
    const std::optional<double> grown = growth.largest(files.size(), counter_of(context, files, failure));
    if (failure != ReadStatus::ok) return last = Sample::miss(failure);
    if (!grown || elapsed <= Nanoseconds{}) return last = kNone;
    return last = Sample::of(std::min(*grown / kMicrosecondsPerSecond / seconds_of(elapsed), 1.0));
  };
}

Reader bind_wrapping_sum(TreeContext& context, const ReadSource& source) {
  std::vector<int> files = open_all(context, source.name);
  if (files.empty()) return {};
  return CountingReader(WrappingTotal(), [&context, files = std::move(files)](Settled<WrappingTotal>& count) {
    ReadStatus failure = ReadStatus::ok;
    const double total = count.current().advance(files.size(), counter_of(context, files, failure));
    return failure == ReadStatus::ok ? Sample::of(total) : Sample::miss(failure);
  });
}

}  // namespace gpumeter::tree::readers
