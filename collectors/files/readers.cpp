#include "collectors/files/readers.hpp"

#include <algorithm>
#include <array>
#include <string>
#include <utility>
#include <vector>

#include "base/text.hpp"
#include "collectors/files/text.hpp"
#include "collectors/sources/pci.hpp"

namespace gpumeter::files {
namespace {

using Handle = std::optional<int>;  // of an open file

/// A text's value by `parse`, which returns an optional number. A text that does not parse is a failed read.
template <class Parse>
Sample parsed(Context& context, int file, Parse parse) noexcept {
  const TextCache::Text text = context.text(file);
  if (text.status != ReadStatus::ok) return Sample::miss(text.status);
  if (text.text.empty()) return kNone;
  const std::optional<double> value = parse(text.text);
  return value ? Sample::of(*value) : Sample::miss(ReadStatus::failed);
}

/// Splits "a: b" or "a = b" at the separator.
std::pair<std::string_view, std::string_view> split(std::string_view name, std::string_view separator) {
  const std::size_t at = name.find(separator);
  if (at == std::string_view::npos) return {name, {}};
  return {name.substr(0, at), name.substr(at + separator.size())};
}

/// A divisor is exact where its inverse, a row's scale, is not: 1 / 1e-9 is no round number.
double divisor(const ReadSource& source) noexcept {
  return source.argument == 0 ? 1 : static_cast<double>(source.argument);
}

Reader integer_of(Context& context, const Handle& file) {
  if (!file) return {};
  return probed(context, [&context, file = *file] { return context.number(file); });
}

/// True if the file holds 0. A sleeping device is not read.
bool is_zero(Context& context, int file) {
  if (!context.awake()) return false;
  const Sample sample = context.number(file);
  return sample.status == ReadStatus::ok && sample.value == 0;
}

/// Combines both values by `combine`, or returns the reason why one is missing.
template <class Combine>
Reader combined(Context& context, Handle left, Handle right, Combine combine) {
  if (!left || !right) return {};
  return probed(context, [&context, left = *left, right = *right, combine] {
    const Sample first = context.number(left);
    const Sample second = context.number(right);
    if (first.status != ReadStatus::ok) return first;
    if (second.status != ReadStatus::ok) return second;
    return Sample::of(combine(first.value, second.value));
  });
}

}  // namespace

// One file, one value.

Reader file(Context& context, const ReadSource& source) {
  const Handle file = context.number_file(source.name);
  if (!file || source.argument == 0) return integer_of(context, file);
  const Nanoseconds every = std::chrono::milliseconds(source.argument);
  return [&context, file = *file, every, last = kNone, due = Nanoseconds{}]() mutable {
    if (last.status == ReadStatus::ok && context.now() < due) return last;
    due = context.now() + every;
    return last = context.number(file);
  };
}

Reader constant(Context& context, const ReadSource& source) {
  return integer_of(context, context.constant_file(source.name));
}

Reader nonzero(Context& context, const ReadSource& source) {
  const Handle file = context.number_file(source.name);
  return file && is_zero(context, *file) ? Reader() : integer_of(context, file);
}

Reader number(Context& context, const ReadSource& source) {
  const Handle file = context.text_file(source.name);
  if (!file) return {};
  return [&context, file = *file] { return parsed(context, file, leading_number); };
}

Reader generation(Context& context, const ReadSource& source) {
  const Handle file = context.text_file(source.name);
  if (!file) return {};
  return [&context, file = *file] {
    const TextCache::Text text = context.text(file);
    if (text.status != ReadStatus::ok) return Sample::miss(text.status);
    const std::optional<int> known = pci::link_generation(text.text);
    return known ? Sample::of(*known) : kNone;
  };
}

Reader word(Context& context, const ReadSource& source) {
  const auto [name, words] = split(source.name, " = ");
  const Handle file = context.text_file(name);
  if (!file) return {};
  return [&context, file = *file, words = words] {
    return parsed(context, file, [&](std::string_view text) {
      return std::optional<double>(is_one_of(text, words) ? 1 : 0);
    });
  };
}

Reader field(Context& context, const ReadSource& source) {
  const auto [name, valid] = split(source.name, ": ");
  const Handle file = context.text_file(name);
  if (!file) return {};
  return [&context, file = *file, valid = valid, index = static_cast<std::size_t>(source.argument)] {
    const TextCache::Text text = context.text(file);
    if (text.status == ReadStatus::ok && list_field(text.text, 0) != valid) return kNone;
    return parsed(context, file,
                  [&](std::string_view list) { return leading_number(list_field(list, index)); });
  };
}

Reader in_table(Context& context, const ReadSource& source) {
  const auto [name, place] = split(source.name, ": ");
  const auto [row, column] = split(place, ".");
  const Handle file = context.text_file(name);
  if (!file || !cell(context.text(*file).text, row, column)) return {};
  return [&context, file = *file, row = row, column = column, per = divisor(source)] {
    return parsed(context, file, [&](std::string_view table) -> std::optional<double> {
      const std::optional<double> value = cell(table, row, column);
      return value ? std::optional(*value / per) : std::nullopt;
    });
  };
}

Reader bind_count(Context& context, std::string_view name, std::string_view key) {
  const Handle file = context.text_file(name);
  if (!file) return {};
  return probed(context, [&context, file = *file, key] {
    const TextCache::Text text = context.text(file);
    if (text.status != ReadStatus::ok) return Sample::miss(text.status);
    if (const std::optional<double> count = count_of(text.text, key)) return Sample::of(*count);
    const bool has_none = text.text.empty() || has_counts(text.text);
    return Sample::miss(has_none ? ReadStatus::unsupported : ReadStatus::failed);
  });
}

Reader aer_count(Context& context, const ReadSource& source) {
  return bind_count(context, source.name, kAerKinds[source.argument].key);
}

// Uses the same reading as the rest of this pass.
Reader asleep(Context& context, const ReadSource& source) {
  const Handle file = context.text_file(source.name);
  const std::string_view status = file ? context.text(*file).text : std::string_view();
  if (status.empty() || status == "unsupported") return {};
  return [&context] { return Sample::of(context.awake() ? 0 : 1); };
}

// Several files.

namespace {

constexpr double kMicrosecondsPerSecond = 1e6;

/// Several counters that are read together. One thread.
class Growth {
 public:
  static constexpr std::size_t kMost = 64;  ///< later counters are not considered

