#include "collectors/sources/fdinfo/accounts.hpp"

#include <algorithm>

#include "collectors/sources/fdinfo/look.hpp"

namespace gpumeter::fdinfo {
namespace {

void add(std::optional<double>& sum, std::optional<double> bytes) noexcept {
  if (bytes) sum = sum.value_or(0) + *bytes;
}

void add(ClientMemory& sum, const ClientMemory& memory) noexcept {
  add(sum.device, memory.device);
  add(sum.system, memory.system);
  sum.shared_device += memory.shared_device;
  sum.shared_system += memory.shared_system;
}

}  // namespace

void DeviceAccount::take(const std::string& device, const Holders& holders, Nanoseconds now,
                         bool has_read_all) {
  const std::map<Id, Reading> readings = merged(device, holders);
  for (auto& [pid, user] : users_) {
    user.is_present = false;
    user.memory = {};
  }
  learn_clocks(readings);
  for (const auto& [id, reading] : readings) {
    User& user = users_[reading.owner];
    const std::uint64_t start = holders.at(reading.owner).start_ticks;
    if (user.start_ticks != start) user = {start, false, {}, {}};
    user.is_present = true;
    add(user.memory, reading.client.memory);
    if (reading.is_fresh) count(id, reading, user);
  }
  busy_.settle();
  std::erase_if(users_, [](const auto& user) { return !user.second.is_present; });
  std::erase_if(known_, [&](const auto& client) { return !readings.contains(client.first); });
  for (auto& [pid, user] : users_) user.busy.settle();
  now_ = now;
  if (!has_read_all) return;
  if (complete_) observed_ += now - *complete_;
  complete_ = now;
}

void DeviceAccount::interrupt() noexcept {
  known_.clear();
  users_.clear();
  complete_.reset();
}

// The newest reading of a client counts, whichever holder was looked at.
std::map<DeviceAccount::Id, DeviceAccount::Reading> DeviceAccount::merged(const std::string& device,
                                                                          const Holders& holders) const {
  std::map<Id, Reading> readings;
  for (const auto& [pid, holder] : holders) {
    for (const Client& client : holder.clients) {
      if (client.device != device) continue;
      const auto [place, is_first] = readings.try_emplace(id_of(readings, pid, client));
      Reading& reading = place->second;
      if (is_first) reading.owner = pid;
      if (!is_first && holder.at <= reading.at) continue;
      reading.at = holder.at;
      reading.is_fresh = holder.is_fresh;
      reading.is_new = (is_first || reading.is_new) && holder.is_new;
      reading.client = client;
    }
  }
  return readings;
}

DeviceAccount::Id DeviceAccount::id_of(const std::map<Id, Reading>& so_far, int pid,
                                       const Client& client) const {
  if (client.id) return {*client.id, 0};
  for (const auto& [id, reading] : so_far) {
    if (id.pid == 0 || id.pid == pid) continue;  // a look lists each client of a process once
    if (is_same_file(pid, client.fd, id.pid, static_cast<int>(id.number)).value_or(false)) return id;
  }
  return {static_cast<std::uint64_t>(client.fd), pid};
}

// All clients print the same clock. The longest step has the smallest error.
void DeviceAccount::learn_clocks(const std::map<Id, Reading>& readings) {
  std::array<std::uint64_t, kEngineNameCount> longest{};
  for (const auto& [id, reading] : readings) {
    const auto known = known_.find(id);
    if (!reading.is_fresh || known == known_.end()) continue;
    for (const EngineCount& engine : reading.client.engines) {
      const auto before = known->second.find(engine.name);
      if (!engine.in_cycles || before == known->second.end()) continue;
      if (engine.total_cycles <= before->second.total_cycles) continue;
      const std::uint64_t step = engine.total_cycles - before->second.total_cycles;
      if (step <= longest[engine.name]) continue;
      longest[engine.name] = step;
      seconds_per_cycle_[engine.name] =
          to_seconds(reading.at - before->second.at) / static_cast<double>(step);
    }
  }
}

void DeviceAccount::count(const Id& id, const Reading& reading, User& user) {
  const auto [place, is_unknown] = known_.try_emplace(id);
  Known& known = place->second;
  for (const EngineCount& engine : reading.client.engines) {
    const auto before = known.find(engine.name);
    const Count* const last = before == known.end() ? nullptr : &before->second;
    // amdgpu prints an engine once the client has used it: a known client's new engine counts from 0.
    const auto seconds = seconds_of(engine, last, !is_unknown || reading.is_new);
    if (seconds) {
      busy_.add(engine.name, *seconds);
      user.busy.add(engine.name, *seconds);
    }
    // A count may go back for a moment: the highest one holds.
    const std::uint64_t count = last != nullptr ? std::max(last->count, engine.count) : engine.count;
    known[engine.name] = {engine.in_cycles, count, engine.total_cycles, reading.at};
  }
}

// nullopt: the engine's clock is not known yet, or does not run.
std::optional<double> DeviceAccount::seconds_of(const EngineCount& now, const Count* before,
                                                bool from_zero) const {
  const bool is_known = before != nullptr && before->in_cycles == now.in_cycles;
  const bool is_first = before == nullptr;
  const std::uint64_t from = is_known ? before->count : is_first && from_zero ? 0 : now.count;
  const auto step = static_cast<double>(now.count > from ? now.count - from : 0);
  if (!now.in_cycles) return step / 1e9 / now.capacity;
  if (now.total_cycles == 0) return std::nullopt;
  if (step == 0) return 0;
  const double per_cycle = seconds_per_cycle_[now.name];
  return per_cycle > 0 ? std::optional(step * per_cycle / now.capacity) : std::nullopt;
}

DrmUse DeviceAccount::use(unsigned inaccessible) const {
  DrmUse use;
  use.scanned_at = now_;
  use.observed = observed_;
  use.busy_seconds = busy_.seconds();
  use.inaccessible = inaccessible;
  for (const auto& [pid, user] : users_) {
    use.processes.push_back({pid, user.start_ticks, user.busy.seconds(), user.memory.device,
                             user.memory.system, user.memory.shared_device, user.memory.shared_system});
  }
  return use;
}

}  // namespace gpumeter::fdinfo
