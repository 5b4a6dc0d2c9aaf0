#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "collectors/amd/kfd/processes.hpp"
#include "collectors/amd/kfd/topology.hpp"
#include "collectors/api/process_list.hpp"

namespace gpumeter::amd {

/// Who computes on a card, by the compute driver; who only draws is not there. Shared by the device, which is
/// asked for it, and its context, which knows the card and whether it may be read. Lane thread.
class CardProcesses {
 public:
  /// `nodes`: the card's; a divided one has several, which are taken together.
  void open(std::string sysfs_root, const std::vector<KfdNode>& nodes);
  void close() noexcept { gpu_ids_.clear(); }

  /// Whether the card may be asked for what powers it up; says SleepPolicy at the start of each pass.
  void allow_hardware(bool allowed) noexcept { may_ask_hardware_ = allowed; }

  /// As ListsProcesses::processes(). Busy is how much of the card a process occupies at this moment, as if it
  /// had done so since the pass before: of a steady job it is right, of one that comes and goes it is a
  /// sample every few seconds. Told by gfx9 chips (Vega to MI350) alone.
  ReadStatus read(const Pass& pass, std::vector<DeviceProcess>& out) noexcept;

 private:
  ReadStatus list(const Pass& pass, std::vector<DeviceProcess>& out) const;
  DeviceProcess describe(int pid, const std::vector<KfdUse>& uses, Nanoseconds elapsed) const;

  std::string sysfs_root_;
  std::vector<std::uint32_t> gpu_ids_;
  int compute_units_ = 0;
  bool may_ask_hardware_ = false;
};

}  // namespace gpumeter::amd