  /// The largest growth since the last call, in the counters' unit; nullopt if there was none, or if no
  /// counter has a value. A counter that fell was reset, so its new value is its growth. `read(i)` returns
  /// counter i's value, or nullopt.
  template <class Read>
  std::optional<double> largest(std::size_t count, Read read) noexcept {
    std::optional<double> most;
    for (std::size_t i = 0; i < std::min(count, kMost); ++i) {
      const std::optional<double> value = read(i);
      if (value && last_[i])
        most = std::max(most.value_or(0), *value - (*value >= *last_[i] ? *last_[i] : 0));
      last_[i] = value;
    }
    return most;
  }

  /// The sum of the growths of counters that wrap at 32 bits.
  template <class Read>
  double wrapping_sum(std::size_t count, Read read) noexcept {
    constexpr double kTwoTo32 = 4294967296.0;
    double sum = 0;
    for (std::size_t i = 0; i < std::min(count, kMost); ++i) {
      const std::optional<double> value = read(i);
      if (value && last_[i]) sum += *value - *last_[i] + (*value < *last_[i] ? kTwoTo32 : 0);
      last_[i] = value;
    }
    return sum;
  }

 private:
  std::array<std::optional<double>, kMost> last_{};
};

/// A total of growths, for CountingReader. After restart() the next reading starts the interval.
struct GrowthTotal {
  Growth growth;
  double total = 0;
  void restart() noexcept { growth = Growth(); }
};

/// The files of a pattern, each open.
std::vector<int> open_all(Context& context, std::string_view name) {
  std::vector<int> files;
  for (const std::string& path : context.paths().resolve_all(name)) {
    if (const Handle file = context.number_file_at(path)) files.push_back(*file);
  }
  return files;
}

/// Reads counter i of a list of files.
auto counter_of(Context& context, const std::vector<int>& files, ReadStatus& failure) {
  return [&context, &files, &failure](std::size_t i) -> std::optional<double> {
    const Sample sample = context.number(files[i]);
    if (sample.status == ReadStatus::ok) return sample.value;
    failure = sample.status;
    return std::nullopt;
  };
}

/// The mean growth of a counter per second.
class MeanRate {
 public:
  /// `unsupported` until there are two readings, and after a reset of the counter.
  Sample advance(double count, Nanoseconds now) noexcept {
    const bool has_rate = last_at_ && now > *last_at_ && count >= last_;
    const Sample rate = has_rate ? Sample::of((count - last_) / to_seconds(now - *last_at_)) : kNone;
    last_ = count;
    last_at_ = now;
    return rate;
  }

