#include "programs/top/pages/view.hpp"

#include <algorithm>
#include <iterator>

#include "programs/top/pages/detail.hpp"
#include "programs/top/pages/header.hpp"
#include "programs/top/pages/job_list.hpp"

namespace gpumeter::top {
namespace {

constexpr int kPage = 10;        ///< rows of PgUp and PgDn
constexpr int kJobsAtLeast = 3;  ///< rows that jobs keep below a long list of GPUs

using Order = std::vector<const Gpu*>;

int position_of(const Order& order, const std::string& uuid) {
  const auto found = std::ranges::find(order, uuid, &Gpu::uuid);
  return found == order.end() ? 0 : static_cast<int>(found - order.begin());
}

void append(Lines& lines, Lines more) { std::move(more.begin(), more.end(), std::back_inserter(lines)); }

int rows_of(Key key) {
  switch (key) {
    case Key::up:
      return -1;
    case Key::down:
      return 1;
    case Key::page_up:
      return -kPage;
    case Key::page_down:
      return kPage;
    case Key::first:
      return -1'000'000;
    case Key::last:
      return 1'000'000;
    default:
      return 0;
  }
}

void move(View& view, const Snapshot& snapshot, int rows) {
  if (view.page != View::Page::gpus) {
    view.first_line = std::max(0, view.first_line + rows);
    return;
  }
  const Order order = sorted(snapshot.gpus, view.sort, view.is_reversed);
  if (order.empty() || rows == 0) return;
  const int last = static_cast<int>(order.size()) - 1;
  const int to = std::clamp(position_of(order, view.selected_uuid) + rows, 0, last);
  view.selected_uuid = order[static_cast<std::size_t>(to)]->uuid;
}

void show(View& view, View::Page page) {
  if (page == View::Page::help) view.before_help = view.page;
  view.page = page;
  view.first_line = 0;
}

void open(View& view, const Snapshot& snapshot) {
  if (view.page != View::Page::gpus || snapshot.gpus.empty()) return;
  const Order order = sorted(snapshot.gpus, view.sort, view.is_reversed);
  view.selected_uuid = order[static_cast<std::size_t>(position_of(order, view.selected_uuid))]->uuid;
  show(view, View::Page::gpu);
}

void press_letter(View& view, char letter) {
  if (letter == 'j') show(view, view.page == View::Page::jobs ? View::Page::gpus : View::Page::jobs);
  if (letter == '?' || letter == 'h')
    show(view, view.page == View::Page::help ? view.before_help : View::Page::help);
  if (view.page != View::Page::gpus) return;
  if (letter == 'r') view.is_reversed = !view.is_reversed;
  for (const auto& [sort, name] : kSortNames) {
    if (name.front() == letter) view.sort = sort, view.is_reversed = false;
  }
}

/// The part of the lines that fits, and where it begins.
Lines scrolled(Lines lines, int& first, int height) {
  first = std::clamp(first, 0, std::max(0, static_cast<int>(lines.size()) - height));
  lines.erase(lines.begin(), lines.begin() + first);
  if (static_cast<int>(lines.size()) > height) lines.resize(static_cast<std::size_t>(height));
  return lines;
}

/// The list below its titles, scrolled so that the selected row is visible.
Lines gpu_lines(const View& view, const Snapshot& snapshot, const Frame& frame, int height) {
  const Order order = sorted(snapshot.gpus, view.sort, view.is_reversed);
  const int selected = position_of(order, view.selected_uuid);
  const std::string uuid = order.empty() ? "" : order[static_cast<std::size_t>(selected)]->uuid;
  const Table table = gpu_table(order, uuid, !have_one_model(snapshot.gpus));
  Lines lines = laid_out(table, frame.width, frame.charset);
  int first = std::max(0, selected - (height - 1) + 1);
  Lines rows = scrolled(Lines(lines.begin() + 1, lines.end()), first, height - 1);
  lines.resize(1);
  append(lines, std::move(rows));
  return lines;
}

Lines job_lines(const Snapshot& snapshot, const Frame& frame) {
  if (snapshot.runs.empty()) return {Line("No job reports to this daemon.", Style::dim)};
  return laid_out(job_table(snapshot.runs), frame.width, frame.charset);
}

Lines gpus_page(const View& view, const Snapshot& snapshot, const Frame& frame, int height) {
  if (snapshot.gpus.empty()) return {Line("The daemon has no GPU.", Style::warning)};
  const int runs = static_cast<int>(snapshot.runs.size());
  const int least = runs == 0 ? 0 : 2 + std::min(runs, kJobsAtLeast);
  const int wanted = 1 + static_cast<int>(snapshot.gpus.size());
  const int gpu_height = std::clamp(height - least, std::min(2, height), wanted);
  Lines lines = gpu_lines(view, snapshot, frame, gpu_height);
  if (runs == 0 || height - gpu_height < 3) return lines;
  lines.emplace_back();
  append(lines, job_lines(snapshot, frame));
  return lines;
}

const Gpu* selected_gpu(const View& view, const Snapshot& snapshot) {
  const auto found = std::ranges::find(snapshot.gpus, view.selected_uuid, &Gpu::uuid);
  return found == snapshot.gpus.end() ? nullptr : &*found;
}

Lines body(View& view, const Snapshot& snapshot, const Frame& frame, int height) {
  switch (view.page) {
    case View::Page::gpus:
      return gpus_page(view, snapshot, frame, height);
    case View::Page::jobs:
      return scrolled(job_lines(snapshot, frame), view.first_line, height);
    case View::Page::help:
      return scrolled(help_lines(frame), view.first_line, height);
    case View::Page::gpu:
      break;
  }
  const Gpu* gpu = selected_gpu(view, snapshot);
  if (gpu == nullptr) return {Line("The daemon no longer has this GPU.", Style::warning)};
  return scrolled(gpu_detail(snapshot, *gpu, frame.width, frame.charset), view.first_line, height);
}

}  // namespace

bool press(View& view, const Snapshot& snapshot, KeyPress key) {
  if (key.key == Key::letter && key.letter == 'q') return false;
  if (key.key == Key::letter) press_letter(view, key.letter);
  if (key.key == Key::enter) open(view, snapshot);
  if (key.key == Key::back) show(view, view.page == View::Page::help ? view.before_help : View::Page::gpus);
  move(view, snapshot, rows_of(key.key));
  return true;
}

Lines compose(View& view, const Snapshot& snapshot, const Frame& frame) {
  Lines lines = header_lines(snapshot, frame);
  const int used = static_cast<int>(lines.size()) + 1;
  append(lines, body(view, snapshot, frame, std::max(1, frame.height - used)));
  lines.resize(static_cast<std::size_t>(std::max(1, frame.height) - 1));
  lines.push_back(footer_line(view, frame));
  return lines;
}

Lines plain_page(const Snapshot& snapshot, const Frame& frame, Sort sort) {
  Lines lines = header_lines(snapshot, frame);
  lines.emplace_back();
  if (snapshot.gpus.empty()) lines.emplace_back("The daemon has no GPU.");
  if (!snapshot.gpus.empty())
    append(lines,
           laid_out(gpu_table(sorted(snapshot.gpus, sort, false), "", true), frame.width, frame.charset));
  for (const Gpu* gpu : sorted(snapshot.gpus, Sort::state, false)) {
    if (gpu->findings.empty()) continue;
    lines.emplace_back();
    lines.emplace_back("GPU " + gpu->index + ": " + std::string(state_word(*gpu)));
    for (const Finding& finding : gpu->findings)
      append(lines, finding_lines(finding, frame.width, frame.charset));
  }
  if (snapshot.runs.empty()) return lines;
  lines.emplace_back();
  append(lines, job_lines(snapshot, frame));
  return lines;
}

}  // namespace gpumeter::top
