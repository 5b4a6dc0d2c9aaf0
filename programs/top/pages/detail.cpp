#include "programs/top/pages/detail.hpp"

#include <algorithm>
#include <iterator>

#include "programs/top/layout/format.hpp"
#include "programs/top/pages/gpu_list.hpp"

namespace gpumeter::top {
namespace {

constexpr int kLabel = 13;  ///< columns before the values
constexpr int kBar = 30;

using Items = std::vector<Piece>;

Style style_of_severity(const std::string& severity) {
  return severity == "failed" ? Style::bad : Style::warning;
}

std::string action_text(const std::string& action) {
  if (action.empty() || action == "none") return {};
  return "do: " + (action == "restart_job" ? "restart the job" : action);
}

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

  int width() const noexcept { return width_; }
  Charset charset() const noexcept { return charset_; }

 private:
  const int width_;
  const Charset charset_;
  Lines lines_;
};

std::string since_text(const Gpu& gpu) {
  return gpu.state_seconds ? " for " + age_text(gpu.state_seconds) : std::string();
}

void add_title(Page& page, const Gpu& gpu) {
  Line line;
  line.add("GPU " + gpu.index + "  " + gpu.model + "  ", Style::bold);
  line.add(std::string(state_word(gpu)) + since_text(gpu), style_of(gpu.state));
  page.add(Lines{line});
  Items items = {{gpu.uuid}};
  if (!gpu.pci_address.empty()) items.push_back({gpu.pci_address});
  if (!gpu.driver_version.empty()) items.push_back({"driver " + gpu.driver_version});
  page.add("Identity", items);
}

void add_findings(Page& page, const Gpu& gpu) {
  for (const Finding& finding : gpu.findings) page.add(finding_lines(finding, page.width(), page.charset()));
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
  for (const Share& share : gpu.shares) {
    const std::string user = share.user.empty() ? "" : " (" + share.user + ")";
    items.push_back({share_name(share) + user + " " + percent_text(share.ratio)});
  }
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

Lines finding_lines(const Finding& finding, int width, Charset charset) {
  const Style style = style_of_severity(finding.severity);
  Lines lines = wrapped(finding.text.empty() ? finding.reason : finding.text, style, width, kLabel, charset);
  lines.front().pieces.front() = {padded(finding.severity, kLabel, charset), style};
  Items items;
  if (const std::string action = action_text(finding.action); !action.empty())
    items.push_back({action, Style::bold});
  items.push_back({"reason " + finding.reason});
  if (finding.since_seconds) items.push_back({"for " + age_text(finding.since_seconds)});
  if (!finding.alert.empty()) items.push_back({"alert " + finding.alert});
  for (Line& line : wrapped(items, width, kLabel, charset)) lines.push_back(std::move(line));
  return lines;
}

Lines gpu_detail(const Snapshot& snapshot, const Gpu& gpu, int width, Charset charset) {
  Page page(width, charset);
  add_title(page, gpu);
  add_findings(page, gpu);
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
