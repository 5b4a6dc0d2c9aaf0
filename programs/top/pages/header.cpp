#include "programs/top/pages/header.hpp"

#include <algorithm>
#include <array>
#include <iterator>

#include "programs/top/layout/format.hpp"
#include "programs/top/pages/detail.hpp"
#include "programs/top/pages/gpu_list.hpp"

namespace gpumeter::top {
namespace {

using Items = std::vector<Piece>;

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
  if (snapshot.is_simulated) items.push_back({"SIMULATED: the values are not real", Style::warning});
  if (items.empty()) return;
  lines.push_back(wrapped(items, frame.width, 0, frame.charset).front());
}

void add_problems(Lines& lines, const Snapshot& snapshot, const Frame& frame) {
  if (frame.stale_seconds) {
    const std::string text = "No answer for " + age_text(frame.stale_seconds) + ": " + frame.problem;
    lines.emplace_back(cut(text, frame.width, frame.charset), Style::bad);
  }
  for (const Finding& finding : snapshot.machine) {
    Lines more = finding_lines(finding, frame.width, frame.charset);
    std::move(more.begin(), more.end(), std::back_inserter(lines));
  }
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
    Help{"HELD BY", "the workload with the largest share, its user, how many others"},
    Help{"PHASE", "of a job: the phase with the most time, and its time in a step"},
    Help{"-", "the daemon does not have the value"},
};

}  // namespace

Lines header_lines(const Snapshot& snapshot, const Frame& frame) {
  Lines lines = {first_line(snapshot, frame)};
  add_models(lines, snapshot, frame);
  add_problems(lines, snapshot, frame);
  return lines;
}

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
    std::move(entry.begin(), entry.end(), std::back_inserter(lines));
  }
  return lines;
}

}  // namespace gpumeter::top
