#include "programs/servers/energy.hpp"

#include <algorithm>

namespace gpumeter::servers {

void ServerEnergy::update(const std::vector<Holder>& holders, const jobs::DeviceUses& devices) {
  std::erase_if(accounts_, [&](const auto& entry) {
    return std::ranges::find(holders, entry.first, &Holder::name) == holders.end();
  });
  for (const Holder& holder : holders) accounts_[holder.name].gpus.clear();
  for (auto& [id, process] : processes_) process.is_seen = false;
  for (const auto& device : devices) {
    for (const workloads::ProcessUse& use : device->processes) take(*device, use, holders);
  }
  std::erase_if(processes_, [](const auto& entry) { return !entry.second.is_seen; });
  for (auto& [name, account] : accounts_) std::ranges::sort(account.gpus, {}, &Gpu::index);
}

const ServerEnergy::Account& ServerEnergy::of(const std::string& name) const {
  static const Account kNone;
  const auto found = accounts_.find(name);
  return found == accounts_.end() ? kNone : found->second;
}

// The owner of a process that has ended stays: its last energy counts. A process's energy before its server
// was found is not the server's, because the server's own counters may have started later as well.
void ServerEnergy::take(const workloads::DeviceUse& device, const workloads::ProcessUse& use,
                        const std::vector<Holder>& holders) {
  const auto [place, is_new] = processes_.try_emplace(OnDevice{device.uuid, use.id});
  Process& process = place->second;
  process.is_seen = true;
  const std::string before = process.owner;
  if (use.present) process.owner = owner_of(use, holders);
  const double last = is_new || process.owner != before ? use.energy_joules : process.joules;
  process.joules = use.energy_joules;
  const auto account = accounts_.find(process.owner);
  if (account == accounts_.end()) return;
  std::vector<Gpu>& gpus = account->second.gpus;
  const bool is_listed = std::ranges::find(gpus, device.uuid, &Gpu::uuid) != gpus.end();
  if (use.present && !is_listed) gpus.push_back({device.uuid, device.index});
  if (!device.has_energy) return;
  account->second.joules = account->second.joules.value_or(0) + std::max(use.energy_joules - last, 0.0);
}

std::string ServerEnergy::owner_of(const workloads::ProcessUse& use, const std::vector<Holder>& holders) {
  std::vector<int> line = {use.id.pid};
  for (const int ancestor : kin_.ancestors_of(use.id.pid)) line.push_back(ancestor);
  for (const int pid : line) {
    const auto found = std::ranges::find(holders, pid, &Holder::pid);
    if (found != holders.end()) return found->name;
  }
  const std::string workload = jobs::workload_of_one_purpose(use.group);
  if (workload.empty()) return {};
  const auto shares = [&](const Holder& holder) {
    return !holder.group.empty() && jobs::workload_of_one_purpose(holder.group) == workload;
  };
  const auto first = std::ranges::find_if(holders, shares);
  return std::ranges::count_if(holders, shares) == 1 ? first->name : std::string();
}

}  // namespace gpumeter::servers
