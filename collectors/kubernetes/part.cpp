#include "collectors/kubernetes/part.hpp"

#include <algorithm>
#include <cctype>
#include <cstring>
#include <filesystem>
#include <map>
#include <optional>
#include <system_error>
#include <utility>

#include "base/log.hpp"
#include "collectors/api/machine.hpp"
#include "collectors/api/self_catalog.hpp"
#include "collectors/attribution/workload_settings.hpp"
#include "exporter/store/series_list.hpp"
#include "exporter/store/store.hpp"

namespace gpumeter::kubelet {
namespace {

using grpc::Call;
using grpc::Failure;
using grpc::Outcome;

/// The API is alpha in 1.35 and beta in 1.37 under one name; a later kubelet may rename it.
constexpr std::array<const char*, 3> kVersions = {"v1alpha1", "v1beta1", "v1"};

constexpr std::size_t kMostPods = 4096;
constexpr std::size_t kMostRemembered = 8192;
constexpr std::size_t kLongestPod = 4U << 20U;                  // etcd's limit of an object is 1.5 MiB
constexpr Nanoseconds kSettle = std::chrono::milliseconds(10);  // for events that come together
constexpr Nanoseconds kShortestPause = std::chrono::seconds(1);
constexpr Nanoseconds kLongestPause = std::chrono::seconds(10);
constexpr Nanoseconds kIfAbsent = std::chrono::minutes(1);  // while the machine shows no sign of a kubelet

std::string method(std::size_t version, const char* name) {
  return std::string("/") + kVersions.at(version) + ".Pods/" + name;
}

Outcome malformed(const Error& error) { return {Failure::malformed, error.message()}; }

}  // namespace

Sources::Sources(Settings settings, const std::string& sysfs, const Clock& clock, workloads::NameBook& book)
    : settings_(std::move(settings)), clock_(clock), book_(book), address_of_(card_addresses(sysfs)) {}

Nanoseconds Sources::turn() {
  bool has_news = watch_ && take_events();
  const Nanoseconds now = clock_.monotonic();
  if (watch_ && now >= watched_since_ + kRewatch) watch_.reset();
  if (!watch_ && !settings_.pods_socket.empty() && now >= watch_at_) {
    open_watch();
    has_news = true;
  }
  if (clock_.monotonic() >= asks_at_) {
    // An open watch is a success, however long nothing happens.
    if (watch_) note(SourceId::pods_api, {});
    ask_rest();
    has_news = true;
  }
  if (has_news) publish();
  const bool will_watch = !watch_ && !settings_.pods_socket.empty();
  const Nanoseconds next = will_watch ? std::min(asks_at_, watch_at_) : asks_at_;
  return std::clamp(next - clock_.monotonic(), Nanoseconds{0}, kIfAbsent);
}

// Returns true if something happened. A server that sends without a pause does not hold the turn.
bool Sources::take_events() {
  const Nanoseconds deadline = clock_.monotonic() + kSettle;
  bool is_synchronised = true;
  bool has_news = false;
  while (true) {
    const Call::Event event = watch_->wait(deadline);
    if (event == Call::Event::end) return end_watch(watch_->outcome(), false), true;
    if (event != Call::Event::message) break;
    take_event(watch_->take_message(), watched_, is_synchronised);
    has_news = true;
    if (clock_.monotonic() >= deadline) break;
  }
  if (has_news) note(SourceId::pods_api, {});
  return has_news;
}

void Sources::take_event(const std::string& message, std::map<std::string, Pod>& pods,
                         bool& is_synchronised) {
  const Result<PodEvent> event = decode_pod_event(message);
  if (!event) return note(SourceId::pods_api, malformed(event.error()));
  if (event->type == PodEvent::Type::initial_sync_complete) is_synchronised = true;
  if (event->pod.empty()) return;
  Result<Pod> pod = decode_pod(event->pod, settings_.labels);
  if (!pod) return note(SourceId::pods_api, malformed(pod.error()));
  if (pod->uid.empty()) return;
  if (event->type == PodEvent::Type::deleted) {
    pods.erase(pod->uid);
  } else if (pods.size() < kMostPods || pods.contains(pod->uid)) {
    const std::string uid = pod->uid;
    pods[uid] = *std::move(pod);
  }
}

void Sources::open_watch() {
  grpc::Request request{.method = method(version_, "WatchPods"), .message = {}};
  request.most_bytes = kLongestPod;
  request.most_messages = 0;
  watch_ = std::make_unique<Call>(settings_.pods_socket, std::move(request), clock_);
  if (synchronise()) {
    watched_since_ = clock_.monotonic();
    watch_pause_ = {};
    note(SourceId::pods_api, {});
  }
}

// The pods that exist come first. The new list replaces the old one when it is complete.
bool Sources::synchronise() {
  std::map<std::string, Pod> pods;
  bool is_synchronised = false;
  const Nanoseconds deadline = clock_.monotonic() + kSyncPatience;
  while (!is_synchronised) {
    const Call::Event event = watch_->wait(deadline);
    if (event == Call::Event::end) {
      end_watch(watch_->outcome(), watch_->is_absent());
      return false;
    }
    if (event != Call::Event::message) break;
    take_event(watch_->take_message(), pods, is_synchronised);
  }
  watched_.swap(pods);
  // Early versions do not mark the end of the list, so it is asked for.
  return is_synchronised || list_pods();
}

bool Sources::list_pods() {
  grpc::Answer answer =
      grpc::ask(settings_.pods_socket, {.method = method(version_, "ListPods"), .message = {}}, clock_,
                clock_.monotonic() + kPatience);
  if (!answer.outcome) return end_watch(answer.outcome, answer.is_absent), false;
  const auto list = decode_pod_list(answer.message);
  if (!list) return end_watch(malformed(list.error()), false), false;
  watched_.clear();
  for (const std::string_view bytes : *list) {
    Result<Pod> pod = decode_pod(bytes, settings_.labels);
    if (!pod || pod->uid.empty()) continue;
    const std::string uid = pod->uid;
    watched_[uid] = *std::move(pod);
  }
  return true;
}

// `outcome` is a copy: the watch owns the original.
void Sources::end_watch(Outcome outcome, bool is_absent) {
  watch_.reset();
  if (outcome.failure == Failure::unimplemented) version_ = (version_ + 1) % kVersions.size();
  // A server that ends a watch without an error is asked again like one that fails.
  if (outcome) outcome = {Failure::unavailable, "the server ended the watch"};
  note(SourceId::pods_api, outcome, is_absent);
  watch_pause_ = std::clamp(watch_pause_ * 2, kShortestPause, kLongestPause);
  if (!figures_[SourceId::pods_api].is_used) watch_pause_ = kIfAbsent;
  watch_at_ = clock_.monotonic() + watch_pause_;
}

void Sources::ask_rest() {
  const std::vector<Pod>* const pods = word_of(SourceId::pods_api);
  if (pods == nullptr || !has_devices(*pods)) {
    ask(SourceId::pod_resources, settings_.resources_socket,
        {.method = "/v1.PodResourcesLister/List", .message = {}}, decode_pod_resources);
  } else {
    words_.erase(SourceId::pod_resources);
  }
  if (pods == nullptr) {
    ask(SourceId::cri, settings_.cri_socket,
        {.method = "/runtime.v1.RuntimeService/ListContainers", .message = cri_running_containers()},
        decode_cri_containers);
  }
  if (pods == nullptr && word_of(SourceId::cri) == nullptr) read_logs();
  const bool is_node = std::ranges::any_of(figures_, [](const auto& each) { return each.second.is_used; });
  asks_at_ = clock_.monotonic() + (is_node ? kEvery : kIfAbsent);
}

void Sources::ask(SourceId source, const std::string& socket, grpc::Request request, Decode& decode) {
  if (socket.empty()) return;
  const grpc::Answer answer = grpc::ask(socket, std::move(request), clock_, clock_.monotonic() + kPatience);
  if (!answer.outcome) return note(source, answer.outcome, answer.is_absent);
  Result<std::vector<Pod>> pods = decode(answer.message);
  if (!pods) return note(source, malformed(pods.error()));
  take(source, *std::move(pods));
}

void Sources::read_logs() {
  if (settings_.log_path.empty()) return;
  Result<std::vector<Pod>> pods = read_log_names(settings_.log_path);
  std::error_code ignored;
  const bool is_absent = !std::filesystem::exists(settings_.log_path + "/pods", ignored);
  if (!pods) return note(SourceId::logs, {Failure::unavailable, pods.error().message()}, is_absent);
  take(SourceId::logs, *std::move(pods));
}

void Sources::take(SourceId source, std::vector<Pod> pods) {
  words_[source] = {std::move(pods), {}};
  note(source, {});
}

void Sources::note(SourceId source, const Outcome& outcome, bool is_absent) {
  SourceFigures& figures = figures_[source];
  figures.is_up = bool(outcome);
  figures.last_error = outcome.message;
  // A source that was there and is gone, as while the kubelet restarts, is not an absent one.
  figures.is_used = figures.is_used || !is_absent;
  if (!outcome && figures.is_used) ++figures.errors.at(static_cast<std::size_t>(outcome.failure));
  if (!outcome) return;
  figures.last_success = clock_.realtime();
  Word& word = words_[source];
  word.at = clock_.monotonic();
  if (source != SourceId::pods_api) return;
  word.pods.clear();
  for (const auto& [uid, pod] : watched_) word.pods.push_back(pod);
}

const std::vector<Pod>* Sources::word_of(SourceId source) const {
  const auto word = words_.find(source);
  if (word == words_.end() || clock_.monotonic() >= word->second.at + kKeep) return nullptr;
  return &word->second.pods;
}

void Sources::publish() {
  std::vector<Pod> pods;
  for (const SourceId source : {SourceId::pods_api, SourceId::cri, SourceId::logs}) {
    const std::vector<Pod>* const word = word_of(source);
    if (word == nullptr) continue;
    pods = *word;
    break;
  }
  const std::vector<Pod>* const resources = word_of(SourceId::pod_resources);
  if (resources != nullptr && !has_devices(pods)) add_devices(pods, *resources);
  workloads::Names names = names_of(pods, address_of_);
  remember(names);
  book_.publish("kubelet", std::move(names));
}

// Uids and ids of containers are never used again, so an old name cannot be a wrong one.
void Sources::remember(workloads::Names& names) {
  const Nanoseconds now = clock_.monotonic();
  std::erase_if(departed_, [now](const auto& each) { return now >= each.second.until; });
  for (const auto& [key, labels] : names.labels) {
    if (departed_.size() < kMostRemembered || departed_.contains(key))
      departed_[key] = {labels, now + kRemember};
  }
  for (const auto& [key, each] : departed_) names.labels.emplace(key, each.labels);
}

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

// Between two looks at a watch and at the workloads.
constexpr Nanoseconds kLookEvery = std::chrono::seconds(1);

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
    return kLookEvery;
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
