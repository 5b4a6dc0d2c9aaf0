#include "daemon/names/kubelet.hpp"

#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "collectors/api/self_catalog.hpp"

namespace gpumeter {
namespace {

using kubelet::Figures;
using kubelet::SourceFigures;
using kubelet::SourceId;

Labels labels_of(SourceId source) { return Labels({{"source", std::string(to_string(source))}}); }

}  // namespace

KubeletNames::KubeletNames(const kubelet::Settings& settings, const Paths& paths, WorkloadSettings workloads,
                           const Clock& clock, Log& log, Store& store)
    : is_required_(settings.enabled == options::Enabled::on),
      workloads_(std::move(workloads)),
      clock_(clock),
      log_(log),
      waker_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      stopper_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      sources_(settings, paths.sysfs, clock, *workloads_.names, {waker_.number(), stopper_.number()}),
      series_(store.attach()),
      worker_(clock) {}

Result<Done> KubeletNames::start() {
  return worker_.start("kubelet", [this] { return turn(); });
}

void KubeletNames::request_stop() {
  worker_.request_stop();
  eventfd_write(stopper_.number(), 1);
  wake();
}

void KubeletNames::wake() {
  eventfd_write(waker_.number(), 1);
  worker_.wake();
}

Nanoseconds KubeletNames::turn() {
  if (worker_.is_stopping()) return Worker::kForever;
  Figures before;
  {
    MutexLock lock(mutex_);
    if (std::exchange(asks_soon_, false)) sources_.ask_soon();
    before = figures_;
  }
  const Nanoseconds pause = sources_.turn();
  eventfd_t ignored = 0;
  eventfd_read(waker_.number(), &ignored);
  log_changes(before, sources_.figures());
  MutexLock lock(mutex_);
  figures_ = sources_.figures();
  return asks_soon_ ? Nanoseconds{0} : pause;
}

void KubeletNames::log_changes(const Figures& before, const Figures& now) {
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

void KubeletNames::tick() {
  const std::uint64_t generation = workloads_.book->generation();
  if (std::exchange(looked_at_, generation) != generation && has_nameless_pod()) {
    {
      MutexLock lock(mutex_);
      asks_soon_ = true;
    }
    wake();
  }
  Figures figures;
  {
    MutexLock lock(mutex_);
    figures = figures_;
  }
  for (const auto& [source, each] : figures) {
    if (each.is_used || is_required_) add_source_series(source, each, series_);
  }
  series_.commit(clock_.monotonic());
}

// Looks once at each change of the workloads: a pod that no source knows is not asked for again.
bool KubeletNames::has_nameless_pod() const {
  return std::ranges::any_of(workloads_.book->workloads(), [this](const auto& workload) {
    return workload.facts.pod_uid.value() && workloads_.names->labels_of(workload.facts).empty();
  });
}

void add_source_series(SourceId source, const SourceFigures& figures, SeriesList& series) {
  const Labels labels = labels_of(source);
  series.add(self_catalog::names_source_up, labels, figures.is_up ? 1 : 0);
  if (figures.last_success) {
    series.add(self_catalog::names_source_last_success, labels, to_seconds(*figures.last_success));
  }
  for (const auto& [failure, name] : grpc::kFailureNames) {
    if (failure == grpc::Failure::none) continue;
    series.add(self_catalog::names_source_errors, labels.with({{"reason", std::string(name)}}),
               static_cast<double>(figures.errors.at(static_cast<std::size_t>(failure))));
  }
}

std::unique_ptr<KubeletNames> make_kubelet_names(const kubelet::Settings& settings, const Paths& paths,
                                                 const WorkloadSettings& workloads, const Clock& clock,
                                                 Log& log, Store& store) {
  const bool is_wanted = settings.enabled != options::Enabled::off;
  if (!is_wanted || workloads.book == nullptr || workloads.names == nullptr) return nullptr;
  return std::make_unique<KubeletNames>(settings, paths, workloads, clock, log, store);
}

}  // namespace gpumeter
