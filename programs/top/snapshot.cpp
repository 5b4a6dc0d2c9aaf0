#include "programs/top/snapshot.hpp"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "base/text.hpp"

namespace gpumeter::top {
namespace {

using Json = nlohmann::json;

/// Reads fields of a document, whatever their types are.
class Reader {
 public:
  explicit Reader(Charset charset) : charset_(charset) {}

  std::string text(const Json& value) const {
    return value.is_string() ? text(value.get_ref<const std::string&>()) : std::string();
  }
  std::string text(const std::string& any) const { return printable(any, charset_); }
  std::string text(const Json& object, const char* key) const { return text(field(object, key)); }

  static std::optional<double> number(const Json& object, const char* key) {
    const Json& value = field(object, key);
    return value.is_number() ? std::optional(value.get<double>()) : std::nullopt;
  }

  /// Returns null if `object` is none, or has no such field.
  static const Json& field(const Json& object, const char* key) {
    static const Json kNull;
    const auto found = object.find(key);
    return found == object.end() ? kNull : *found;
  }

  /// Returns what `make` returns for each element of the array; nothing if the field is no array.
  template <class Make>
  static auto list(const Json& object, const char* key, Make make) {
    std::vector<decltype(make(object))> made;
    const Json& array = field(object, key);
    if (!array.is_array()) return made;
    for (const Json& each : array) made.push_back(make(each));
    return made;
  }

