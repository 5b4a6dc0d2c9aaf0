#include "daemon/parts/host.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include "collectors/api/sampling.hpp"

namespace gpumeter {

/// An open part. Its turn owns it, and may outlive the host.
struct PartHost::Opened {
  explicit Opened(const PartEntry& its_entry) : entry(its_entry) {}

  const PartEntry& entry;
  std::shared_ptr<Part> part;  ///< constant after open()
  Keeps* keeps = nullptr;      ///< the same object; null: it keeps nothing
  Wakeable job;
  std::atomic<bool> is_awaited = false;  ///< has had no turn since PartHost::begin()

  mutable Mutex mutex;
  std::string section GPUMETER_GUARDED_BY(mutex);  ///< as of the last turn
  std::optional<Nanoseconds> late_since GPUMETER_GUARDED_BY(mutex);

  Nanoseconds turn(const Clock& clock) GPUMETER_EXCLUDES(mutex) {
    const bool was_awaited = is_awaited;
    const Nanoseconds pause = part->turn(clock.monotonic());
    keep();
    if (was_awaited) is_awaited = false;
    return pause;
  }

  void keep() GPUMETER_EXCLUDES(mutex) {
    if (keeps == nullptr) return;
    std::string now = keeps->save();
    const MutexLock lock(mutex);
    section.swap(now);
  }
};

void PartHost::resume(std::map<std::string, std::string> sections, bool is_of_this_boot) {
  const MutexLock lock(mutex_);
  earlier_ = std::move(sections);
  is_of_this_boot_ = is_of_this_boot;
}

Result<Done> PartHost::resume(const PartEntry& entry, Keeps& part) const {
  const MutexLock lock(mutex_);
  const auto section = earlier_.find(std::string(entry.section));
  if (section == earlier_.end()) return Done{};
  return part.resume(section->second, is_of_this_boot_);
}

void PartHost::open(std::span<const PartEntry* const> entries, std::shared_ptr<const config::Config> config) {
  entries_ = entries;
  config_ = std::move(config);
  for (const PartEntry* const entry : entries_) open(*entry);
}

void PartHost::reload(std::shared_ptr<const config::Config> config, Nanoseconds deadline) {
  const auto old = std::exchange(config_, std::move(config));
  for (const PartEntry* const entry : entries_) {
    if (entry->options == nullptr) continue;
    const options::SettingsType& type = *entry->options->type;
    if (type.equal(old->at(type), config_->at(type))) continue;
    close(*entry, deadline);
    open(*entry);
  }
}

void PartHost::close(const PartEntry& entry, Nanoseconds deadline) {
  std::shared_ptr<Opened> opened;
  {
    const MutexLock lock(mutex_);
    const auto found =
        std::ranges::find(parts_, entry.name, [](const auto& each) { return each->entry.name; });
    if (found == parts_.end()) return;
    opened = *found;
    parts_.erase(found);
  }
  if (!opened->job.remove(deadline)) environment_.store.hide(entry.name);
  if (opened->keeps == nullptr) return;
  const MutexLock lock(mutex_);
  const MutexLock part_lock(opened->mutex);
  earlier_[std::string(entry.section)] = opened->section;
  is_of_this_boot_ = true;
}

void PartHost::open(const PartEntry& entry) {
  const auto& [store, machine, clock, log, paths] = environment_;
  const auto opened = std::make_shared<Opened>(entry);
  const auto wake = [weak = std::weak_ptr<Opened>(opened)] {
    if (const auto alive = weak.lock()) alive->job.wake();
  };
  const void* const settings = entry.options == nullptr ? nullptr : config_->at(*entry.options->type);
  const Nanoseconds interval = config_->of<SamplingIntervals>().normal;
  opened->part = entry.open({entry.name, store, machine, clock, log, paths, interval, settings, wake});
  if (opened->part == nullptr) return;
  opened->keeps = dynamic_cast<Keeps*>(opened->part.get());
  const Result<Done> resumed = opened->keeps == nullptr ? Done{} : resume(entry, *opened->keeps);
  if (!resumed) {
    log.error("figures of an earlier process are not understood; they start again",
              {{"part", std::string(entry.name)}, {"error", resumed.error().message()}});
  }
  opened->keep();
  const auto turn = [opened, &its_clock = clock] { return opened->turn(its_clock); };
  const auto late = [this, opened](bool is_late) { note_late(*opened, is_late); };
  const Nanoseconds first = entry.reads_store && !has_begun_ ? Scheduler::kForever : Nanoseconds{0};
  opened->job.add_to(scheduler_, {std::string(entry.name), entry.deadline, turn, late}, first);
  const MutexLock lock(mutex_);
  parts_.push_back(opened);
}

void PartHost::begin() {
  if (has_begun_.exchange(true)) return;
  const MutexLock lock(mutex_);
  for (const auto& opened : parts_) {
    opened->is_awaited = true;
    opened->job.wake();
  }
}

bool PartHost::have_begun() const {
  if (!has_begun_) return false;
  const MutexLock lock(mutex_);
  return std::ranges::none_of(parts_, [](const auto& opened) {
    const MutexLock part_lock(opened->mutex);
    return opened->is_awaited && !opened->late_since;
  });
}

void PartHost::note_late(Opened& opened, bool is_late) {
  const std::string name(opened.entry.name);
  const Nanoseconds now = environment_.clock.monotonic();
  std::optional<Nanoseconds> since;
  {
    const MutexLock lock(opened.mutex);
    since = std::exchange(opened.late_since, is_late ? std::optional(now) : std::nullopt);
  }
  if (is_late) {
    environment_.store.hide(opened.entry.name);
    environment_.log.error("a part does not answer; its series are omitted until it does", {{"part", name}});
  } else if (since) {
    environment_.log.info(
        "a part answers again",
        {{"part", name}, {"seconds", std::to_string((now - *since) / std::chrono::seconds(1))}});
  }
}

std::map<std::string, std::string> PartHost::sections() const {
  std::map<std::string, std::string> sections;
  const MutexLock lock(mutex_);
  for (const auto& opened : parts_) {
    if (opened->keeps == nullptr) continue;
    const MutexLock part_lock(opened->mutex);
    sections[std::string(opened->entry.section)] = opened->section;
  }
  return sections;
}

std::vector<PartHost::State> PartHost::states() const {
  std::vector<State> states;
  const MutexLock lock(mutex_);
  for (const auto& opened : parts_) {
    const MutexLock part_lock(opened->mutex);
    states.push_back({opened->entry.name, !opened->late_since});
  }
  return states;
}

}  // namespace gpumeter
