#pragma once

#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "collectors/amd/amd_metrics.hpp"
#include "collectors/amd/card_processes.hpp"
#include "collectors/api/process_list.hpp"

namespace gpumeter::amd {

/// A card as its lane has it: the rows of the table, and who computes on it.
class AmdDevice final : public Device, public ListsProcesses {
 public:
  explicit AmdDevice(const std::string& sysfs_root) : AmdDevice(AmdContext(sysfs_root)) {}

  Result<Done> attach(const DeviceInfo& info) override { return table_.attach(info); }
  std::span<const SeriesSpec> series() const override { return table_.series(); }
  void release() noexcept override { table_.release(); }
  PassOutcome sample(const Pass& pass, SampleSink& sink) noexcept override {
    return table_.sample(pass, sink);
  }

  Tier processes_tier() const noexcept override { return Tier::normal; }
  ReadStatus processes(const Pass& pass, std::vector<DeviceProcess>& out) noexcept override {
    return processes_->read(pass, out);
  }

 private:
  explicit AmdDevice(AmdContext context)
      : processes_(context.processes()), table_(std::move(context), amd_rows(), amd_partition_rows()) {}

  const std::shared_ptr<CardProcesses> processes_;  // the context's
  TableDevice<AmdContext> table_;
};

}  // namespace gpumeter::amd