 private:
  const Charset charset_;
};

Result<Json> document_with(std::string_view json, const char* list) {
  Json root = Json::parse(json, nullptr, false);
  if (root.is_discarded()) return Error("the answer is not JSON; is this gpumeter?");
  if (!Reader::field(root, list).is_array())
    return Error("the answer has no list \"" + std::string(list) + "\"; is this gpumeter?");
  return root;
}

std::optional<Sample> sample_of(const Json& json, const Reader& read) {
  const std::optional<double> value = Reader::number(json, "value");
  if (!value) return std::nullopt;
  Sample sample{read.text(json, "name"), {}, *value, Reader::number(json, "age_seconds").value_or(0)};
  const Json& labels = Reader::field(json, "labels");
  if (!labels.is_object()) return sample;
  for (const auto& [name, label] : labels.items()) sample.labels.emplace(read.text(name), read.text(label));
  return sample;
}

Finding finding_of(const Json& json, const Reader& read) {
  return {read.text(json, "reason"), read.text(json, "severity"), read.text(json, "action"),
          read.text(json, "text"),   read.text(json, "alert"),    Reader::number(json, "since_seconds")};
}

/// A series that is one value of a GPU or a run. If `label` is not empty, only the series with this value.
template <class Owner>
struct Field {
  std::string_view series;
  Number Owner::*target;
  std::string_view label = {};
  std::string_view value = {};
};

/// A series of which a GPU or a run has several, by `label`. Series that differ in other labels are summed.
template <class Owner>
struct List {
  std::string_view series;
  Readings Owner::*target;
  std::string_view label;
  Number Reading::*part = &Reading::value;
};

constexpr Field<Gpu> kGpuFields[] = {
    {"gpu_utilization_ratio", &Gpu::utilization},
    {"gpu_power_watts", &Gpu::power},
    {"gpu_power_max_watts", &Gpu::power_max},
    {"gpu_power_limit_watts", &Gpu::power_limit, "limit", "enforced"},
    {"gpu_energy_joules_total", &Gpu::energy},
    {"gpu_memory_used_bytes", &Gpu::memory_used, "memory", "vram"},
    {"gpu_memory_used_bytes", &Gpu::memory_used, "memory", "unified"},
    {"gpu_memory_size_bytes", &Gpu::memory_size, "memory", "vram"},
    {"gpu_memory_size_bytes", &Gpu::memory_size, "memory", "unified"},
    {"gpu_temperature_celsius", &Gpu::temperature, "sensor", "core"},
    {"gpu_pcie_link_generation", &Gpu::pcie_generation},
    {"gpu_pcie_link_max_generation", &Gpu::pcie_generation_max},
    {"gpu_pcie_link_lanes", &Gpu::pcie_lanes},
    {"gpu_pcie_link_max_lanes", &Gpu::pcie_lanes_max},
    {"gpu_pcie_replays_total", &Gpu::pcie_replays},
    {"gpu_row_remap_pending", &Gpu::row_remap_pending},
    {"gpu_row_remap_failed", &Gpu::row_remap_failed},
};
constexpr List<Gpu> kGpuLists[] = {
    {"gpu_temperature_celsius", &Gpu::temperatures, "sensor"},
    {"gpu_temperature_margin_celsius", &Gpu::temperatures, "sensor", &Reading::of},
    {"gpu_clock_hertz", &Gpu::clocks, "clock"},
    {"gpu_clock_max_hertz", &Gpu::clocks, "clock", &Reading::of},
    {"gpu_throttle_seconds_total", &Gpu::throttles, "cause"},
    {"gpu_throttled", &Gpu::throttles, "cause", &Reading::of},
    {"gpu_engine_utilization_ratio", &Gpu::engines, "engine"},
    {"gpu_fan_speed_ratio", &Gpu::fans, "fan"},
    {"gpu_interconnect_links_up", &Gpu::links, "kind"},
    {"gpu_interconnect_links", &Gpu::links, "kind", &Reading::of},
    {"gpu_interconnect_errors_total", &Gpu::link_errors, "kind"},
    {"gpu_memory_errors_total", &Gpu::memory_errors, "severity"},
    {"gpu_retired_pages", &Gpu::retired_pages, "cause"},
    {"gpu_pcie_errors_total", &Gpu::pcie_errors, "severity"},
    {"gpu_xid_errors_total", &Gpu::xids, "xid"},
};
constexpr Field<Run> kRunFields[] = {
    {"ml_step", &Run::step},
    {"ml_steps_total", &Run::steps, "split", "train"},
    {"ml_inference_duration_seconds_count", &Run::requests},
    {"ml_loss", &Run::loss, "split", "train"},
    {"ml_run_time_seconds", &Run::run_seconds},
    {"ml_energy_joules_total", &Run::energy},
};
constexpr List<Run> kRunLists[] = {{"ml_phase_seconds_total", &Run::phases, "phase"}};
constexpr std::string_view kOthers[] = {"gpu_up",
                                        "gpu_info",
                                        "gpu_suspended",
                                        "gpu_workload_share_ratio",
                                        "gpu_workload_memory_used_bytes",
                                        "gpu_process_memory_used_bytes",
                                        "gpu_workload_info",
                                        "ml_run_gpu_info",
                                        "ml_run_stop_timestamp_seconds",
                                        "ml_last_update_timestamp_seconds",
                                        "gpumeter_build_info",
                                        "gpumeter_simulated"};

template <class Owner, std::size_t N, std::size_t M>
void take(Owner& owner, const Sample& sample, const Field<Owner> (&fields)[N],
          const List<Owner> (&lists)[M]) {
  for (const Field<Owner>& field : fields) {
    if (field.series == sample.name && (field.label.empty() || sample.label(field.label) == field.value))
      owner.*field.target = sample.value;
  }
  for (const List<Owner>& list : lists) {
    if (list.series != sample.name) continue;
    Readings& all = owner.*list.target;
    const std::string_view name = sample.label(list.label);
    auto found = std::ranges::find(all, name, &Reading::name);
    if (found == all.end()) found = all.insert(all.end(), Reading{std::string(name), {}, {}});
    Number& part = (*found).*list.part;
    part = part.value_or(0) + sample.value;
  }
}

/// Collects the series by their GPU, run and workload.
class Builder {
 public:
  explicit Builder(const std::optional<Health>& health) {
    snapshot_.is_judged = health.has_value();
    if (!health) return;
    snapshot_.machine = health->machine;
    for (const Gpu& gpu : health->gpus) gpus_[gpu.uuid] = gpu;
  }

  void add(const Sample& sample) {
    if (sample.name == "gpumeter_build_info") snapshot_.version = sample.label("version");
    if (sample.name == "gpumeter_simulated") snapshot_.is_simulated = sample.value > 0;
    if (sample.name == "gpu_workload_info") workloads_.push_back(&sample);
    if (!sample.label("run").empty()) add_to(run_of(sample), sample);
    if (const std::string_view uuid = sample.label("uuid"); !uuid.empty() && !sample.name.starts_with("ml_"))
      add_to(gpu_of(sample), sample);
  }

  Snapshot finish() {
    for (const auto& [key, run] : runs_) {
      for (const std::string& uuid : run.status.empty() ? uuids_[key] : std::set<std::string>())
        gpus_[uuid].runs.push_back(run.name + " (" + run.user + ")");
    }
    for (auto& [uuid, gpu] : gpus_) snapshot_.gpus.push_back(finished(std::move(gpu)));
    std::ranges::stable_sort(snapshot_.gpus, {}, [](const Gpu& gpu) { return number_of(gpu.index); });
    for (auto& [key, run] : runs_) {
      std::ranges::sort(run.gpus, {}, number_of);
      run.gpus.erase(std::unique(run.gpus.begin(), run.gpus.end()), run.gpus.end());
      snapshot_.runs.push_back(std::move(run));
    }
    std::ranges::stable_partition(snapshot_.runs, [](const Run& run) { return run.status.empty(); });
    return std::move(snapshot_);
  }

