#include "collectors/attribution/names/slurm/gpu_list.hpp"

#include <algorithm>
#include <cctype>
#include <utility>

#include "base/text.hpp"

namespace gpumeter::slurm {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }

/// Removes and returns the digits at the start.
std::string_view take_digits(std::string_view& text) {
  const std::size_t count = std::min(text.find_first_not_of("0123456789"), text.size());
  const std::string_view digits = text.substr(0, count);
  text.remove_prefix(count);
  return digits;
}

// slurmd sorts by strnatcmp(): digits compare as numbers, so nvidia2 precedes nvidia10.
bool comes_before(std::string_view a, std::string_view b) {
  while (!a.empty() && !b.empty()) {
    if (is_digit(a.front()) && is_digit(b.front())) {
      const auto one = parse_number<std::size_t>(take_digits(a));
      const auto other = parse_number<std::size_t>(take_digits(b));
      if (one != other) return one < other;
      continue;
    }
    if (a.front() != b.front()) return a.front() < b.front();
    a.remove_prefix(1);
    b.remove_prefix(1);
  }
  return a.empty() && !b.empty();
}

/// Returns the value of NAME= in a line of words; configuration files ignore case.
std::string_view value_of(std::string_view line, std::string_view name) {
  const auto same = [](char a, char b) {
    return std::tolower(static_cast<unsigned char>(a)) == std::tolower(static_cast<unsigned char>(b));
  };
  while (!line.empty()) {
    std::string_view word = take_until(line, ' ');
    word = trimmed(word);
    if (word.size() <= name.size() || word[name.size()] != '=') continue;
    if (std::ranges::equal(word.substr(0, name.size()), name, same)) return word.substr(name.size() + 1);
  }
  return {};
}

void add_range(std::string_view prefix, std::string_view item, std::string_view suffix,
               std::vector<std::string>& files) {
  std::string_view rest = item;
  const auto from = parse_number<std::size_t>(take_until(rest, '-'));
  const auto to = rest.empty() ? from : parse_number<std::size_t>(rest);
  if (!from || !to) return;
  for (std::size_t at = *from; at <= *to && files.size() < GpuList::kMost; ++at) {
    files.push_back(std::string(prefix) + std::to_string(at) + std::string(suffix));
  }
}

/// Expands one pair of brackets: /dev/nvidia[0,2-3]. Commas outside of brackets separate files.
std::vector<std::string> expanded(std::string_view list) {
  std::vector<std::string> files;
  while (!list.empty() && files.size() < GpuList::kMost) {
    const std::size_t open = list.find('[');
    if (list.find(',') < open || open == std::string_view::npos) {
      files.emplace_back(take_until(list, ','));
      continue;
    }
    const std::string_view prefix = list.substr(0, open);
    list.remove_prefix(open + 1);
    std::string_view items = take_until(list, ']');
    const std::string_view suffix = take_until(list, ',');
    while (!items.empty()) add_range(prefix, take_until(items, ','), suffix, files);
  }
  return files;
}

/// A device's own place in its list of links: the number of links is -1 there.
std::optional<std::size_t> own_place(std::string_view links) {
  for (std::size_t place = 0; !links.empty(); ++place) {
    if (take_until(links, ',') == "-1") return place;
  }
  return std::nullopt;
}

struct Entry {
  std::optional<std::size_t> place;  ///< by Links=
  std::string file;
};

std::vector<Entry> entries_of(std::string_view text) {
  std::vector<Entry> entries;
  while (!text.empty() && entries.size() < GpuList::kMost) {
    std::string_view line = take_until(text, '\n');
    line = trimmed(take_until(line, '#'));
    if (value_of(line, "Name") != "gpu") continue;
    const auto place = own_place(value_of(line, "Links"));
    for (std::string& file : expanded(value_of(line, "File"))) entries.push_back({place, std::move(file)});
  }
  return entries;
}

}  // namespace

GpuList GpuList::parse(std::string_view text) {
  std::vector<Entry> entries = entries_of(text);
  std::ranges::stable_sort(entries, comes_before, &Entry::file);
  const auto is_linked = [](const Entry& entry) { return entry.place.has_value(); };
  if (std::ranges::all_of(entries, is_linked)) std::ranges::stable_sort(entries, {}, &Entry::place);
  GpuList list;
  for (Entry& entry : entries) {
    if (list.files_.size() < kMost) list.files_.push_back(std::move(entry.file));
  }
  return list;
}

std::optional<workloads::DeviceSelector> GpuList::at(std::size_t position) const {
  using By = workloads::DeviceSelector::By;
  if (position >= files_.size()) return std::nullopt;
  const std::string_view file = files_[position];
  const auto after = [&](std::string_view prefix) {
    const std::string_view number =
        file.starts_with(prefix) ? file.substr(prefix.size()) : std::string_view();
    return number.find_first_not_of("0123456789") == std::string_view::npos ? std::string(number) : "";
  };
  if (const std::string minor = after("/dev/nvidia"); !minor.empty()) return {{By::minor, minor, "nvidia"}};
  if (const std::string minor = after("/dev/dri/renderD"); !minor.empty()) return {{By::minor, minor, ""}};
  return std::nullopt;
}

}  // namespace gpumeter::slurm
