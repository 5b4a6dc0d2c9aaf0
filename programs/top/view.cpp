#include "programs/top/view.hpp"

#include <algorithm>
#include <array>
#include <iterator>

namespace gpumeter::top {
namespace {

using Items = std::vector<Piece>;

void append(Lines& lines, Lines more) { std::move(more.begin(), more.end(), std::back_inserter(lines)); }

Items state_items(const Snapshot& snapshot) {
  const std::size_t count = snapshot.gpus.size();
  Items items = {{std::to_string(count) + (count == 1 ? " GPU" : " GPUs")}};
  for (const auto& [state, name] : kStateNames) {
    const auto of_state = std::ranges::count(snapshot.gpus, state, &Gpu::state);
    if (of_state > 0) items.push_back({std::to_string(of_state) + " " + std::string(name), style_of(state)});
  }
  return items;
}

Number total_power(const Snapshot& snapshot) {
  Number total;
  for (const Gpu& gpu : snapshot.gpus) {
    if (gpu.power) total = total.value_or(0) + *gpu.power;
  }
  return total;
}

// The time stands at the right end, and what does not fit in between is cut.
Line first_line(const Snapshot& snapshot, const Frame& frame) {
  Items items = {{"gpumeter " + snapshot.version, Style::bold}, {frame.host, Style::bold}};
  for (Piece& item : state_items(snapshot)) items.push_back(std::move(item));
  if (const Number power = total_power(snapshot)) items.push_back({number_text(power) + " W"});
  const int room = frame.width - (frame.time.empty() ? 0 : width_of(frame.time) + 2);
  Line line;
  int used = 0;
  for (const Piece& item : items) {
    const std::string gap = line.pieces.empty() ? "" : "  ";
    if (used + width_of(gap) + 2 > room) break;
    line.add(gap);
    line.add(cut(item.text, room - used - width_of(gap), frame.charset), item.style);
    used += width_of(gap) + width_of(line.pieces.back().text);
  }
  if (!frame.time.empty()) line.add(padded(frame.time, frame.width - used, frame.charset, true));
  return line;
}

void add_models(Lines& lines, const Snapshot& snapshot, const Frame& frame) {
  Items items;
  if (!snapshot.gpus.empty() && have_one_model(snapshot.gpus)) {
    const Gpu& gpu = snapshot.gpus.front();
    if (!gpu.model.empty())
      items.push_back({std::to_string(snapshot.gpus.size()) + " x " + gpu.model, Style::dim});
    if (!gpu.driver_version.empty()) items.push_back({"driver " + gpu.driver_version, Style::dim});
  }
  if (snapshot.is_simulated)
    items.push_back({"SIMULATED OR A RECORDING: the values are not this machine's", Style::warning});
  if (items.empty()) return;
  lines.push_back(wrapped(items, frame.width, 0, frame.charset).front());
}

void add_problems(Lines& lines, const Snapshot& snapshot, const Frame& frame) {
  if (frame.stale_seconds) {
    const std::string text = "No answer for " + age_text(frame.stale_seconds) + ": " + frame.problem;
    lines.emplace_back(cut(text, frame.width, frame.charset), Style::bad);
  }
  for (const Finding& finding : snapshot.machine)
    append(lines, finding_lines(finding, frame.width, frame.charset));
}

struct Help {
  const char* keys;
  const char* meaning;
};
constexpr std::array kHelp = {
    Help{"Arrows, PgUp, PgDn", "select a GPU, or scroll; Home and End too"},
    Help{"Enter, Right", "the selected GPU in detail"},
    Help{"Esc, Backspace, Left", "back to the list"},
    Help{"j", "all jobs, and back"},
    Help{"s", "sort by state, the worst first (default)"},
    Help{"g", "sort by GPU"},
    Help{"u, p, m, t", "sort by utilization, power, memory, temperature"},
    Help{"r", "reverse the order"},
    Help{"?, h", "this page, and back"},
    Help{"q", "quit"},
    Help{"", ""},
    Help{"STATE", "ok, degraded, failed, unknown: the health that the daemon judges"},
    Help{"", "up, down: the daemon does not judge, it only reads"},
    Help{"MARGIN", "degrees Celsius below the limit, of the hottest sensor"},
    Help{"THROTTLE", "what slows the GPU down now"},
    Help{"HELD BY", "the run that reports, or the workload with the largest share; how many others"},
    Help{"PHASE", "of a job: the phase with the most time, and its time in a step"},
    Help{"-", "the daemon does not have the value"},
};

/// The lines above each page: host, version, GPUs by state, power, time; model and driver; what is wrong with
/// the machine or with the connection to its daemon.
Lines header_lines(const Snapshot& snapshot, const Frame& frame) {
  Lines lines = {first_line(snapshot, frame)};
  add_models(lines, snapshot, frame);
  add_problems(lines, snapshot, frame);
  return lines;
}

/// The last line: the keys of this page.
Line footer_line(const View& view, const Frame& frame) {
  const std::string order = std::string(kSortNames.of(view.sort)) + (view.is_reversed ? ", reversed" : "");
  const char* keys = "Esc back  Up/Down scroll  ? help  q quit";
  if (view.page == View::Page::gpus) keys = "q quit  ? help  Enter detail  j jobs  s/g/u/p/m/t: ";
  const std::string by = view.page == View::Page::gpus ? "by " + order : "";
  return Line(padded(keys + by, frame.width, frame.charset), Style::title);
}

Lines help_lines(const Frame& frame) {
  constexpr int kKeys = 20;
  Lines lines;
  for (const Help& help : kHelp) {
    Lines entry = wrapped(help.meaning, Style::plain, frame.width, kKeys, frame.charset);
    entry.front().pieces.front() = {padded(help.keys, kKeys, frame.charset), Style::bold};
    append(lines, std::move(entry));
  }
  return lines;
}

constexpr int kPage = 10;        ///< rows of PgUp and PgDn
constexpr int kJobsAtLeast = 3;  ///< rows that jobs keep below a long list of GPUs

using Order = std::vector<const Gpu*>;

int position_of(const Order& order, const std::string& uuid) {
  const auto found = std::ranges::find(order, uuid, &Gpu::uuid);
  return found == order.end() ? 0 : static_cast<int>(found - order.begin());
}

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

/// The list below its titles, scrolled so that the selected row is visible with its note. If the notes do not
/// fit, those of failed GPUs are kept.
Lines gpu_lines(const View& view, const Snapshot& snapshot, const Frame& frame, int height) {
  const Order order = sorted(snapshot.gpus, view.sort, view.is_reversed);
  const auto selected = static_cast<std::size_t>(position_of(order, view.selected_uuid));
  Table table = gpu_table(order, order[selected]->uuid, !have_one_model(snapshot.gpus));
  Lines lines = laid_out(table, frame.width, frame.charset);
  if (static_cast<int>(lines.size()) > height) {
    for (std::size_t i = 0; i < order.size(); ++i) {
      if (order[i]->state != State::failed) table.rows[i].note = {};
    }
    lines = laid_out(table, frame.width, frame.charset);
  }
  const auto row = std::ranges::find(lines, true, &Line::is_selected) - lines.begin();
  const int last = static_cast<int>(row) + (table.rows[selected].note.text.empty() ? 0 : 1);
  int first = std::max(0, last - (height - 1));
  Lines rows = scrolled(Lines(lines.begin() + 1, lines.end()), first, height - 1);
  lines.resize(1);
  append(lines, std::move(rows));
  return lines;
}

Lines job_lines(const Snapshot& snapshot, const Frame& frame) {
  if (snapshot.runs.empty()) return {Line("No job reports to this daemon.", Style::dim)};
  return laid_out(job_table(snapshot.runs), frame.width, frame.charset);
}

/// The jobs, and below them who uses the GPUs.
Lines user_lines(const Snapshot& snapshot, const Frame& frame, int height) {
  Lines lines;
  if (!snapshot.runs.empty()) lines = fitted(job_lines(snapshot, frame), height);
  const Table users = user_table(sorted(snapshot.gpus, Sort::gpu, false));
  const int room = height - static_cast<int>(lines.size()) - (lines.empty() ? 0 : 1);
  if (users.rows.empty() || room < 2) return lines;
  if (!lines.empty()) lines.emplace_back();
  append(lines, fitted(laid_out(users, frame.width, frame.charset), room));
  return lines;
}

const Gpu* selected_gpu(const View& view, const Snapshot& snapshot) {
  const auto found = std::ranges::find(snapshot.gpus, view.selected_uuid, &Gpu::uuid);
  return found == snapshot.gpus.end() ? nullptr : &*found;
}

constexpr int kWide = 160;      ///< columns from which on there is room for plots
constexpr int kPlotsLeast = 8;  ///< rows that plots need
constexpr int kBetween = 2;

bool has_plots(const View& view, const Snapshot& snapshot, const Frame& frame) {
  const bool is_page = view.page == View::Page::gpus || view.page == View::Page::gpu;
  return is_page && frame.width >= kWide && !snapshot.gpus.empty();
}

/// What `left` makes for its width, with the plots of the GPU to the right of it.
template <class Left>
Lines with_plots(const Snapshot& snapshot, const Gpu& gpu, const Frame& frame, int height, Left left) {
  Frame half = frame;
  half.width = (frame.width - kBetween) / 2;
  const int begin = half.width + kBetween;
  return beside(left(half), gpu_plots(snapshot.past, gpu, frame.width - begin, height, frame.charset), begin,
                frame.charset);
}

Lines gpus_page(const View& view, const Snapshot& snapshot, const Frame& frame, int height) {
  if (snapshot.gpus.empty()) return {Line("The daemon has no GPU.", Style::warning)};
  const int runs = static_cast<int>(snapshot.runs.size());
  const int least = runs == 0 ? 0 : 2 + std::min(runs, kJobsAtLeast);
  Lines lines = gpu_lines(view, snapshot, frame, std::max(height - least, std::min(2, height)));
  const int rest = height - static_cast<int>(lines.size()) - 1;
  if (rest < 2) return lines;
  lines.emplace_back();
  const auto users = [&](const Frame& part) { return user_lines(snapshot, part, rest); };
  const Order order = sorted(snapshot.gpus, view.sort, view.is_reversed);
  const Gpu& gpu = *order[static_cast<std::size_t>(position_of(order, view.selected_uuid))];
  const bool is_wide = rest >= kPlotsLeast && has_plots(view, snapshot, frame);
  append(lines, is_wide ? with_plots(snapshot, gpu, frame, rest, users) : users(frame));
  return lines;
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
  const auto detail = [&](const Frame& part) {
    return scrolled(gpu_detail(snapshot, *gpu, part.width, part.charset), view.first_line, height);
  };
  return has_plots(view, snapshot, frame) ? with_plots(snapshot, *gpu, frame, height, detail) : detail(frame);
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

std::string plotted_gpu(const View& view, const Snapshot& snapshot, const Frame& frame) {
  if (!has_plots(view, snapshot, frame)) return {};
  const Order order = sorted(snapshot.gpus, view.sort, view.is_reversed);
  return order[static_cast<std::size_t>(position_of(order, view.selected_uuid))]->uuid;
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
  Table table = gpu_table(sorted(snapshot.gpus, sort, false), "", true);
  for (Row& row : table.rows) row.note = {};  // below, in full
  if (!table.rows.empty()) append(lines, laid_out(table, frame.width, frame.charset));
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