 private:
  static long number_of(const std::string& index) { return parse_number<long>(index).value_or(-1); }

  Gpu& gpu_of(const Sample& sample) {
    Gpu& gpu = gpus_[std::string(sample.label("uuid"))];
    gpu.uuid = sample.label("uuid");
    gpu.index = sample.label("gpu");
    if (const std::string_view model = sample.label("model"); !model.empty()) gpu.model = model;
    return gpu;
  }

  Run& run_of(const Sample& sample) {
    Run& run = runs_[{std::string(sample.label("run")), std::string(sample.label("user"))}];
    run.name = sample.label("run");
    run.user = sample.label("user");
    return run;
  }

  void add_to(Gpu& gpu, const Sample& sample) {
    take(gpu, sample, kGpuFields, kGpuLists);
    if (sample.name == "gpu_up" && !snapshot_.is_judged)
      gpu.state = sample.value > 0 ? State::up : State::down;
    if (sample.name == "gpu_suspended") gpu.is_suspended = sample.value > 0;
    if (sample.name == "gpu_info") {
      gpu.driver_version = sample.label("driver_version");
      if (!sample.label("pci_address").empty()) gpu.pci_address = sample.label("pci_address");
    }
    if (sample.name == "gpu_workload_share_ratio") share_of(gpu, sample).ratio = sample.value;
    if (sample.name == "gpu_workload_memory_used_bytes") share_of(gpu, sample).memory = sample.value;
    if (sample.name == "gpu_process_memory_used_bytes")
      gpu.processes.push_back({"process " + std::string(sample.label("pid")),
                               std::string(sample.label("name")),
                               std::string(sample.label("user")),
                               {},
                               sample.value});
  }

  static Share& share_of(Gpu& gpu, const Sample& sample) {
    const std::string_view kind = sample.label("kind");
    const std::string_view name = sample.label("workload");
    const auto found =
        std::ranges::find_if(gpu.shares, [&](const Share& it) { return it.kind == kind && it.name == name; });
    return found == gpu.shares.end()
               ? gpu.shares.emplace_back(Share{std::string(kind), std::string(name), {}})
               : *found;
  }

  void add_to(Run& run, const Sample& sample) {
    take(run, sample, kRunFields, kRunLists);
    if (sample.name == "ml_last_update_timestamp_seconds") run.age_seconds = sample.age_seconds;
    if (sample.name == "ml_run_stop_timestamp_seconds") run.status = sample.label("status");
    if (sample.name != "ml_run_gpu_info") return;
    run.gpus.emplace_back(sample.label("gpu"));
    if (!sample.label("uuid").empty()) uuids_[{run.name, run.user}].emplace(sample.label("uuid"));
  }

  Gpu finished(Gpu gpu) const {
    for (const Reading& sensor : gpu.temperatures) {
      if (!gpu.temperature) gpu.temperature = sensor.value;
      if (sensor.of) gpu.margin = std::min(gpu.margin.value_or(*sensor.of), *sensor.of);
    }
    std::erase_if(gpu.xids, [](const Reading& xid) { return xid.value.value_or(0) <= 0; });
    std::erase_if(gpu.shares,
                  [](const Share& it) { return it.kind == "unattributed" || it.ratio.value_or(0) <= 0; });
    std::ranges::stable_sort(gpu.shares, std::ranges::greater(), &Share::ratio);
    std::ranges::stable_sort(gpu.processes, std::ranges::greater(), &Share::memory);
    for (Share& share : gpu.shares) name(share);
    return gpu;
  }

  /// Replaces the kernel's name of a workload by the one that people know.
  void name(Share& share) const {
    for (const Sample* info : workloads_) {
      if (info->label("kind") != share.kind || info->label("workload") != share.name) continue;
      share.user = info->label("user");
      if (!info->label("k8s_pod").empty()) share.name = info->label("k8s_pod");
    }
    if (share.kind == "container") share.name.resize(std::min<std::size_t>(share.name.size(), 12));
  }

