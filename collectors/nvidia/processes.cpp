#include "collectors/nvidia/processes.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <exception>
#include <optional>
#include <tuple>
#include <vector>

#include "collectors/nvidia/nvml/abi.hpp"
#include "collectors/nvidia/nvml/constants.hpp"
#include "collectors/nvidia/nvml/session.hpp"
#include "collectors/nvidia/sources.hpp"

namespace gpumeter::nvidia {
namespace {

/// Calls a function of NVML that fills a list: repeats call() with `count` set to the room until the room
/// suffices, and returns the last result. `count` is then the number of entries, at most the room if the
/// result is SUCCESS. Lane thread; throws only what a vector does.
template <class Entry, class Call>
unsigned ask_with_room(std::vector<Entry>& room, unsigned& count, Call call) {
  // Libraries request room for 100 (NVIDIA/go-nvml#11). A request above the maximum is rejected.
  constexpr std::size_t kLeastRoom = 128;
  constexpr std::size_t kMostRoom = 4096;
  if (room.empty()) room.resize(kLeastRoom);
  for (;;) {
    count = static_cast<unsigned>(room.size());
    const unsigned result = call();
    if (result != nvml::kInsufficientSize || count <= room.size() || count > kMostRoom) return result;
    room.resize(count);
  }
}

// Microseconds: 72 samples at the slowest rate of one a second, and a margin.
constexpr std::uint64_t kLongestMemory = 120'000'000;

constexpr unsigned kMostPercent = 100;  // larger values are leftovers of dead processes (Syllo/nvtop#110)

std::uint64_t microseconds(Nanoseconds time) noexcept {
  return static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::microseconds>(time).count());
}

/// No process was at work.
bool is_idle(unsigned result) noexcept { return result == nvml::kNotFound || result == nvml::kNoData; }

}  // namespace

ReadStatus Busy::read(NvmlCaller& caller, Nanoseconds elapsed) {
  elapsed_ = elapsed;
  if (elapsed == Nanoseconds{0}) seen_until_ = 0;
  const unsigned result = seen_until_ == 0 ? begin(caller) : go_on(caller);
  if (result != nvml::kSuccess || elapsed == Nanoseconds{0}) shares_.clear();
  return is_idle(result) ? ReadStatus::ok : status_of(result);
}

// The driver's clock cannot be read, so its newest sample is the best estimate. The call before found no
// process at work; time since then is counted as far as samples cover it. A sample that was seen before is
// not counted again. The driver stops sampling while the GPU idles, and then returns only such samples.
unsigned Busy::begin(NvmlCaller& caller) {
  const unsigned result = ask(caller, 0);
  if (result != nvml::kSuccess || shares_.empty()) return result;
  const std::uint64_t newest = newest_share();
  if (elapsed_ == Nanoseconds{0}) return seen_until_ = newest_ = newest, result;
  if (newest + kLongestMemory < newest_) newest_ = 0;  // the clock was set back
  seen_until_ = std::max(newest - std::min(newest, microseconds(elapsed_)), newest_);
  return go_on(caller);
}

// The next call starts at the present time, not at the newest timestamp. Otherwise a time without work would
// be averaged in twice. After an idle time counting begins again, since the driver's clock may have been set
// back.
unsigned Busy::go_on(NvmlCaller& caller) {
  const unsigned result = ask(caller, seen_until_);
  if (is_idle(result)) seen_until_ = 0;
  if (result != nvml::kSuccess) return result;
  newest_ = std::max(newest_, newest_share());
  seen_until_ = std::max(newest_, seen_until_ + microseconds(elapsed_));
  return result;
}

unsigned Busy::ask(NvmlCaller& caller, std::uint64_t since) {
  shares_.clear();
  return read_samples(caller, since);
}

std::uint64_t Busy::newest_share() const noexcept {
  std::uint64_t newest = 0;
  for (const Share& share : shares_) newest = std::max(newest, share.timestamp);
  return newest;
}

// A user that is listed twice counts only once.
double Busy::seconds_of(unsigned user) const noexcept {
  unsigned percent = 0;
  for (const Share& share : shares_) {
    if (share.user == user) percent = std::max(percent, share.percent);
  }
  return static_cast<double>(percent) / kMostPercent * to_seconds(elapsed_);
}

