#pragma once

#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "collectors/api/process_list.hpp"
#include "collectors/nvidia/gpu_processes.hpp"
#include "collectors/nvidia/nvidia_metrics.hpp"

namespace gpumeter::nvidia {

/// A GPU as its lane has it: the rows of the table, and who uses it.
class NvidiaDevice final : public Device, public ListsProcesses {
 public:
  explicit NvidiaDevice(const NvidiaOptions& options) : NvidiaDevice(NvidiaContext(options), options) {}

  Result<Done> attach(const DeviceInfo& info) override { return table_.attach(info); }
  std::span<const SeriesSpec> series() const override { return table_.series(); }
  void release() noexcept override { table_.release(); }
  PassOutcome sample(const Pass& pass, SampleSink& sink) noexcept override {
    return table_.sample(pass, sink);
  }

  // A list took up to 4.5 ms on some cards, too long for each second.
  Tier processes_tier() const noexcept override { return Tier::normal; }
  ReadStatus processes(const Pass& pass, std::vector<DeviceProcess>& out) noexcept override {
    return processes_->read(pass, out);
  }

 private:
  NvidiaDevice(NvidiaContext context, const NvidiaOptions& options)
      : processes_(context.processes()),
        table_(std::move(context), nvidia_rows(options.each_link), nvidia_partition_rows()) {}

  const std::shared_ptr<GpuProcesses> processes_;  // the context's
  TableDevice<NvidiaContext> table_;
};

}  // namespace gpumeter::nvidia
