#include "programs/top/layout/table.hpp"

#include <algorithm>
#include <numeric>

#include "programs/top/layout/format.hpp"

namespace gpumeter::top {
namespace {

constexpr int kGap = 1;

/// A column that is shown, with its width.
struct Place {
  std::size_t column;
  int width;
  int wanted;
};

int content_width(const Table& table, std::size_t column) {
  int width = width_of(table.columns[column].title);
  for (const Row& row : table.rows) {
    const Cell& cell = row.cells[column];
    width = std::max(width, cell.ratio ? table.columns[column].most : width_of(cell.text));
  }
  return width;
}

int total(const std::vector<Place>& places) {
  const int gaps = kGap * (static_cast<int>(places.size()) - 1);
  return std::accumulate(places.begin(), places.end(), gaps,
                         [](int sum, const Place& it) { return sum + it.width; });
}

std::vector<Place> places_of(const Table& table, int width) {
  std::vector<Place> places;
  for (std::size_t i = 0; i < table.columns.size(); ++i) {
    const Column& column = table.columns[i];
    const int wanted = std::max(column.least, std::min(column.most, content_width(table, i)));
    places.push_back({i, column.least, wanted});
  }
  const auto priority = [&](const Place& it) { return table.columns[it.column].priority; };
  while (places.size() > 1 && total(places) > width) {
    places.erase(std::ranges::min_element(places, {}, priority));
  }
  std::vector<Place*> by_priority;
  for (Place& place : places) by_priority.push_back(&place);
  std::ranges::stable_sort(by_priority, std::ranges::greater(),
                           [&](const Place* it) { return priority(*it); });
  for (Place* place : by_priority)
    place->width += std::clamp(width - total(places), 0, place->wanted - place->width);
  return places;
}

Line titles_of(const Table& table, const std::vector<Place>& places, Charset charset) {
  std::string text;
  for (const Place& place : places) {
    const Column& column = table.columns[place.column];
    if (!text.empty()) text += std::string(kGap, ' ');
    text += padded(column.title, place.width, charset, column.is_right);
  }
  return Line(text, Style::title);
}

Line line_of(const Table& table, const Row& row, const std::vector<Place>& places, Charset charset) {
  Line line;
  line.is_selected = row.is_selected;
  for (const Place& place : places) {
    if (!line.pieces.empty()) line.add(std::string(kGap, ' '));
    const Cell& cell = row.cells[place.column];
    line.add(cell.ratio ? bar(*cell.ratio, place.width, charset)
                        : padded(cell.text, place.width, charset, table.columns[place.column].is_right),
             cell.style);
  }
  return line;
}

}  // namespace

Lines laid_out(const Table& table, int width, Charset charset) {
  const std::vector<Place> places = places_of(table, width);
  Lines lines = {titles_of(table, places, charset)};
  for (const Row& row : table.rows) lines.push_back(line_of(table, row, places, charset));
  return lines;
}

}  // namespace gpumeter::top
