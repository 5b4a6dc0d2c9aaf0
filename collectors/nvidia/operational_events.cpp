#include "collectors/nvidia/operational_events.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstring>
#include <iterator>
#include <string_view>
#include <utility>

#include "collectors/nvidia/events.hpp"
#include "collectors/nvidia/nvml/constants.hpp"
#include "collectors/nvidia/nvml/session.hpp"

namespace gpumeter::nvidia {
namespace {

// Longest time between the two reports of one occurrence.
constexpr auto kSameOccurrence = std::chrono::seconds(5);
// XIDs have about 190 codes. A driver that sends arbitrary numbers must not fill the memory.
constexpr std::size_t kMostUnmatched = 256;

constexpr auto kTryAgain = std::chrono::seconds(5);
// Events are read in batches, as those of the other set.
constexpr int kBatch = 1000;
constexpr unsigned kMostContexts = 16;

struct Severity {
  unsigned number;
  std::string_view name;
};
constexpr Severity kSeverities[] = {
    {nvml::kSeverityInformational, "informational"},
    {nvml::kSeverityCorrected, "corrected"},
    {nvml::kSeverityRecoverable, "recoverable"},
    {nvml::kSeverityFatal, "fatal"},
};

bool is_simulated(const nvml::SetEvent& event) noexcept {
  return (event.group_attributes & nvml::kGroupSimulated) != 0;
}

std::string_view severity_of(const nvml::SetEvent& event) noexcept {
  if (is_simulated(event)) return "simulated";
  const auto* const known = std::ranges::find(kSeverities, event.severity, &Severity::number);
  return known == std::end(kSeverities) ? "other" : known->name;
}

/// Of a text that fills its array or ends earlier by a zero.
template <std::size_t Size>
std::string bounded_text(const char (&text)[Size]) {
  return {text, strnlen(text, Size)};
}

OperationalKind kind_of(const nvml::SetEvent& event) {
  std::array<char, 16> code{};
  std::snprintf(code.data(), code.size(), "0x%04x", event.module_event_code);
  std::string module = bounded_text(event.source_module);
  return {module.empty() ? "other" : std::move(module), code.data(), std::string(severity_of(event))};
}

bool has_operational_events(const NvmlFunctions& nvml) noexcept {
  return nvml.nvmlEventSetRegisterGpuOperationalEvents_v1 != nullptr && nvml.nvmlEventSetWait_v3 != nullptr &&
         nvml.nvmlEventSetCreate != nullptr && nvml.nvmlEventSetFree != nullptr;
}

}  // namespace

void OperationalCounts::count(OperationalKind kind) {
  MutexLock lock(mutex_);
  auto known = std::ranges::find(counts_, kind, &Count::kind);
  if (known == counts_.end() && counts_.size() >= kMostKinds) {
    kind.module = kind.code = "other";
    known = std::ranges::find(counts_, kind, &Count::kind);
  }
  if (known == counts_.end()) known = counts_.insert(known, {std::move(kind), 0});
  ++known->events;
}

void OperationalCounts::count_overflow() {
  MutexLock lock(mutex_);
  ++overflows_;
}

void OperationalCounts::set_reporting(bool is_reporting) {
  MutexLock lock(mutex_);
  is_reporting_ = is_reporting;
}

std::vector<OperationalKind> OperationalCounts::kinds() const {
  MutexLock lock(mutex_);
  std::vector<OperationalKind> kinds;
  kinds.reserve(counts_.size());
  for (const Count& count : counts_) kinds.push_back(count.kind);
  return kinds;
}

std::size_t OperationalCounts::size() const noexcept {
  MutexLock lock(mutex_);
  return counts_.size();
}

Sample OperationalCounts::overflows() const noexcept {
  MutexLock lock(mutex_);
  return is_reporting_ ? Sample::of(static_cast<double>(overflows_)) : Sample::miss(ReadStatus::unsupported);
}

void OperationalCounts::write(std::size_t first, std::size_t many, SampleSink& sink) const noexcept {
  MutexLock lock(mutex_);
  for (std::size_t i = 0; i < std::min(many, counts_.size()); ++i) {
    if (is_reporting_) sink.set(first + i, static_cast<double>(counts_[i].events));
    if (!is_reporting_) sink.miss(first + i, ReadStatus::unsupported);
  }
}

bool OperationalCounts::is_first_report(std::uint64_t xid, XidSource source, Nanoseconds now) {
  MutexLock lock(mutex_);
  if (unmatched_.size() >= kMostUnmatched && !unmatched_.contains(xid)) unmatched_.clear();
  Unmatched& of_xid = unmatched_[xid];
  if (now - of_xid.last > kSameOccurrence) of_xid = {};
  if (of_xid.reports > 0 && of_xid.source != source) {
    --of_xid.reports;
    return false;
  }
  of_xid = {source, of_xid.reports + 1, now};
  return true;
}

OperationalListener::~OperationalListener() {
  if (set_ != nullptr) nvml_.nvmlEventSetFree(set_);
}

void OperationalListener::listen(std::string uuid, std::shared_ptr<DeviceEvents> events, LoggedGpu logged) {
  MutexLock lock(mutex_);
  sources_.push_back({std::move(uuid), std::move(events), std::move(logged)});
}

void OperationalListener::forget(const std::shared_ptr<DeviceEvents>& events) {
  MutexLock lock(mutex_);
  std::erase_if(sources_, [&](const Source& source) { return source.events == events; });
  events->operational().set_reporting(false);
}

void OperationalListener::take(const Clock& clock, std::vector<DeviceEvent>& out) {
  if (!has_operational_events(nvml_)) return;
  register_new(clock, out);
  for (int i = 0; i < kBatch && set_ != nullptr; ++i) {
    nvml::SetEvent event{};
    const unsigned result = nvml_.nvmlEventSetWait_v3(set_, &event);
    if (result == nvml::kTimeout) return;
    if (result != nvml::kSuccess) return start_again();
    if (event.data_type == nvml::kOperationalEvent) count(event, clock, out);
  }
}

// A driver that refuses for good is not asked again. Without any registration there is no set to poll.
void OperationalListener::register_new(const Clock& clock, std::vector<DeviceEvent>& out) {
  std::vector<Source> fresh;
  {
    MutexLock lock(mutex_);
    const bool is_time = clock.monotonic() >= try_again_at_;
    for (const Source& source : sources_) {
      if (source.state == State::fresh || (source.state == State::failing && is_time))
        fresh.push_back(source);
    }
  }
  if (fresh.empty()) return;
  try_again_at_ = clock.monotonic() + kTryAgain;
  if (set_ == nullptr && nvml_.nvmlEventSetCreate(&set_) != nvml::kSuccess) set_ = nullptr;
  for (const Source& source : fresh) {
    const unsigned result = set_ == nullptr ? unsigned{nvml::kUnknown} : register_one(source);
    note(source, result);
    if (result != nvml::kNoPermission || std::exchange(has_logged_refusal_, true)) continue;
    out.push_back(
        {source.uuid, "that operational events require CAP_SYS_ADMIN, so they are not read; XIDs are"});
  }
  if (set_ != nullptr && !is_any_on()) nvml_.nvmlEventSetFree(std::exchange(set_, nullptr));
}

bool OperationalListener::is_any_on() {
  MutexLock lock(mutex_);
  return std::ranges::find(sources_, State::on, &Source::state) != sources_.end();
}

unsigned OperationalListener::register_one(const Source& source) {
  nvml::OperationalEventConfig config{};
  if (source.uuid.size() >= sizeof config.uuid) return nvml::kInvalidArgument;
  std::memcpy(config.uuid, source.uuid.data(), source.uuid.size());
  config.min_log_level = nvml::kNoticeLevel;
  return nvml_.nvmlEventSetRegisterGpuOperationalEvents_v1(set_, &config);
}

void OperationalListener::note(const Source& source, unsigned result) {
  MutexLock lock(mutex_);
  for (Source& known : sources_) {
    if (known.events != source.events) continue;
    known.state = is_lacking(status_of(result)) ? State::refused : State::failing;
    if (result == nvml::kSuccess) known.state = State::on;
    known.events->operational().set_reporting(result == nvml::kSuccess);
  }
}

void OperationalListener::start_again() {
  nvml_.nvmlEventSetFree(std::exchange(set_, nullptr));
  MutexLock lock(mutex_);
  for (Source& source : sources_) {
    if (source.state != State::on) continue;
    source.state = State::failing;
    source.events->operational().set_reporting(false);
  }
}

// A simulated event is counted under its own word, and its XID is not: nothing has failed. The ledger has the
// XID of an event that names one.
void OperationalListener::count(const nvml::SetEvent& event, const Clock& clock,
                                std::vector<DeviceEvent>& out) {
  std::optional<Source> of = source_of(bounded_text(event.uuid));
  if (!of) return;
  OperationalCounts& counts = of->events->operational();
  OperationalKind kind = kind_of(event);
  const std::optional<std::uint64_t> xid = legacy_xid();
  std::string text = kind.module + ' ' + kind.code + ", " + kind.severity;
  if (xid) text += ", of xid " + std::to_string(*xid);
  const bool is_new = xid && !is_simulated(event) &&
                      counts.is_first_report(*xid, XidSource::operational_event, clock.monotonic());
  if (is_new && of->logged.is_news("xid", xid, event.gpu_instance, clock))
    of->events->count_xid(*xid, event.gpu_instance, clock.realtime());
  if (is_new) out.push_back({of->uuid, "xid " + std::to_string(*xid)});
  if (!xid || is_simulated(event))
    of->logged.is_news("operational_event", std::nullopt, event.gpu_instance, clock, text);
  if ((event.attributes & nvml::kEventOverflow) != 0) counts.count_overflow();
  counts.count(std::move(kind));
  out.push_back({of->uuid, "operational event " + text});
}

std::optional<OperationalListener::Source> OperationalListener::source_of(const std::string& uuid) {
  MutexLock lock(mutex_);
  const auto of = std::ranges::find(sources_, uuid, &Source::uuid);
  return of == sources_.end() ? std::nullopt : std::optional(*of);
}

/// Of the event that was read last: the first context that is an XID.
std::optional<std::uint64_t> OperationalListener::legacy_xid() const {
  if (nvml_.nvmlEventSetGetContextCount_v1 == nullptr ||
      nvml_.nvmlEventSetGetGpuOperationalEventContextLegacyXid_v1 == nullptr)
    return std::nullopt;
  nvml::EventContextCount contexts{};
  if (nvml_.nvmlEventSetGetContextCount_v1(set_, &contexts) != nvml::kSuccess) return std::nullopt;
  for (unsigned i = 0; i < std::min(contexts.count, kMostContexts); ++i) {
    nvml::EventLegacyXid context{.index = i};
    if (nvml_.nvmlEventSetGetGpuOperationalEventContextLegacyXid_v1(set_, &context) == nvml::kSuccess)
      return context.xid;
  }
  return std::nullopt;
}

}  // namespace gpumeter::nvidia
