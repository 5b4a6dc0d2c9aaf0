#pragma once

#include <concepts>
#include <vector>

#include "collectors/api/process_list.hpp"
#include "collectors/table/device.hpp"

namespace gpumeter {

/// A context that tells who uses its device, in the way and at the time of ListsProcesses.
template <class Context>
concept KnowsProcesses = requires(Context context, const Pass& pass, std::vector<DeviceProcess>& out) {
  { Context::kProcessesTier } -> std::convertible_to<Tier>;
  { context.processes(pass, out) } noexcept -> std::same_as<ReadStatus>;
};

/// A TableDevice with such a context.
template <KnowsProcesses Context>
class ListingDevice final : public TableDevice<Context>, public ListsProcesses {
 public:
  using TableDevice<Context>::TableDevice;

  Tier processes_tier() const noexcept override { return Context::kProcessesTier; }
  ReadStatus processes(const Pass& pass, std::vector<DeviceProcess>& out) noexcept override {
    return this->context().processes(pass, out);
  }
};

}  // namespace gpumeter