 private:
  std::optional<Nanoseconds> last_at_;
  double last_ = 0;
};

}  // namespace

Reader sum(Context& context, const ReadSource& source) {
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

Reader busiest(Context& context, const ReadSource& source) {
  std::vector<int> files = open_all(context, source.name);
  if (files.empty()) return {};
  return CountingReader(GrowthTotal(), [&context, files = std::move(files)](Settled<GrowthTotal>& settled) {
    ReadStatus failure = ReadStatus::ok;
    GrowthTotal& count = settled.current();
    count.total += count.growth.largest(files.size(), counter_of(context, files, failure)).value_or(0);
    return failure == ReadStatus::ok ? Sample::of(count.total) : Sample::miss(failure);
  });
}

Reader busiest_share(Context& context, const ReadSource& source) {
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
    return last = Sample::of(std::min(*grown / kMicrosecondsPerSecond / to_seconds(elapsed), 1.0));
  };
}

Reader wrapping_sum(Context& context, const ReadSource& source) {
  std::vector<int> files = open_all(context, source.name);
  if (files.empty()) return {};
  return CountingReader(GrowthTotal(), [&context, files = std::move(files)](Settled<GrowthTotal>& settled) {
    ReadStatus failure = ReadStatus::ok;
    GrowthTotal& count = settled.current();
    count.total += count.growth.wrapping_sum(files.size(), counter_of(context, files, failure));
    return failure == ReadStatus::ok ? Sample::of(count.total) : Sample::miss(failure);
  });
}

Reader mean_rate(Context& context, const ReadSource& source) {
  const Handle file = context.number_file(source.name);
  if (!file || is_zero(context, *file)) return {};
  return [&context, file = *file, rate = MeanRate()]() mutable {
    const Sample count = context.number(file);
    return count.status == ReadStatus::ok ? rate.advance(count.value, context.now()) : count;
  };
}

Reader difference(Context& context, const ReadSource& source) {
  const auto [left, right] = split(source.name, " - ");
  const Handle minuend = context.constant_file(left);
  return combined(context, minuend, context.number_file(right), [](double a, double b) { return a - b; });
}

// A divisor that becomes 0 gives an infinity or NaN, which every row's range rejects.
Reader quotient(Context& context, const ReadSource& source) {
  const auto [left, right] = split(source.name, " / ");
  const Handle dividend = context.number_file(left);
  const Handle whole = context.constant_file(right);
  if (whole && is_zero(context, *whole)) return {};
  return combined(context, dividend, whole, [](double a, double b) { return a / b; });
}

// Tables of counters.

namespace {

/// A table's rows: names as of binding, and the columns of a name "file: timestamp.busy".
struct Table {
  int file = 0;
  std::string_view time_column;
  std::string_view busy_column;
  std::vector<std::string> rows;

