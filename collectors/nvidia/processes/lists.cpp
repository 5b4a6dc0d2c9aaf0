#include "collectors/nvidia/processes/lists.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <tuple>

#include "collectors/nvidia/nvml/abi.hpp"
#include "collectors/nvidia/nvml/by_driver.hpp"

namespace gpumeter::nvidia {
namespace {

// Numbers of entries. A count above the maximum is rejected.
constexpr std::size_t kLeastRoom = 64;
constexpr std::size_t kMostRoom = 4096;
constexpr std::size_t kEntry = sizeof(nvml::WideProcessInfo);

/// Calls `each` for every run of adjacent entries with the same `key`.
template <class Key, class Each>
void for_each_run(auto entries, Key key, Each each) {
  while (!entries.empty()) {
    const auto other = [&](const auto& entry) { return key(entry) != key(entries.front()); };
    const auto end = std::find_if(entries.begin(), entries.end(), other);
    const auto length = static_cast<std::size_t>(end - entries.begin());
    each(entries.first(length));
    entries = entries.subspan(length);
  }
}

}  // namespace

void ProcessLists::open(std::string_view driver_version) {
  may_be_wide_ = may_be_wide(driver_version);
  room_.resize(std::max(room_.size(), kLeastRoom * kEntry));
}

// A list that this GPU or library lacks leaves the others valid. A list that fails invalidates all, since the
// missing processes are then unknown.
ReadStatus ProcessLists::add(NvmlCaller& caller, unsigned gpu_instance) {
  static constexpr std::array kLists = {
      &ProcessLists::read<&F::nvmlDeviceGetComputeRunningProcesses_v3>,
      &ProcessLists::read<&F::nvmlDeviceGetGraphicsRunningProcesses_v3>,
      &ProcessLists::read<&F::nvmlDeviceGetMPSComputeRunningProcesses_v3>,
  };
  ReadStatus result = ReadStatus::unsupported;
  for (std::size_t list = 0; list < kLists.size(); ++list) {
    const ReadStatus status = (this->*kLists[list])(caller, list, gpu_instance);
    if (status == ReadStatus::unsupported) continue;
    if (status != ReadStatus::ok) return status;
    result = ReadStatus::ok;
  }
  return result;
}

template <auto Function>
ReadStatus ProcessLists::read(NvmlCaller& caller, std::size_t list, unsigned gpu_instance) {
  unsigned count = 0;
  const ReadStatus status = status_of(ask<Function>(caller, count));
  if (status != ReadStatus::ok) return status;
  const bool makes_sense =
      take_in(std::min(count, static_cast<unsigned>(room_.size() / kEntry)), list, gpu_instance);
  return makes_sense ? ReadStatus::ok : ReadStatus::out_of_range;
}

// INSUFFICIENT_SIZE sets the count. The room gets a margin, as processes may start before the next call.
template <auto Function>
unsigned ProcessLists::ask(NvmlCaller& caller, unsigned& count) {
  for (;;) {
    count = static_cast<unsigned>(room_.size() / kEntry);
    std::fill(room_.begin(), room_.end(), kUntouched);
    const unsigned result = caller.call<Function>(&count, static_cast<void*>(room_.data()));
    if (result != nvml::kInsufficientSize || !make_room(count)) return result;
  }
}

/// Returns false if the room is already that large, or if the count is above the maximum.
bool ProcessLists::make_room(std::size_t count) {
  if (count * kEntry <= room_.size() || count > kMostRoom) return false;
  room_.resize(std::min(count + kLeastRoom, kMostRoom) * kEntry);
  return true;
}

// A pid of 0 marks a process that has no pid in the daemon's pid namespace.
bool ProcessLists::take_in(std::size_t count, std::size_t list, unsigned gpu_instance) {
  const std::size_t stride = may_be_wide_ ? stride_of(room_, count) : sizeof(nvml::ProcessInfo);
  for (std::size_t i = 0; stride != 0 && i < count; ++i) {
    nvml::ProcessInfo info;
    std::memcpy(&info, room_.data() + i * stride, sizeof info);
    if (info.gpu_instance == nvml::kNoInstance) info.gpu_instance = gpu_instance;
    if (info.pid != 0)
      entries_.push_back({info.pid, info.gpu_instance, info.compute_instance, list, info.used_memory});
  }
  return stride != 0;
}

void ProcessLists::append_to(std::vector<DeviceProcess>& out) {
  const auto order = [](const Entry& entry) {
    return std::tie(entry.pid, entry.gpu_instance, entry.compute_instance, entry.list);
  };
  std::sort(entries_.begin(), entries_.end(),
            [&](const Entry& a, const Entry& b) { return order(a) < order(b); });
  const auto pid = [](const Entry& entry) { return entry.pid; };
  for_each_run(Entries(entries_), pid, [&](Entries process) {
    out.push_back({static_cast<int>(process.front().pid), memory_of(process), std::nullopt, {}});
  });
}

// Instances have separate memory, so the values of a process in several instances are added up.
std::optional<double> ProcessLists::memory_of(Entries process) {
  const auto instance = [](const Entry& entry) {
    return std::tie(entry.gpu_instance, entry.compute_instance);
  };
  std::optional<double> total = 0;
  for_each_run(process, instance, [&](Entries inside) {
    const std::optional<double> memory = memory_in_instance(inside);
    total = total && memory ? std::optional(*total + *memory) : std::nullopt;
  });
  return total;
}

// Each list reports all the memory of the process in that instance: nvidia-smi shows a process that is in two
// lists as one line, "C+G" or "M+C", with one number. The lists are read one after the other, so their
// numbers may differ slightly. The result is the larger one, never the sum.
std::optional<double> ProcessLists::memory_in_instance(Entries process) {
  std::optional<double> most;
  for_each_run(
      process, [](const Entry& entry) { return entry.list; },
      [&](Entries list) {
        double sum = 0;
        for (const Entry& entry : list) {
          if (entry.memory == nvml::kValueNotAvailable) return;
          sum += static_cast<double>(entry.memory);
        }
        most = std::max(most.value_or(0), sum);
      });
  return most;
}

}  // namespace gpumeter::nvidia
