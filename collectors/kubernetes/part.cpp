#include "collectors/kubernetes/part.hpp"

#include <algorithm>
#include <cctype>
#include <cstring>
#include <map>
#include <optional>
#include <utility>

#include "base/log.hpp"
#include "collectors/api/machine.hpp"
#include "collectors/api/self_catalog.hpp"
#include "collectors/attribution/workload_settings.hpp"
#include "collectors/kubernetes/sources.hpp"
#include "exporter/store/series_list.hpp"
#include "exporter/store/store.hpp"

namespace gpumeter::kubelet {
namespace {

using options::check_optional_path;
using options::check_socket_path;
using options::checked;
using options::Complaint;
using options::Option;
using options::option;
using options::printable;
using options::Reload;

/// Requires names of Kubernetes' labels that remain different as names of Prometheus' labels.
Complaint check_pod_labels(const std::vector<std::string>& labels) {
  constexpr std::size_t kMost = 32;
  constexpr std::size_t kLongest = 253 + 1 + 63;  // PREFIX/NAME
  if (labels.size() > kMost) return "must have at most 32 labels";
  std::map<std::string, std::string> exported;
  for (const std::string& label : labels) {
    const auto is_word = [](unsigned char c) { return std::isalnum(c) != 0; };
    const auto is_allowed = [&](unsigned char c) {
      return is_word(c) || (c != 0 && std::strchr("-_./", c) != nullptr);
    };
    if (label.empty() || label.size() > kLongest || !std::all_of(label.begin(), label.end(), is_allowed)) {
      return "must have names of Kubernetes' labels, such as app.kubernetes.io/name, not \"" +
             printable(label) + "\"";
    }
    std::string name = label;
    std::replace_if(
        name.begin(), name.end(), [&](unsigned char c) { return !is_word(c); }, '_');
    if (const auto [other, is_new] = exported.emplace(name, label); !is_new) {
      return "must not have both \"" + printable(other->second) + "\" and \"" + printable(label) +
             "\": both are exported as k8s_label_" + name;
    }
  }
  return std::nullopt;
}

// One row an option.
// clang-format off
constexpr Option kOptions[] = {
    option<&Settings::enabled>("enabled", Reload::applies, "Name pods from local sources of the node. auto: if any of them is there; true: sources that are missing are errors."),
    option<&Settings::pods_socket>("pods_socket", Reload::applies, "Socket of the kubelet's Pods API (Kubernetes 1.37, in 1.35 and 1.36 by feature gate): names, owners, labels and devices of pods. Empty: not used.", checked<check_socket_path>),
    option<&Settings::resources_socket>("pod_resources_socket", Reload::applies, "Socket of the kubelet's pod-resources: devices of pods, if the Pods API does not list them. Empty: not used.", checked<check_socket_path>),
    option<&Settings::log_path>("log_path", Reload::applies, "Folder with `pods` and `containers`, whose file names are the names of pods, if the Pods API is missing. No log is read. Empty: not used.", checked<check_optional_path>),
    option<&Settings::cri_socket>("cri_socket", Reload::applies, "Socket of the container runtime, in place of `log_path`. Whoever may open it is root on the node. Empty: not used.", checked<check_socket_path>),
    option<&Settings::labels>("labels", Reload::applies, "Labels of pods that are exported, such as `[team, app.kubernetes.io/name]`: `k8s_label_team`, `k8s_label_app_kubernetes_io_name`. Requires the Pods API.", checked<check_pod_labels>),
};
// clang-format on

constexpr Nanoseconds kEvery = std::chrono::seconds(1);  // between two looks at a watch and at the workloads

class PodNames final : public Part {
 public:
  explicit PodNames(const PartContext& context)
      : is_required_(context.settings_of<Settings>().enabled == options::Enabled::on),
        workloads_(context.machine.workloads),
        log_(context.log),
        sources_(context.settings_of<Settings>(), context.paths.sysfs, context.clock, *workloads_->names),
        series_(context.store.attach({}, context.name)) {}
  ~PodNames() override { workloads_->names->publish("kubelet", {}); }

  Nanoseconds turn(Nanoseconds now) override {
    const std::uint64_t generation = workloads_->book->generation();
    if (std::exchange(looked_at_, generation) != generation && has_nameless_pod()) sources_.ask_soon();
    const Figures before = sources_.figures();
    sources_.turn();
    log_changes(before, sources_.figures());
    for (const auto& [source, figures] : sources_.figures()) {
      if (figures.is_used || is_required_) add_series(source, figures, series_);
    }
    series_.commit(now);
    return kEvery;
  }

 private:
  void log_changes(const Figures& before, const Figures& now);
  bool has_nameless_pod() const;

  const bool is_required_;  ///< `enabled: true`: a missing source is on the page too
  const std::shared_ptr<const WorkloadSettings> workloads_;
  Log& log_;
  Sources sources_;
  SeriesList series_;
  std::uint64_t looked_at_ = 0;  ///< the generation of the workloads
};

void PodNames::log_changes(const Figures& before, const Figures& now) {
  for (const auto& [source, figures] : now) {
    const auto last = before.find(source);
    const bool was_used = last != before.end() && (last->second.is_used || is_required_);
    if (!figures.is_used && !is_required_) continue;
    if (was_used && last->second.is_up == figures.is_up) continue;
    const std::string name(to_string(source));
    if (figures.is_up) {
      log_.info("names of pods are read", {{"source", name}});
    } else {
      log_.warn("names of pods cannot be read; the last answer holds for 10 minutes",
                {{"source", name}, {"error", figures.last_error}});
    }
  }
}

// Looks once at each change of the workloads: a pod that no source knows is not asked for again.
bool PodNames::has_nameless_pod() const {
  return std::ranges::any_of(workloads_->book->workloads(), [this](const auto& workload) {
    return workload.facts.pod_uid.value() && workloads_->names->labels_of(workload.facts).empty();
  });
}

std::shared_ptr<Part> open(const PartContext& context) {
  const bool is_wanted = context.settings_of<Settings>().enabled != options::Enabled::off;
  if (!is_wanted || context.machine.workloads == nullptr) return nullptr;
  return std::make_shared<PodNames>(context);
}

}  // namespace

void add_series(SourceId source, const SourceFigures& figures, SeriesList& to) {
  const Labels labels({{"source", std::string(to_string(source))}});
  to.add(self_catalog::names_source_up, labels, figures.is_up ? 1 : 0);
  if (figures.last_success) {
    to.add(self_catalog::names_source_last_success, labels, to_seconds(*figures.last_success));
  }
  for (const auto& [failure, name] : grpc::kFailureNames) {
    if (failure == grpc::Failure::none) continue;
    to.add(self_catalog::names_source_errors, labels.with({{"reason", std::string(name)}}),
           static_cast<double>(figures.errors.at(static_cast<std::size_t>(failure))));
  }
}

constinit const options::Section kSection = options::section("kubernetes", kOptions);

// The sources answer within their own deadlines; a folder of logs may hang.
const PartEntry kPart = {.name = "kubernetes",
                         .options = &kSection,
                         .deadline = Sources::kLongestTurn + std::chrono::seconds(2),
                         .is_on_single_page = true,
                         .open = open};

}  // namespace gpumeter::kubelet