  Snapshot snapshot_;
  std::map<std::string, Gpu> gpus_;
  std::map<std::pair<std::string, std::string>, Run> runs_;
  std::map<std::pair<std::string, std::string>, std::set<std::string>> uuids_;  ///< of the runs' GPUs
  std::vector<const Sample*> workloads_;
};

constexpr double kWindowSeconds = 60;
constexpr double kLeastSeconds = 10;  // less would show 0 and 2 steps by turns

/// The increase of a counter; nullopt if it is unknown, restarted or stood still.
Number increase(Number from, Number to) {
  if (!from || !to || *to <= *from) return std::nullopt;
  return *to - *from;
}

Number ratio(Number part, Number whole) {
  if (!part || !whole || *whole <= 0) return std::nullopt;
  return *part / *whole;
}

Number value_in(const Readings& readings, const std::string& name) {
  const auto found = std::ranges::find(readings, name, &Reading::name);
  return found == readings.end() ? Number(0) : found->value;
}

}  // namespace

Result<std::vector<Sample>> parse_series(std::string_view json, Charset charset) {
  const Result<Json> root = document_with(json, "series");
  if (!root) return root.error();
  const Reader read(charset);
  std::vector<Sample> samples;
  for (const Json& each : Reader::field(*root, "series")) {
    if (auto sample = sample_of(each, read)) samples.push_back(*std::move(sample));
  }
  return samples;
}

Result<Health> parse_health(std::string_view json, Charset charset) {
  const Result<Json> root = document_with(json, "devices");
  if (!root) return root.error();
  const Reader read(charset);
  const auto finding = [&](const Json& each) { return finding_of(each, read); };
  const auto gpu = [&](const Json& each) {
    Gpu made;
    made.index = read.text(each, "gpu");
    made.uuid = read.text(each, "uuid");
    made.model = read.text(each, "model");
    made.pci_address = read.text(each, "pci_address");
    made.state = kStateNames.find(read.text(each, "state")).value_or(State::unknown);
    made.state_seconds = Reader::number(each, "since_seconds");
    made.findings = Reader::list(each, "reasons", finding);
    return made;
  };
  return Health{Reader::list(*root, "devices", gpu), Reader::list(*root, "machine", finding)};
}

Result<Past> parse_history(std::string_view json, Charset charset) {
  const Result<Json> root = document_with(json, "times");
  if (!root) return root.error();
  const Json& columns = Reader::field(*root, "columns");
  const auto values = [&](const char* name) {
    return Reader::list(columns, name, [](const Json& it) {
      return it.is_number() ? Number(it.get<double>()) : std::nullopt;
    });
  };
  return Past{Reader(charset).text(*root, "uuid"), values("utilization_ratio"), values("power_watts"),
              values("memory_used_bytes"), values("temperature_celsius")};
}

Result<std::string> one_line(std::string_view json) {
  const Result<Json> root = document_with(json, "gpus");
  if (!root) return root.error();
  return root->dump(-1, ' ', true, Json::error_handler_t::replace);
}

std::string error_line(const std::string& error) {
  return Json{{"error", error}}.dump(-1, ' ', true, Json::error_handler_t::replace);
}

std::vector<std::string_view> snapshot_series() {
  std::vector<std::string_view> names(std::begin(kOthers), std::end(kOthers));
  const auto add = [&](const auto& rows) {
    for (const auto& row : rows) {
      if (std::ranges::find(names, row.series) == names.end()) names.push_back(row.series);
    }
  };
  add(kGpuFields), add(kGpuLists), add(kRunFields), add(kRunLists);
  return names;
}

Snapshot make_snapshot(const std::vector<Sample>& samples, const std::optional<Health>& health) {
  Builder builder(health);
  for (const Sample& sample : samples) builder.add(sample);
  return builder.finish();
}

void Progress::update(Snapshot& snapshot, double now_seconds) {
  std::map<std::pair<std::string, std::string>, Window> kept;
  for (Run& run : snapshot.runs) {
    const std::pair key(run.name, run.user);
    Window& window = kept[key] = std::move(windows_[key]);
    const double at = now_seconds - run.age_seconds;
    if (window.empty() || at > window.back().seconds)
      window.push_back({at, run.steps, run.requests, run.phases});
    while (window.front().seconds < at - kWindowSeconds) window.pop_front();
    fill_in(run, window);
  }
  windows_ = std::move(kept);
}

void Progress::fill_in(Run& run, const Window& window) {
  const Point& from = window.front();
  const double seconds = window.back().seconds - from.seconds;
  const auto rate = [&](Number then, Number total) {
    if (!run.status.empty()) return Number();
    const bool is_known = then && total && *total >= *then && seconds >= kLeastSeconds;
    return is_known ? Number((*total - *then) / seconds) : ratio(total, run.run_seconds);
  };
  run.step_rate = rate(from.steps, run.steps);
  run.request_rate = rate(from.requests, run.requests);
  Number most;
  for (const Reading& phase : run.phases) {
    const Number recent = increase(value_in(from.phases, phase.name), phase.value);
    if (!recent || *recent <= most.value_or(0)) continue;
    most = recent;
    run.phase = phase.name;
  }
  run.phase_seconds = ratio(most, increase(from.steps, run.steps));
}

}  // namespace gpumeter::top
