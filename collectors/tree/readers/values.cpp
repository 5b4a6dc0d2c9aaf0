#include "collectors/sources/pci.hpp"
#include "collectors/tree/readers.hpp"
#include "collectors/tree/readers/parts.hpp"
#include "collectors/tree/text.hpp"

namespace gpumeter::tree::readers {

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

Reader bind_generation(TreeContext& context, const ReadSource& source) {
  const std::optional<int> file = context.text_file(source.name);
  if (!file) return {};
  return [&context, file = *file] {
    const TextCache::Text text = context.text(file);
    if (text.status != ReadStatus::ok) return Sample::miss(text.status);
    const std::optional<int> known = pci::link_generation(text.text);
    return known ? Sample::of(*known) : kNone;
  };
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

}  // namespace gpumeter::tree::readers
