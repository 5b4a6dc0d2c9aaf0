#include <string>
#include <utility>
#include <vector>

#include "base/text.hpp"
#include "collectors/tree/growth.hpp"
#include "collectors/tree/readers.hpp"
#include "collectors/tree/readers/parts.hpp"
#include "collectors/tree/text.hpp"

namespace gpumeter::tree::readers {
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

std::optional<Table> bind_table(TreeContext& context, std::string_view name) {
  const auto [path, columns] = split(name, ": ");
  const auto [time, busy] = split(columns, ".");
  const std::optional<int> file = context.text_file(path);
  if (!file) return std::nullopt;
  return Table{*file, time, busy, first_column(context.text(*file).text)};
}

}  // namespace

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

}  // namespace gpumeter::tree::readers