template <class Entry, class Call, class ShareOf>
unsigned Busy::take_list(std::vector<Entry>& room, unsigned& count, std::uint64_t since, Call call,
                         ShareOf share_of) {
  const unsigned result = ask_with_room(room, count, call);
  if (result != nvml::kSuccess) return result;
  for (std::size_t i = 0; i < std::min<std::size_t>(count, room.size()); ++i) {
    const Share share = share_of(room[i]);
    if (share.percent <= kMostPercent && share.timestamp > since) shares_.push_back(share);
  }
  return result;
}

// From Blackwell on the former call returns nothing (Project-HAMi/HAMi-core#218), so the present one comes
// first.
unsigned ProcessBusy::read_samples(NvmlCaller& caller, std::uint64_t since) {
  const auto share_of = [](const auto& sample) { return Share{sample.pid, sample.timestamp, sample.sm}; };
  nvml::ProcessesUtilization query{};
  const auto present = [&] {
    query.last_seen = since;
    query.samples = present_.data();
    return caller.call<&F::nvmlDeviceGetProcessesUtilizationInfo>(&query);
  };
  const unsigned result = take_list(present_, query.count, since, present, share_of);
  if (status_of(result) != ReadStatus::unsupported) return result;
  unsigned count = 0;
  const auto former = [&] {
    return caller.call<&F::nvmlDeviceGetProcessUtilization>(former_.data(), &count, since);
  };
  return take_list(former_, count, since, former, share_of);
}

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

