#include "collectors/tree/readers.hpp"

#include <array>
#include <string>
#include <utility>
#include <vector>

#include "base/text.hpp"
#include "collectors/sources/pci.hpp"
#include "collectors/tree/growth.hpp"
#include "collectors/tree/text.hpp"

namespace gpumeter::tree::readers {
namespace {

constexpr Sample kNone = Sample::miss(ReadStatus::unsupported);
constexpr double kMicrosecondsPerSecond = 1e6;

double seconds_of(Nanoseconds time) noexcept { return std::chrono::duration<double>(time).count(); }

/// A text's value by `parse`, which returns an optional number. A text that does not parse is a failed read.
template <class Parse>
Sample parsed(TreeContext& context, int file, Parse parse) noexcept {
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

std::optional<Table> bind_table(TreeContext& context, std::string_view name) {
  const auto [path, columns] = split(name, ": ");
  const auto [time, busy] = split(columns, ".");
  const std::optional<int> file = context.text_file(path);
  if (!file) return std::nullopt;
  return Table{*file, time, busy, first_column(context.text(*file).text)};
}

/// A value of clients; `read` returns a sample.
template <class Read>
Reader of_clients(TreeContext& context, Read read) {
  if (!context.has_clients()) return {};
  return [&context, read] { return read(context.clients()); };
}

}  // namespace

Reader bind_integer(TreeContext& context, const ReadSource& source) {
  const std::optional<int> file = context.number_file(source.name);
  if (!file) return {};
  if (source.argument == 0) return [&context, file = *file] { return context.number(file); };
  const Nanoseconds every = std::chrono::milliseconds(source.argument);
  return [&context, file = *file, every, last = kNone, due = Nanoseconds{}]() mutable {
    if (last.status == ReadStatus::ok && context.now() < due) return last;
    due = context.now() + every;
    return last = context.number(file);
  };
}

Reader bind_number(TreeContext& context, const ReadSource& source) {
  const std::optional<int> file = context.text_file(source.name);
  if (!file) return {};
  return [&context, file = *file] { return parsed(context, file, leading_number); };
}

Reader bind_word(TreeContext& context, const ReadSource& source) {
  const auto [name, words] = split(source.name, " = ");
  const std::optional<int> file = context.text_file(name);
  if (!file) return {};
  return [&context, file = *file, words = words] {
    return parsed(context, file, [&](std::string_view text) {
      return std::optional<double>(is_one_of(text, words) ? 1 : 0);
    });
  };
}

Reader bind_field(TreeContext& context, const ReadSource& source) {
  const auto [name, valid] = split(source.name, ": ");
  const std::optional<int> file = context.text_file(name);
  if (!file) return {};
  return [&context, file = *file, valid = valid, index = static_cast<std::size_t>(source.argument)] {
    const TextCache::Text text = context.text(file);
    if (text.status == ReadStatus::ok && list_field(text.text, 0) != valid) return kNone;
    return parsed(context, file,
                  [&](std::string_view list) { return leading_number(list_field(list, index)); });
  };
}

Reader bind_cell(TreeContext& context, const ReadSource& source) {
  const auto [name, place] = split(source.name, ": ");
  const auto [row, column] = split(place, ".");
  const std::optional<int> file = context.text_file(name);
  if (!file || !cell(context.text(*file).text, row, column)) return {};
  return [&context, file = *file, row = row, column = column, per = divisor(source)] {
    return parsed(context, file, [&](std::string_view table) -> std::optional<double> {
      const std::optional<double> value = cell(table, row, column);
      return value ? std::optional(*value / per) : std::nullopt;
    });
  };
}

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

Reader bind_busiest_row(TreeContext& context, const ReadSource& source) {
  std::optional<Table> table = bind_table(context, source.name);
  if (!table || table->rows.empty()) return {};
  return CountingReader(BusiestTotal(), [&context, table = *std::move(table),
                                         per = divisor(source)](Settled<BusiestTotal>& count) {
    return parsed(context, table.file, [&](std::string_view text) -> std::optional<double> {
      const auto read = [&](std::size_t i) { return table.busy(text, i); };
      return count.current().advance(table.rows.size(), read) / per;
    });
  });
}

Reader bind_busiest_row_rate(TreeContext& context, const ReadSource& source) {
  std::optional<Table> table = bind_table(context, source.name);
  if (!table || table->rows.empty()) return {};
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

Reader bind_margin(TreeContext& context, const ReadSource& source) {
  const std::string sensor(source.name);
  const std::optional<int> input = context.number_file(sensor + "_input");
  std::optional<double> lowest;
  for (const char* const suffix : {"_crit", "_emergency", "_max"}) {
    const std::optional<int> limit = context.number_file(sensor + suffix);
    const Sample value = limit ? context.number(*limit) : kNone;
    if (value.status != ReadStatus::ok || value.value <= 0) continue;  // 0: not set
    lowest = std::min(lowest.value_or(value.value), value.value);
  }
  if (!input || !lowest) return {};
  return [&context, input = *input, limit = *lowest] {
    const Sample temperature = context.number(input);
    return temperature.status == ReadStatus::ok ? Sample::of(limit - temperature.value) : temperature;
  };
}

namespace {

struct Channel {
  int voltage = 0;
  int current = 0;
};

/// nullopt without a current: a sum of channels, which is no rail.
std::optional<Channel> channel_of(TreeContext& context, std::string_view voltage_name) {
  const std::optional<std::string> path = context.paths().resolve(voltage_name);
  if (!path) return std::nullopt;
  const std::size_t name = path->rfind('/') + 1;
  if (path->compare(name, 2, "in") != 0) return std::nullopt;
  const auto voltage = context.number_file_at(*path);
  const auto current = context.number_file_at(path->substr(0, name) + "curr" + path->substr(name + 2));
  if (!voltage || !current) return std::nullopt;
  return Channel{*voltage, *current};
}

}  // namespace

Reader bind_rail(TreeContext& context, const ReadSource& source) {
  const std::optional<Channel> channel = channel_of(context, source.name);
  if (!channel) return {};
  return [&context, channel = *channel] {
    const Sample volts = context.number(channel.voltage);
    const Sample amperes = context.number(channel.current);
    if (volts.status != ReadStatus::ok) return volts;
    return amperes.status == ReadStatus::ok ? Sample::of(volts.value * amperes.value) : amperes;
  };
}

Reader bind_rail_voltage(TreeContext& context, const ReadSource& source) {
  const std::optional<Channel> channel = channel_of(context, source.name);
  if (!channel) return {};
  return [&context, file = channel->voltage] { return context.number(file); };
}

Reader bind_host_memory(TreeContext& context, const ReadSource& source) {
  if (!context.has_host_memory()) return {};
  return [&context, part = static_cast<HostPart>(source.argument)] {
    const auto& [memory, status] = context.host_memory();
    if (status != ReadStatus::ok) return Sample::miss(status);
    if (part == HostPart::size) return Sample::of(memory.total);
    return Sample::of(part == HostPart::free ? memory.available : memory.total - memory.available);
  };
}

Reader bind_asleep(TreeContext& context, const ReadSource& source) {
  const sysfs::File file(context.paths().index().root() + "/" + std::string(source.name));
  std::array<char, 32> buffer{};
  const sysfs::Bytes bytes = file.read(buffer);
  const std::string_view status = sysfs::trimmed({buffer.data(), bytes.size});
  if (status.empty() || status == "unsupported") return {};
  return [&context] { return Sample::of(context.awake() ? 0 : 1); };
}

Reader bind_engine(TreeContext& context, const ReadSource& source) {
  const auto which = static_cast<EngineClass>(source.argument);
  return of_clients(context, [which](const fdinfo::BusyCounters& clients) { return clients.engine(which); });
}

Reader bind_clients_busy(TreeContext& context, const ReadSource&) {
  return of_clients(context, [](const fdinfo::BusyCounters& clients) { return clients.busiest(); });
}

Reader bind_clients_utilization(TreeContext& context, const ReadSource&) {
  return of_clients(context, [](const fdinfo::BusyCounters& clients) { return clients.utilization(); });
}

}  // namespace gpumeter::tree::readers
