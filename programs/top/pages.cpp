#include <algorithm>
#include <iterator>
#include <span>

#include "programs/top/view.hpp"

namespace gpumeter::top {
namespace {

Style style_of_margin(Number margin) {
  if (!margin) return Style::plain;
  return *margin <= 3 ? Style::bad : *margin <= 10 ? Style::warning : Style::plain;
}

/// The causes that slow the GPU down now: "thermal,power"; "-" if there is none or nothing is known.
std::string throttle_text(const Gpu& gpu) {
  std::string text;
  for (const Reading& cause : gpu.throttles) {
    if (cause.of.value_or(0) > 0) text += (text.empty() ? "" : ",") + cause.name;
  }
  return text.empty() ? std::string(kAbsent) : text;
}

/// "slurm_job 4711"; the kind "other" is omitted.
std::string share_name(const Share& share) {
  return share.kind == "other" ? share.name : share.kind + " " + share.name;
}

std::string name_and_user(const Share& share) {
  return share_name(share) + (share.user.empty() ? "" : " (" + share.user + ")");
}

/// The runs that report, otherwise the workload with the largest share: "llama (alice)",
/// "slurm_job 4711 (alice) +1"; "-" without both.
std::string holder_text(const Gpu& gpu) {
  const std::size_t count = gpu.runs.empty() ? gpu.shares.size() : gpu.runs.size();
  if (count == 0) return std::string(kAbsent);
  const std::string first = gpu.runs.empty() ? name_and_user(gpu.shares.front()) : gpu.runs.front();
  return first + (count > 1 ? " +" + std::to_string(count - 1) : "");
}

std::string action_text(const Finding& finding) {
  if (finding.action == "none") return {};
  return finding.action == "restart_job" ? "restart the job" : finding.action;
}

/// "The GPU is lost (reboot), and 1 more": the first finding.
Piece note_of(const Gpu& gpu) {
  if (gpu.findings.empty()) return {};
  const Finding& first = gpu.findings.front();
  const std::string action = action_text(first);
  const std::size_t more = gpu.findings.size() - 1;
  return {(first.text.empty() ? first.reason : first.text) + (action.empty() ? "" : " (" + action + ")") +
              (more > 0 ? ", and " + std::to_string(more) + " more" : ""),
          style_of(gpu.state)};
}

Number memory_ratio(const Gpu& gpu) {
  if (!gpu.memory_used || !gpu.memory_size || *gpu.memory_size <= 0) return std::nullopt;
  return *gpu.memory_used / *gpu.memory_size;
}

/// The value by which the GPUs are ordered, the highest first.
Number value_of(const Gpu& gpu, Sort sort) {
  switch (sort) {
    case Sort::state:
      return -static_cast<double>(gpu.state);
    case Sort::utilization:
      return gpu.utilization;
    case Sort::power:
      return gpu.power;
    case Sort::memory:
      return memory_ratio(gpu);
    case Sort::temperature:
      return gpu.temperature;
    case Sort::gpu:
      break;
  }
  return 0;  // all are equal: the order by index is kept
}

/// The model without the vendor's name, which says nothing in a narrow column.
std::string short_model(const std::string& model) {
  for (const std::string_view vendor : {"NVIDIA ", "AMD ", "Intel "}) {
    if (model.starts_with(vendor)) return model.substr(vendor.size());
  }
  return model;
}

Style style_of_throttle(const Gpu& gpu) {
  const auto holds = [&](std::string_view cause) {
    return std::ranges::any_of(gpu.throttles,
                               [&](const Reading& it) { return it.name == cause && it.of > 0; });
  };
  return holds("thermal") || holds("hardware") ? Style::bad : Style::warning;
}

const std::vector<Column> kColumns = {
    {"GPU", 3, 5, 100, true},     {"STATE", 8, 8, 99},      {"MODEL", 8, 24, 55},
    {"UTIL", 4, 4, 98, true},     {"", 5, 24, 40},          {"POWER W", 7, 9, 90, true},
    {"MEM GiB", 9, 11, 85, true}, {"TEMP", 4, 4, 80, true}, {"MARGIN", 6, 6, 50, true},
    {"THROTTLE", 8, 16, 65},      {"HELD BY", 8, 48, 60}};
constexpr std::size_t kModelColumn = 2;

std::vector<Cell> cells_of(const Gpu& gpu) {
  const std::string throttle = throttle_text(gpu);
  const Cell utilization_bar = gpu.utilization ? Cell{"", Style::good, gpu.utilization} : Cell{};
  return {{gpu.index},
          {std::string(state_word(gpu)), style_of(gpu.state)},
          {short_model(gpu.model)},
          {percent_text(gpu.utilization)},
          utilization_bar,
          {pair_text(gpu.power, gpu.power_limit)},
          {pair_text(gpu.memory_used, gpu.memory_size, 1, kGiB)},
          {number_text(gpu.temperature)},
          {number_text(gpu.margin), style_of_margin(gpu.margin)},
          {throttle, throttle == kAbsent ? Style::plain : style_of_throttle(gpu)},
          {holder_text(gpu)}};
}

/// "4.02/s", or requests for a run that makes no steps: "12.3 req/s".
std::string rate_text(const Run& run) {
  if (run.step_rate) return short_text(run.step_rate) + "/s";
  return run.request_rate ? short_text(run.request_rate) + " req/s" : std::string(kAbsent);
}

/// "data_loading 50ms": the time of a step that the phase takes.
std::string phase_text(const Run& run) {
  if (run.phase.empty()) return std::string(kAbsent);
  if (!run.phase_seconds) return run.phase;
  const bool is_short = *run.phase_seconds < 1;
  return run.phase + " " +
         (is_short ? number_text(run.phase_seconds, 0, 1e-3) + "ms" : short_text(run.phase_seconds) + "s");
}

Cell state_cell(const Run& run) {
  if (run.status.empty()) return {"running"};
  return {run.status, run.status == "success" ? Style::dim : Style::warning};
}

std::string energy_text(Number joules) {
  return joules ? short_text(*joules / 3.6e6) + " kWh" : std::string(kAbsent);
}

std::vector<Cell> cells_of(const Run& run) {
  return {{run.name},
          {run.user},
          state_cell(run),
          {number_text(run.step ? run.step : run.steps)},
          {rate_text(run)},
          {short_text(run.loss)},
          {phase_text(run)},
          {age_text(run.run_seconds)},
          {energy_text(run.energy)},
          {ranges_text(run.gpus)}};
}

constexpr int kLabel = 13;  ///< columns before the values
constexpr int kBar = 30;

using Items = std::vector<Piece>;

/// Collects the lines. An entry without items is omitted.
class Page {
 public:
  Page(int width, Charset charset) : width_(width), charset_(charset) {}

