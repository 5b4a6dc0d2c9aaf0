#include "daemon/device_session.hpp"

#include <utility>

#include "collectors/api/catalog.hpp"

namespace gpumeter {
namespace {

constexpr std::array kObservedTiers = {Tier::fast, Tier::normal, Tier::slow};

void add_fact(std::vector<Label>& labels, const char* name, const std::string& value) {
  if (!value.empty()) labels.push_back({name, value});
}

std::string text_of(const std::optional<int>& number) {
  return number ? std::to_string(*number) : std::string();
}

std::vector<Label> facts_of(const DeviceIdentity& device) {
  const DeviceInfo& info = device.info;
  std::vector<Label> labels;
  add_fact(labels, "driver", info.driver);
  add_fact(labels, "driver_version", info.driver_version);
  add_fact(labels, "vbios_version", info.vbios_version);
  add_fact(labels, "firmware_version", info.firmware_version);
  add_fact(labels, "pci_address", info.pci_address);
  add_fact(labels, "serial", info.serial);
  add_fact(labels, "architecture", info.architecture);
  add_fact(labels, "compute_units", text_of(info.compute_units));
  add_fact(labels, "numa_node", text_of(info.numa_node));
  add_fact(labels, "vendor_index", info.vendor_index);
  add_fact(labels, "minor", info.minor);
  add_fact(labels, "name", device.name);
  return labels;
}

}  // namespace

DeviceSession::DeviceSession(std::unique_ptr<Device> device, DeviceIdentity identity, DeviceLabels labels,
                             std::shared_ptr<Registry> registry, const Clock& clock,
                             const WorkloadSettings& workloads)
    : device_(std::move(device)),
      registry_(std::move(registry)),
      clock_(clock),
      identity_(std::move(identity)),
      labels_(labels) {
  auto* lister = dynamic_cast<ListsProcesses*>(device_.get());
  if (lister != nullptr && workloads.book) workloads_ = std::make_unique<DeviceWorkloads>(*lister, workloads);
}

DeviceSession::~DeviceSession() { registry_->detach(source_); }

Result<Done> DeviceSession::attach(const DeviceInfo& info) {
  unfinished_ = {};
  observed_.interrupt_all();
  if (Result<Done> opened = device_->attach(info); !opened) return opened;
  identity_.info = info;
  enroll();
  return Done{};
}

// A frame is made anew at each attach: what has no reading yet has no series.
void DeviceSession::enroll() {
  past_errors_ = errors();
  const std::size_t own = device_->series().size();
  frame_ = std::make_unique<Frame>(own + own_series().size());
  sink_.emplace(frame_->sink());
  own_slot_ = own;
  if (workloads_) workloads_->attach(identity_, device_->series());
  relabel(identity_.name, labels_);
}

void DeviceSession::relabel(const std::string& name, const DeviceLabels& labels) {
  identity_.name = name;
  labels_ = labels;
  registry_->detach(source_.exchange(kNoSource));
  if (!frame_) return;
  std::vector<SeriesSpec> series(device_->series().begin(), device_->series().end());
  for (SeriesSpec& own : own_series()) series.push_back(std::move(own));
  source_ = registry_->attach(identity_.collector, LabelBlock(identity_.info, identity_.index, name, labels),
                              series);
}

std::vector<SeriesSpec> DeviceSession::own_series() const {
  std::vector<SeriesSpec> series = {{&catalog::info, facts_of(identity_)}};
  for (const Tier tier : kObservedTiers) {
    series.push_back({&catalog::observed_seconds, {{"tier", std::string(to_string(tier))}}});
  }
  return series;
}

PassOutcome DeviceSession::run(Tier tier, const SamplingIntervals& intervals, const YieldCheck* yield) {
  std::optional<Pass>& pass = unfinished_[static_cast<std::size_t>(tier)];
  if (!pass) {
    const Nanoseconds elapsed = observed_.begin(tier, clock_, intervals.of(tier) + pass_deadline(tier));
    pass = Pass{tier, clock_.monotonic(), elapsed};
  }
  pass->yield = yield;
  const Pass made = *pass;
  const PassOutcome outcome = device_->sample(made, *sink_);
  if (outcome == PassOutcome::complete) observed_.complete(tier, made.elapsed);
  if (outcome == PassOutcome::asleep) observed_.interrupt(tier);
  if (outcome != PassOutcome::interrupted) pass.reset();
  if (outcome == PassOutcome::gone) return outcome;
  export_observed(tier);
  commit(made, outcome);
  return outcome;
}

void DeviceSession::commit(const Pass& pass, PassOutcome outcome) {
  if (!workloads_) return registry_->commit(source_, *frame_);
  registry_->commit(source_, *frame_, workloads_->take(pass, outcome, *frame_));
}

void DeviceSession::export_observed(Tier tier) {
  sink_->set(own_slot_, 1);
  const auto place = static_cast<std::size_t>(tier);
  if (place < kObservedTiers.size()) sink_->set(own_slot_ + 1 + place, to_seconds(observed_.total(tier)));
}

void DeviceSession::lose() {
  unfinished_ = {};
  observed_.interrupt_all();
  if (workloads_) workloads_->lose();
  hide();
}

void DeviceSession::release() {
  device_->release();
  lose();
}

ReadErrors DeviceSession::errors() const noexcept {
  ReadErrors sum = past_errors_;
  for (std::size_t i = 0; sink_ && i < sum.size(); ++i) sum[i] += sink_->errors()[i];
  return sum;
}

}  // namespace gpumeter