  std::optional<double> busy(std::string_view text, std::size_t row) const noexcept {
    return cell(text, rows[row], busy_column);
  }
};

std::vector<std::string> first_column(std::string_view table) {
  std::vector<std::string> names;
  take_until(table, '\n');
  while (!table.empty()) {
    std::string_view line = take_until(table, '\n');
    const std::string_view name = line.substr(0, line.find_first_of(" \t"));
    if (!name.empty()) names.emplace_back(name);
  }
  return names;
}

std::optional<Table> bind_table(Context& context, std::string_view name) {
  const auto [path, columns] = split(name, ": ");
  const auto [time, busy] = split(columns, ".");
  const Handle file = context.text_file(path);
  if (!file) return std::nullopt;
  Table table{*file, time, busy, first_column(context.text(*file).text)};
  return table.rows.empty() ? std::nullopt : std::optional(std::move(table));
}

}  // namespace

Reader busiest_row(Context& context, const ReadSource& source) {
  std::optional<Table> table = bind_table(context, source.name);
  if (!table) return {};
  return CountingReader(GrowthTotal(), [&context, table = *std::move(table),
                                        per = divisor(source)](Settled<GrowthTotal>& settled) {
    return parsed(context, table.file, [&](std::string_view text) -> std::optional<double> {
      GrowthTotal& count = settled.current();
      const auto read = [&](std::size_t i) { return table.busy(text, i); };
      count.total += count.growth.largest(table.rows.size(), read).value_or(0);
      return count.total / per;
    });
  });
}

Reader busiest_row_share(Context& context, const ReadSource& source) {
  std::optional<Table> table = bind_table(context, source.name);
  if (!table) return {};
  return [&context, table = *std::move(table), growth = Growth(), last = std::optional<double>()]() mutable {
    const TextCache::Text text = context.text(table.file);
    if (text.status != ReadStatus::ok) return Sample::miss(text.status);
    const auto grown =
        growth.largest(table.rows.size(), [&](std::size_t i) { return table.busy(text.text, i); });
    const std::optional<double> now = cell(text.text, table.rows.front(), table.time_column);
    const std::optional<double> before = std::exchange(last, now);
    if (!grown || !now || !before || *now <= *before) return kNone;
    return Sample::of(std::min(*grown / (*now - *before), 1.0));
  };
}

// Sensors.

namespace {

/// A sensor's files. A governor holds the temperature at the passive trip points of a thermal zone, so only
/// the critical one is a limit.
struct SensorFiles {
  std::string input;
  std::vector<std::string> limits;
};
SensorFiles files_of(const std::string& sensor, Limits limits) {
  if (sensor.starts_with("thermal{")) return {sensor + "/temp", {sensor + "/trip{critical}"}};
  SensorFiles files{sensor + "_input", {sensor + "_crit", sensor + "_emergency"}};
  if (limits == Limits::all) files.limits.push_back(sensor + "_max");
  return files;
}

/// nullopt: none is set, which is 0, or none can be read.
std::optional<double> lowest_of(Context& context, const std::vector<int>& limits) noexcept {
  std::optional<double> lowest;
  for (const int limit : limits) {
    const Sample value = context.number(limit);
    if (value.status == ReadStatus::ok && value.value > 0)
      lowest = std::min(lowest.value_or(value.value), value.value);
  }
  return lowest;
}

struct Channel {
  int voltage = 0;
  int current = 0;
};

/// nullopt without a current: a sum of channels, which is no rail.
std::optional<Channel> channel_of(Context& context, std::string_view voltage_name) {
  const std::optional<std::string> path = context.paths().resolve(voltage_name);
  if (!path) return std::nullopt;
  const std::size_t name = path->rfind('/') + 1;
  if (path->compare(name, 2, "in") != 0) return std::nullopt;
  const Handle voltage = context.number_file_at(*path);
  const Handle current = context.number_file_at(path->substr(0, name) + "curr" + path->substr(name + 2));
  if (!voltage || !current) return std::nullopt;
  return Channel{*voltage, *current};
}

}  // namespace

// A device that sleeps is not read, so its limits are read when it is awake.
Reader margin(Context& context, const ReadSource& source) {
  const SensorFiles files = files_of(std::string(source.name), static_cast<Limits>(source.argument));
  const Handle input = context.number_file(files.input);
  std::vector<int> limits;
  for (const std::string& name : files.limits) {
    if (const Handle limit = context.constant_file(name)) limits.push_back(*limit);
  }
  if (!input || limits.empty()) return {};
  std::optional<double> lowest = context.awake() ? lowest_of(context, limits) : std::nullopt;
  if (context.awake() && !lowest) return {};
  return probed(context, [&context, input = *input, limits = std::move(limits), lowest]() mutable {
    if (!lowest) lowest = lowest_of(context, limits);
    if (!lowest) return kNone;
    const Sample temperature = context.number(input);
    return temperature.status == ReadStatus::ok ? Sample::of(*lowest - temperature.value) : temperature;
  });
}

Reader rail(Context& context, const ReadSource& source) {
  const std::optional<Channel> channel = channel_of(context, source.name);
  if (!channel) return {};
  return [&context, channel = *channel] {
    const Sample volts = context.number(channel.voltage);
    const Sample amperes = context.number(channel.current);
    if (volts.status != ReadStatus::ok) return volts;
    return amperes.status == ReadStatus::ok ? Sample::of(volts.value * amperes.value) : amperes;
  };
}

Reader rail_voltage(Context& context, const ReadSource& source) {
  const std::optional<Channel> channel = channel_of(context, source.name);
  if (!channel) return {};
  return [&context, file = channel->voltage] { return context.number(file); };
}

// The host and its processes.

Reader host_memory(Context& context, const ReadSource& source) {
  if (context.host_memory().status != ReadStatus::ok) return {};
  return [&context, part = static_cast<HostPart>(source.argument)] {
    const auto& [memory, status] = context.host_memory();
    if (status != ReadStatus::ok) return Sample::miss(status);
    if (part == HostPart::size) return Sample::of(memory.total);
    return Sample::of(part == HostPart::free ? memory.available : memory.total - memory.available);
  };
}

// The scanner's count covers the time that it has observed.
Reader clients_busy(Context& context, const ReadSource& source) {
  if (!context.has_clients()) return {};
  if (source.argument == kBusiestClass) return [&context] { return context.clients().busiest(); };
  return [&context, which = static_cast<EngineClass>(source.argument)] {
    return context.clients().engine(which);
  };
}

Reader clients_share(Context& context, const ReadSource& source) {
  if (!context.has_clients()) return {};
  if (source.argument == kBusiestClass) return [&context] { return context.clients().utilization(); };
  return [&context, which = static_cast<EngineClass>(source.argument)] {
    return context.clients().utilization(which);
  };
}

}  // namespace gpumeter::files