  void add(const std::string& label, const Items& items) {
    if (items.empty()) return;
    Lines lines = wrapped(items, width_, kLabel, charset_);
    lines.front().pieces.front() = {padded(label, kLabel, charset_), Style::dim};
    add(std::move(lines));
  }
  void add(Lines lines) { std::move(lines.begin(), lines.end(), std::back_inserter(lines_)); }
  Lines finish() { return std::move(lines_); }

 private:
  const int width_;
  const Charset charset_;
  Lines lines_;
};

void add_title(Page& page, const Gpu& gpu) {
  Line line;
  line.add("GPU " + gpu.index + "  " + gpu.model + "  ", Style::bold);
  line.add(std::string(state_word(gpu)) + (gpu.state_seconds ? " for " + age_text(gpu.state_seconds) : ""),
           style_of(gpu.state));
  page.add(Lines{line});
  Items items = {{gpu.uuid}};
  if (!gpu.pci_address.empty()) items.push_back({gpu.pci_address});
  if (!gpu.driver_version.empty()) items.push_back({"driver " + gpu.driver_version});
  page.add("Identity", items);
}

Items utilization_items(const Gpu& gpu, Charset charset) {
  if (!gpu.utilization) return {};
  Items items = {{padded(percent_text(gpu.utilization), 4, charset, true)},
                 {"[" + bar(*gpu.utilization, kBar, charset) + "]", Style::good}};
  for (const Reading& engine : gpu.engines) {
    if (engine.value.value_or(0) >= 0.005) items.push_back({engine.name + " " + percent_text(engine.value)});
  }
  return items;
}

Items power_items(const Gpu& gpu) {
  Items items;
  if (gpu.power) items.push_back({number_text(gpu.power) + " W of " + number_text(gpu.power_limit) + " W"});
  if (gpu.power_max) items.push_back({"highest of 1 min: " + number_text(gpu.power_max) + " W"});
  if (gpu.energy) items.push_back({"energy " + number_text(gpu.energy, 3, 3.6e6) + " kWh"});
  return items;
}

Items memory_items(const Gpu& gpu) {
  if (!gpu.memory_used) return {};
  const std::string used =
      number_text(gpu.memory_used, 1, kGiB) + " of " + number_text(gpu.memory_size, 1, kGiB) + " GiB";
  const bool has_size = gpu.memory_size.value_or(0) > 0;
  return {{has_size ? used + " (" + percent_text(*gpu.memory_used / *gpu.memory_size) + ")" : used}};
}

Items temperature_items(const Gpu& gpu) {
  Items items;
  for (const Reading& sensor : gpu.temperatures) {
    const std::string margin = sensor.of ? " (margin " + number_text(sensor.of) + ")" : "";
    items.push_back({sensor.name + " " + number_text(sensor.value) + margin, style_of_margin(sensor.of)});
  }
  return items;
}

Items clock_items(const Gpu& gpu) {
  Items items;
  for (const Reading& clock : gpu.clocks)
    items.push_back({clock.name + " " + pair_text(clock.value, clock.of, 0, 1e6)});
  if (!items.empty()) items.back().text += " MHz";
  return items;
}

/// The seconds since the daemon's start; causes that hold now are marked.
Items throttle_items(const Gpu& gpu) {
  Items items;
  for (const Reading& cause : gpu.throttles) {
    const bool holds = cause.of.value_or(0) > 0;
    if (!holds && cause.value.value_or(0) <= 0) continue;
    items.push_back({cause.name + " " + age_text(cause.value) + (holds ? " (now)" : ""),
                     holds ? Style::warning : Style::plain});
  }
  if (items.empty() && !gpu.throttles.empty()) items.push_back({"not since the daemon started"});
  return items;
}

/// "corrected 3"; a count above 0 of what is not harmless is marked.
Items count_items(const Readings& counts, const std::string& unit = "") {
  Items items;
  for (const Reading& count : counts) {
    const bool is_bad = count.value.value_or(0) > 0 && !count.name.starts_with("correct");
    items.push_back({count.name + " " + number_text(count.value) + unit, is_bad ? Style::bad : Style::plain});
  }
  return items;
}

void append(Items& items, const Items& more) { items.insert(items.end(), more.begin(), more.end()); }

Items pcie_items(const Gpu& gpu) {
  Items items;
  if (gpu.pcie_generation)
    items.push_back(
        {"gen " + number_text(gpu.pcie_generation) + " of " + number_text(gpu.pcie_generation_max)});
  if (gpu.pcie_lanes)
    items.push_back({"lanes " + number_text(gpu.pcie_lanes) + " of " + number_text(gpu.pcie_lanes_max)});
  if (gpu.pcie_replays) items.push_back({"replays " + number_text(gpu.pcie_replays)});
  append(items, count_items(gpu.pcie_errors));
  return items;
}

Items link_items(const Gpu& gpu) {
  Items items;
  for (const Reading& link : gpu.links) {
    const bool is_down = link.value && link.of && *link.value < *link.of;
    items.push_back({link.name + " " + number_text(link.value) + " of " + number_text(link.of) + " up",
                     is_down ? Style::bad : Style::plain});
  }
  for (const Reading& error : gpu.link_errors)
    items.push_back({error.name + " errors " + number_text(error.value)});
  return items;
}

Items ecc_items(const Gpu& gpu) {
  Items items = count_items(gpu.memory_errors);
  if (gpu.row_remap_pending.value_or(0) > 0) items.push_back({"row remap pending", Style::warning});
  if (gpu.row_remap_failed.value_or(0) > 0) items.push_back({"row remap failed", Style::bad});
  for (const Reading& pages : gpu.retired_pages) {
    if (pages.value.value_or(0) > 0)
      items.push_back({"retired pages (" + pages.name + ") " + number_text(pages.value)});
  }
  return items;
}

Items xid_items(const Gpu& gpu) {
  Items items;
  for (const Reading& xid : gpu.xids) {
    const std::string times = xid.value > 1 ? " (" + number_text(xid.value) + " times)" : "";
    items.push_back({xid.name + times, Style::bad});
  }
  return items;
}

Items fan_items(const Gpu& gpu) {
  Items items;
  for (const Reading& fan : gpu.fans) items.push_back({fan.name + ": " + percent_text(fan.value)});
  return items;
}

Items workload_items(const Gpu& gpu) {
  Items items;
  for (const Share& share : gpu.shares)
    items.push_back({name_and_user(share) + " " + percent_text(share.ratio)});
  return items;
}

Items run_items(const Snapshot& snapshot, const Gpu& gpu) {
  Items items;
  for (const Run& run : snapshot.runs) {
    if (std::ranges::find(run.gpus, gpu.index) == run.gpus.end()) continue;
    items.push_back({run.name + " (" + run.user + ")" + (run.status.empty() ? "" : " " + run.status)});
  }
  return items;
}

}  // namespace

std::vector<const Gpu*> sorted(const std::vector<Gpu>& gpus, Sort sort, bool is_reversed) {
  std::vector<const Gpu*> order;
  for (const Gpu& gpu : gpus) order.push_back(&gpu);
  if (is_reversed) std::ranges::reverse(order);
  std::ranges::stable_sort(order, [&](const Gpu* a, const Gpu* b) {
    const Number left = value_of(*a, sort);
    const Number right = value_of(*b, sort);
    if (!left || !right) return left.has_value() && !right.has_value();
    return is_reversed ? *left < *right : *left > *right;
  });
  return order;
}

Table gpu_table(const std::vector<const Gpu*>& gpus, const std::string& selected_uuid, bool with_model) {
  Table table{kColumns, {}};
  for (const Gpu* gpu : gpus)
    table.rows.push_back({cells_of(*gpu), gpu->uuid == selected_uuid, note_of(*gpu)});
  if (with_model) return table;
  table.columns.erase(table.columns.begin() + kModelColumn);
  for (Row& row : table.rows) row.cells.erase(row.cells.begin() + kModelColumn);
  return table;
}

std::string_view state_word(const Gpu& gpu) {
  const bool is_well = gpu.state == State::ok || gpu.state == State::up;
  return is_well && gpu.is_suspended ? "asleep" : kStateNames.of(gpu.state);
}

Style style_of(State state) {
  switch (state) {
    case State::failed:
    case State::down:
      return Style::bad;
    case State::degraded:
      return Style::warning;
    case State::unknown:
      return Style::dim;
    default:
      return Style::plain;
  }
}

bool have_one_model(const std::vector<Gpu>& gpus) {
  return std::ranges::all_of(gpus, [&](const Gpu& gpu) { return gpu.model == gpus.front().model; });
}

Table job_table(const std::vector<Run>& runs) {
  Table table{{{"RUN", 16, 64, 100},
               {"USER", 6, 16, 75},
               {"STATE", 7, 7, 70},
               {"STEP", 6, 10, 95, true},
               {"STEP/S", 7, 12, 90, true},
               {"LOSS", 6, 8, 85, true},
               {"PHASE", 17, 24, 66},
               {"TIME", 6, 6, 55, true},
               {"ENERGY", 8, 9, 50, true},
               {"GPUS", 5, 20, 80}},
              {}};
  for (const Run& run : runs) table.rows.push_back({cells_of(run)});
  return table;
}

Table user_table(const std::vector<const Gpu*>& gpus) {
  Table table{{{"GPU", 3, 5, 100, true},
               {"USED BY", 16, 64, 95},
               {"USER", 6, 16, 90},
               {"SHARE", 5, 5, 80, true},
               {"MEM GiB", 7, 7, 70, true}},
              {}};
  for (const Gpu* gpu : gpus) {
    for (const Share& it : gpu->processes.empty() ? gpu->shares : gpu->processes)
      table.rows.push_back({{{gpu->index},
                             {share_name(it)},
                             {it.user},
                             {percent_text(it.ratio)},
                             {number_text(it.memory, 1, kGiB)}}});
  }
  return table;
}

Lines gpu_plots(const Past& past, const Gpu& gpu, int width, int height, Charset charset) {
  struct Plot {
    std::string title;
    const std::vector<Number>& values;
    double most;
    std::string scale;
  };
  const auto most = [](Number limit, const std::vector<Number>& values) {
    Number highest = limit;
    for (const Number& value : values) highest = std::max(highest, value);
    return highest.value_or(1);
  };
  const double watts = most(gpu.power_limit, past.power);
  const double bytes = most(gpu.memory_size, past.memory);
  const Number limit = gpu.margin ? Number(gpu.temperature.value_or(0) + *gpu.margin) : std::nullopt;
  const double celsius = most(limit, past.temperature);
  const std::vector<Plot> plots = {
      {"Utilization " + percent_text(gpu.utilization), past.utilization, 1, "100%"},
      {"Power " + pair_text(gpu.power, gpu.power_limit) + " W", past.power, watts, number_text(watts)},
      {"Memory " + pair_text(gpu.memory_used, gpu.memory_size, 1, kGiB) + " GiB", past.memory, bytes,
       number_text(bytes, 1, kGiB)},
      {"Temperature " + number_text(gpu.temperature) + ", margin " + number_text(gpu.margin),
       past.temperature, celsius, number_text(celsius)}};
  const int count = std::clamp((height - 1) / 5, 1, static_cast<int>(plots.size()));
  const int rows = std::max(1, (height - 1) / count - 1);
  Lines lines = {Line("GPU " + gpu.index + ", last 5 minutes", Style::bold)};
  if (past.uuid != gpu.uuid) return lines;
  for (const Plot& each : std::span(plots).first(static_cast<std::size_t>(count))) {
    lines.emplace_back(cut(each.title, width, charset), Style::dim);
    for (std::string& row : plot(each.values, each.most, each.scale, width, rows, charset))
      lines.emplace_back(std::move(row), Style::good);
  }
  return lines;
}

Lines finding_lines(const Finding& finding, int width, Charset charset) {
  const Style style = finding.severity == "failed" ? Style::bad : Style::warning;
  Lines lines = wrapped(finding.text.empty() ? finding.reason : finding.text, style, width, kLabel, charset);
  lines.front().pieces.front() = {padded(finding.severity, kLabel, charset), style};
  Items items;
  if (const std::string action = action_text(finding); !action.empty())
    items.push_back({"do: " + action, Style::bold});
  items.push_back({"reason " + finding.reason});
  if (finding.since_seconds) items.push_back({"for " + age_text(finding.since_seconds)});
  if (!finding.alert.empty()) items.push_back({"alert " + finding.alert});
  for (Line& line : wrapped(items, width, kLabel, charset)) lines.push_back(std::move(line));
  return lines;
}

Lines gpu_detail(const Snapshot& snapshot, const Gpu& gpu, int width, Charset charset) {
  Page page(width, charset);
  add_title(page, gpu);
  for (const Finding& finding : gpu.findings) page.add(finding_lines(finding, width, charset));
  page.add("Utilization", utilization_items(gpu, charset));
  page.add("Power", power_items(gpu));
  page.add("Memory", memory_items(gpu));
  page.add("Temperature", temperature_items(gpu));
  page.add("Fans", fan_items(gpu));
  page.add("Clocks", clock_items(gpu));
  page.add("Throttled", throttle_items(gpu));
  page.add("PCIe", pcie_items(gpu));
  page.add("Links", link_items(gpu));
  page.add("ECC errors", ecc_items(gpu));
  page.add("XIDs", xid_items(gpu));
  page.add("Workloads", workload_items(gpu));
  page.add("Jobs", run_items(snapshot, gpu));
  return page.finish();
}

}  // namespace gpumeter::top