bool ProcessLists::divide(unsigned gpu_instance, std::optional<double> device_seconds, double held_ratio,
                          std::vector<DeviceProcess>& listed) const {
  std::vector<std::pair<unsigned, std::optional<double>>> inside;  // pid, memory
  for_each_run(
      Entries(entries_), [](const Entry& entry) { return std::tie(entry.pid, entry.gpu_instance); },
      [&](Entries process) {
        if (process.front().gpu_instance == gpu_instance)
          inside.emplace_back(process.front().pid, memory_of(process));
      });
  double sum = 0;
  const bool is_known = std::ranges::all_of(inside, [&](const auto& process) {
    sum += process.second.value_or(0);
    return process.second.has_value();
  });
  for (const auto& [pid, memory] : inside) {
    const double part = is_known && sum > 0 ? *memory / sum : 1 / static_cast<double>(inside.size());
    const auto process = std::ranges::lower_bound(listed, static_cast<int>(pid), {}, &DeviceProcess::pid);
    process->held_ratio = process->held_ratio.value_or(0) + held_ratio * part;
    if (device_seconds)
      process->device_seconds = process->device_seconds.value_or(0) + *device_seconds * part;
  }
  return !inside.empty();
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

namespace {

/// The identity that the hypervisor gave to the machine: a UUID, or a number of the hypervisor's. Empty if
/// the driver does not report it, or not as printable text.
std::string machine_in(NvmlCaller& gpu, nvml::Vgpu vgpu) {
  std::array<char, 96> buffer{};  // NVML_DEVICE_UUID_BUFFER_SIZE is 80
  unsigned type = 0;
  const auto size = static_cast<unsigned>(buffer.size() - 1);
  if (gpu.call_plain<&F::nvmlVgpuInstanceGetVmID>(vgpu, buffer.data(), size, &type) != nvml::kSuccess)
    return "";
  std::string text = buffer.data();
  const auto is_printable = [](char c) { return c > ' ' && c <= '~'; };
  return std::ranges::all_of(text, is_printable) ? text : std::string();
}

unsigned percent_of(const nvml::Value& value, nvml::ValueType type) noexcept {
  const double percent = number_of(value, type);
  constexpr double kUnknown = 1000;  // above 100, so that Busy drops it
  return percent >= 0 && percent < kUnknown ? static_cast<unsigned>(percent)
                                            : static_cast<unsigned>(kUnknown);
}

std::optional<double> memory_of(NvmlCaller& gpu, nvml::Vgpu vgpu) {
  std::uint64_t used = 0;
  if (gpu.call_plain<&F::nvmlVgpuInstanceGetFbUsage>(vgpu, &used) != nvml::kSuccess) return std::nullopt;
  return static_cast<double>(used);
}

}  // namespace

unsigned VgpuBusy::read_samples(NvmlCaller& caller, std::uint64_t since) {
  auto type = nvml::ValueType::uint;
  const auto share_of = [&](const auto& sample) {
    return Share{sample.vgpu, sample.timestamp, percent_of(sample.sm, type)};
  };
  nvml::VgpusUtilization query{};
  const auto present = [&] {
    query.last_seen = since;
    query.samples = present_.data();
    const unsigned answer = caller.call<&F::nvmlDeviceGetVgpuInstancesUtilizationInfo>(&query);
    return type = query.type, answer;
  };
  const unsigned result = take_list(present_, query.count, since, present, share_of);
  if (status_of(result) != ReadStatus::unsupported) return result;
  unsigned count = 0;
  type = nvml::ValueType::uint;
  const auto former = [&] {
    return caller.call<&F::nvmlDeviceGetVgpuUtilization>(since, &type, &count, former_.data());
  };
  return take_list(former_, count, since, former, share_of);
}

void Vgpus::open(NvmlCaller& gpu) {
  is_host_ = number_of<&F::nvmlDeviceGetVirtualizationMode>(gpu) == nvml::kHostVgpu;
  machines_.clear();
  busy_.open();
}

ReadStatus Vgpus::read(NvmlCaller& gpu, Nanoseconds elapsed, std::vector<DeviceProcess>& out) {
  unsigned count = 0;
  const unsigned result = ask_with_room(
      active_, count, [&] { return gpu.call<&F::nvmlDeviceGetActiveVgpus>(&count, active_.data()); });
  if (result != nvml::kSuccess) return status_of(result);
  const auto end = active_.begin() + std::min<std::ptrdiff_t>(count, std::ssize(active_));
  std::erase_if(machines_,
                [&](const auto& known) { return std::find(active_.begin(), end, known.first) == end; });
  if (count == 0) return ReadStatus::ok;
  const ReadStatus busy = busy_.read(gpu, elapsed);
  if (busy == ReadStatus::gone) return busy;
  std::for_each(active_.begin(), end, [&](nvml::Vgpu vgpu) {
    DeviceProcess& machine = out.emplace_back();
    machine.vm = machine_of(gpu, vgpu);
    machine.memory_bytes = memory_of(gpu, vgpu);
    if (busy == ReadStatus::ok) machine.busy_seconds = busy_.seconds_of(vgpu);
  });
  return gpu.is_lost() ? ReadStatus::gone : ReadStatus::ok;
}

// A machine without an identity is named by its virtual GPU.
const std::string& Vgpus::machine_of(NvmlCaller& gpu, nvml::Vgpu vgpu) {
  const auto [known, is_new] = machines_.try_emplace(vgpu);
  if (is_new) known->second = machine_in(gpu, vgpu);
  if (known->second.empty()) known->second = "vgpu-" + std::to_string(vgpu);
  return known->second;
}

// The parts of the memory are eighths, or quarters on A30; the driver reports them less what it reserves.
void GpuProcesses::open(const NvmlCaller& gpu, std::span<const MigInstance> instances,
                        std::span<GpmSampler* const> samplers) {
  gpu_ = gpu;
  instances_.clear();
  slices_.clear();
  nvml::Memory memory{};
  double multiprocessors = 0;
  for (const MigInstance& instance : instances) multiprocessors += instance.multiprocessors;
  const bool is_sized = multiprocessors > 0 &&
                        gpu_.call<&F::nvmlDeviceGetMemoryInfo>(&memory) == nvml::kSuccess && memory.total > 0;
  for (std::size_t i = 0; is_sized && i < instances.size(); ++i) {
    constexpr double kParts = 8;
    const double part = instances[i].memory_bytes / static_cast<double>(memory.total);
    slices_.push_back({instances[i].gpu_instance, instances[i].multiprocessors / multiprocessors,
                       std::round(part * kParts) / kParts, samplers[i]});
  }
  for (const MigInstance& instance : instances) {
    for (const nvml::Device handle : instance.compute_instances)
      instances_.push_back({NvmlCaller(gpu.session(), handle), instance.gpu_instance});
  }
  lists_.open(driver_version(gpu_));
  busy_.open();
  vgpus_.open(gpu_);
}

void GpuProcesses::close() noexcept {
  gpu_ = {};
  instances_.clear();
  slices_.clear();
}

unsigned GpuProcesses::lost_by() const noexcept {
  for (const Instance& instance : instances_) {
    if (instance.caller.lost_by() != nvml::kSuccess) return instance.caller.lost_by();
  }
  return gpu_.lost_by();
}

ReadStatus GpuProcesses::read(const Pass& pass, std::vector<DeviceProcess>& out) noexcept {
  try {
    return list(pass, out);
  } catch (const std::exception&) {  // out of memory
    out.clear();
    return ReadStatus::failed;
  }
}

// The vGPU manager's own processes hold the memory of the machines, and its driver runs no other work on the
// host. Listing them too would count the memory twice.
ReadStatus GpuProcesses::list(const Pass& pass, std::vector<DeviceProcess>& out) {
  if (vgpus_.is_host()) {
    const ReadStatus status = vgpus_.read(gpu_, pass.elapsed, out);
    if (status != ReadStatus::ok || !out.empty()) return status;
  }
  return list_processes(pass, out);
}

// The driver does not sample processes of a divided GPU (nvml.h at nvmlDeviceGetProcessUtilization).
ReadStatus GpuProcesses::list_processes(const Pass& pass, std::vector<DeviceProcess>& out) {
  if (const ReadStatus status = ask_for_lists(); status != ReadStatus::ok) return status;
  const ReadStatus busy = instances_.empty() ? busy_.read(gpu_, pass.elapsed) : ReadStatus::unsupported;
  if (busy == ReadStatus::gone) return busy;
  lists_.append_to(out);
  for (DeviceProcess& process : out) {
    if (busy == ReadStatus::ok) process.busy_seconds = busy_.seconds_of(static_cast<unsigned>(process.pid));
  }
  if (!slices_.empty()) divide_slices(out);
  return ReadStatus::ok;
}

// If one instance's activity is unknown, the others' cannot be compared with it.
void GpuProcesses::divide_slices(std::vector<DeviceProcess>& listed) {
  std::vector<std::optional<double>> active;
  for (const Slice& slice : slices_) active.push_back(slice.sampler->take_active_seconds());
  const bool is_known = std::ranges::all_of(active, [](const auto& seconds) { return seconds.has_value(); });
  double unused = 0;
  double unallocated = 1;
  for (std::size_t i = 0; i < slices_.size(); ++i) {
    const Slice& slice = slices_[i];
    const auto seconds = is_known ? std::optional(*active[i] * slice.compute_part) : std::nullopt;
    if (lists_.divide(slice.gpu_instance, seconds, slice.held_ratio, listed)) {
      unallocated -= slice.held_ratio;
    } else {
      unused += seconds.value_or(0);
    }
  }
  DeviceProcess& nobody = listed.emplace_back();
  if (is_known) nobody.device_seconds = unused;
  nobody.held_ratio = std::max(unallocated, 0.0);
}

// The lists of a divided GPU name all processes. If the caller lacks the right to see them, the lists are
// empty (nvml.h at nvmlDeviceGetComputeRunningProcesses_v3). Each instance is then read by itself, at the
// cost of one set of calls per instance.
ReadStatus GpuProcesses::ask_for_lists() {
  lists_.begin();
  const ReadStatus status = lists_.add(gpu_);
  const bool is_answer = instances_.empty() || !lists_.empty() || status == ReadStatus::gone;
  return is_answer ? status : ask_instances(status);
}

ReadStatus GpuProcesses::ask_instances(ReadStatus otherwise) {
  lists_.begin();
  ReadStatus result = otherwise;
  for (Instance& instance : instances_) {
    const ReadStatus status = lists_.add(instance.caller, instance.gpu_instance);
    if (status == ReadStatus::unsupported) continue;
    if (status != ReadStatus::ok) return status;
    result = ReadStatus::ok;
  }
  return result;
}

}  // namespace gpumeter::nvidia
