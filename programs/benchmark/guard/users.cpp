#include "programs/benchmark/guard/users.hpp"

#include <algorithm>
#include <chrono>
#include <memory>
#include <utility>

#include "collectors/amd/kfd/processes.hpp"
#include "collectors/amd/kfd/topology.hpp"
#include "collectors/nvidia/nvml/session.hpp"
#include "collectors/nvidia/processes/lists.hpp"

namespace gpumeter::benchmark {
namespace {

using SteadyClock = std::chrono::steady_clock;

/// A daemon that restarts is silent for a moment; the drivers' lists go on meanwhile.
constexpr std::chrono::seconds kLongestSilence{3};

std::string sentence(int pid) { return "process " + std::to_string(pid) + " uses the GPU"; }

/// What a look at NVML's lists needs.
class NvmlLists {
 public:
  NvmlLists(std::shared_ptr<nvidia::NvmlSession> session, nvidia::nvml::Device device)
      : caller_(std::move(session), device) {
    lists_.open(nvidia::driver_version(caller_));
  }

  std::optional<std::string> look(int own) {
    lists_.begin();
    const ReadStatus status = lists_.add(caller_);
    if (status != ReadStatus::ok) return "the driver's list of processes cannot be read";
    processes_.clear();
    lists_.append_to(processes_);
    const auto other =
        std::ranges::find_if(processes_, [&](const DeviceProcess& each) { return each.pid != own; });
    return other == processes_.end() ? std::nullopt : std::optional(sentence(other->pid));
  }

 private:
  nvidia::NvmlCaller caller_;
  nvidia::ProcessLists lists_;
  std::vector<DeviceProcess> processes_;
};

std::vector<std::uint32_t> kfd_numbers(const std::string& sysfs_root, const pci::Address& address) {
  std::vector<std::uint32_t> numbers;
  for (const amd::KfdNode& node : amd::kfd_nodes_of(amd::kfd_nodes(sysfs_root), {address, 0, std::nullopt}))
    numbers.push_back(node.gpu_id);
  return numbers;
}

bool holds_memory(const std::vector<amd::KfdUse>& uses) {
  return std::ranges::any_of(uses, [](const amd::KfdUse& use) { return use.vram_bytes.value_or(0) > 0; });
}

}  // namespace

Watch nvml_watch(const std::string& library, const std::string& uuid) {
  const auto session = nvidia::NvmlSession::shared(library);
  nvidia::nvml::Device device = nullptr;
  if (!session || (*session)->functions().nvmlDeviceGetHandleByUUID == nullptr) return {};
  if ((*session)->functions().nvmlDeviceGetHandleByUUID(uuid.c_str(), &device) != nvidia::nvml::kSuccess)
    return {};
  return [lists = std::make_shared<NvmlLists>(*session, device)](int own) { return lists->look(own); };
}

Watch kfd_watch(const std::string& sysfs_root, std::string_view pci_address) {
  const auto address = pci::parse_address(pci_address);
  if (!address) return {};
  const std::vector<std::uint32_t> numbers = kfd_numbers(sysfs_root, *address);
  if (numbers.empty()) return {};
  return [sysfs_root, numbers](int own) -> std::optional<std::string> {
    for (const auto& [pid, uses] : amd::kfd_processes(sysfs_root, amd::KfdDetail::memory, numbers)) {
      if (pid != own && holds_memory(uses)) return sentence(pid);
    }
    return std::nullopt;
  };
}

Watch daemon_watch(const Daemon& daemon, const std::string& uuid, std::string own_cgroup) {
  return [&daemon, uuid, own_cgroup = std::move(own_cgroup),
          answered = SteadyClock::now()](int) mutable -> std::optional<std::string> {
    const Result<std::vector<Gpu>> gpus = daemon.gpus();
    const Gpu* const gpu = gpus ? find_gpu(*gpus, uuid) : nullptr;
    if (gpu == nullptr) {
      if (SteadyClock::now() - answered < kLongestSilence) return std::nullopt;
      return gpus ? "the daemon does not show the GPU any more" : gpus.error().message();
    }
    answered = SteadyClock::now();
    const auto is_other = [&](const Holder& each) { return !is_part_of(own_cgroup, each); };
    const auto other = std::ranges::find_if(gpu->holders, is_other);
    if (other == gpu->holders.end()) return std::nullopt;
    return "the " + other->kind + " " + other->workload + " uses the GPU";
  };
}

bool is_part_of(std::string_view cgroup, const Holder& holder) noexcept {
  return !holder.workload.empty() && cgroup.find(holder.workload) != std::string_view::npos;
}

}  // namespace gpumeter::benchmark
