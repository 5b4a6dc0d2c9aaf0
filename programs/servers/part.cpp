#include "programs/servers/part.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.hpp"
#include "base/log.hpp"
#include "base/proc.hpp"
#include "base/result.hpp"
#include "base/text.hpp"
#include "collectors/api/catalog.hpp"
#include "collectors/api/machine.hpp"
#include "collectors/api/part.hpp"
#include "collectors/attribution/cgroup/cache.hpp"
#include "collectors/attribution/cgroup/workload_of.hpp"
#include "collectors/attribution/device_use.hpp"
#include "collectors/jobs/join/run_join.hpp"
#include "collectors/jobs/wire/sender.hpp"
#include "collectors/jobs/wire/vocabulary.hpp"
#include "collectors/sources/sysfs.hpp"
#include "collectors/sources/tcp.hpp"
#include "exporter/store/series_list.hpp"
#include "exporter/store/store.hpp"
#include "programs/client/http.hpp"
#include "programs/servers/reading.hpp"
#include "programs/servers/settings.hpp"

namespace gpumeter::servers {
namespace {

constexpr auto kPatience = std::chrono::milliseconds(2000);
constexpr std::size_t kMostBytes = std::size_t{8} << 20;  // 64 engines with 100 histograms each are 4 MiB
constexpr long kOk = 200;

bool is_loopback(const std::string& host) {
  return host == "localhost" || host == "::1" || host.starts_with("127.");
}

std::string key_of(const Target& target) {
  return (is_loopback(target.host) ? "localhost" : target.host) + ":" + target.port;
}

constexpr std::size_t kMostMembers = 1024;  ///< of a cgroup
constexpr std::size_t kWords = 4;           ///< of a command line: interpreter, options, script

/// A listening socket that may be the metrics page of a model server, and the processes that it stands for.
struct Place {
  std::string address;  ///< "127.0.0.1", "::1"
  std::uint16_t port = 0;
  int pid = 0;        ///< of the listener; 0: unknown, or the kernel hides it, and only its cgroup is known
  std::string group;  ///< the cgroup of the listener; empty: unknown
};
using Holders = std::map<std::string, Place>;  ///< by the name of their server

/// The GPUs of each server and the energy that its processes used there. A process on a GPU belongs to the
/// server that is the process itself or its nearest ancestor; otherwise to the only server of its workload
/// (unit, container, pod, Slurm job), because a launcher may start the router and the workers side by side. A
/// login session is no such workload. One thread; the owner calls ProcessKin::begin_pass() before update().
class ServerEnergy {
 public:
  struct Gpu {
    std::string uuid;
    unsigned index = 0;
  };
  struct Account {
    std::optional<double> joules;  ///< grows; nullopt: none of its GPUs has an energy counter
    std::vector<Gpu> gpus;         ///< at present, by index
  };

  explicit ServerEnergy(jobs::ProcessKin& kin) : kin_(kin) {}

  /// Accounts for the energy since the last call. The account of a server that is not in `holders` ends.
  void update(const Holders& holders, const jobs::DeviceUses& devices) {
    std::erase_if(accounts_, [&](const auto& entry) { return !holders.contains(entry.first); });
    for (const auto& [name, place] : holders) accounts_[name].gpus.clear();
    for (auto& [id, process] : processes_) process.is_seen = false;
    for (const auto& device : devices) {
      for (const workloads::ProcessUse& use : device->processes) take(*device, use, holders);
    }
    std::erase_if(processes_, [](const auto& entry) { return !entry.second.is_seen; });
    for (auto& [name, account] : accounts_) std::ranges::sort(account.gpus, {}, &Gpu::index);
  }

  const Account& of(const std::string& name) const {
    static const Account kNone;
    const auto found = accounts_.find(name);
    return found == accounts_.end() ? kNone : found->second;
  }

 private:
  struct Process {
    std::string owner;
    double joules = 0;
    bool is_seen = false;
  };
  struct OnDevice {
    std::string uuid;
    workloads::ProcessId id;
    auto operator<=>(const OnDevice&) const = default;
  };

  std::string owner_of(const workloads::ProcessUse& use, const Holders& holders) {
    std::vector<int> line = {use.id.pid};
    for (const int ancestor : kin_.ancestors_of(use.id.pid)) line.push_back(ancestor);
    for (const int pid : line) {
      const auto found =
          std::ranges::find_if(holders, [pid](const auto& entry) { return entry.second.pid == pid; });
      if (found != holders.end()) return found->first;
    }
    const std::string workload = jobs::workload_of_one_purpose(use.group);
    if (workload.empty()) return {};
    const auto shares = [&](const auto& entry) {
      const std::string& group = entry.second.group;
      return !group.empty() && jobs::workload_of_one_purpose(group) == workload;
    };
    const auto first = std::ranges::find_if(holders, shares);
    return std::ranges::count_if(holders, shares) == 1 ? first->first : std::string();
  }

  // The owner of a process that has ended stays: its last energy counts. A process's energy before its server
  // was found is not the server's, because the server's own counters may have started later as well.
  void take(const workloads::DeviceUse& device, const workloads::ProcessUse& use, const Holders& holders) {
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

  jobs::ProcessKin& kin_;
  std::map<std::string, Account> accounts_;
  std::map<OnDevice, Process> processes_;
};

/// The names by which a process is wanted: its own (/proc/PID/comm), and the last components of the first
/// words of its command line: `vllm` in "python3 /usr/bin/vllm serve".
std::set<std::string> names_of(const std::string& procfs, int pid) {
  std::set<std::string> names = {cgroup::name_of(procfs, pid)};
  std::array<char, 4096> buffer{};
  const sysfs::Bytes bytes = sysfs::File(proc::path(procfs, pid, "cmdline")).read(buffer);
  std::string_view words(buffer.data(), bytes.size);
  for (std::size_t i = 0; !words.empty() && i < kWords; ++i) {
    const std::string_view word = take_until(words, '\0');
    names.emplace(word.substr(word.rfind('/') + 1));
  }
  return names;
}

/// Finds the listening sockets of the processes that use a GPU, and of those that belong to them: their
/// ancestors, and the members of the same workload (unit, container, pod, Slurm job). Reads the metrics pages
/// there and those that the configuration names.
///
/// A socket's process is known by /proc/PID/fd, which needs the right to inspect the process. Without it, the
/// cgroup of the socket decides: it must be that of a process on a GPU, and of the same user.
class Watch final : public Part {
 public:
  Watch(const PartContext& context, Outside outside)
      : settings_(context.settings_of<Settings>()),
        interval_(context.interval),
        machine_(context.machine),
        outside_(std::move(outside)),
        procfs_(context.paths.procfs),
        cgroups_(context.paths.cgroups()),
        kin_(procfs_),
        energy_(kin_),
        series_(context.store.attach({}, context.name)) {}

  /// Pages of further servers than kMostServers are not read.
  Nanoseconds turn(Nanoseconds now) override {
    kin_.begin_pass(now);
    const auto devices = machine_.uses.get();
    for (auto& [key, server] : servers_) server.is_present = false;
    for (const Target& target : settings_.targets) note(target, {}, true);
    find_places(*devices);
    std::erase_if(servers_, [](const auto& entry) { return !entry.second.is_present; });
    Holders holders;
    for (auto& [key, server] : servers_) {
      read(server);
      if (!server.kind.empty()) holders[key] = server.place;
    }
    energy_.update(holders, *devices);
    for (const auto& [key, server] : servers_) write(server);
    series_.commit(now);
    return interval_;
  }

  static constexpr std::size_t kMostServers = 32;

 private:
  struct Server {
    Target target;
    Place place;
    bool is_named = false;  ///< by the configuration
    std::string kind;       ///< of its last page
    std::string model;
    std::string error;  ///< of the last read; empty: it succeeded
    bool is_present = false;
    std::optional<ServerReading> reading;
  };
  struct Candidates {
    std::set<int> pids;  ///< GPU processes and their ancestors
    std::map<std::string, std::set<std::uint32_t>, std::less<>>
        groups;  ///< of GPU processes, and their users
  };

  void note(const Target& target, const Place& place, bool is_named) {
    const std::string key = key_of(target);
    if (servers_.size() >= kMostServers && !servers_.contains(key)) return;
    Server& server = servers_[key];
    const bool is_repeated = std::exchange(server.is_present, true);
    if (!is_repeated) server.target = target;
    if (!is_repeated) server.is_named = is_named;
    server.place = place;
  }

  void find_places(const jobs::DeviceUses& devices) {
    if (!settings_.enabled) return;
    const Result<std::vector<Place>> places = find(devices);
    const std::string error = places ? "" : places.error().message();
    if (error != std::exchange(find_error_, error))
      outside_.say({"listening ports of GPU processes", "", error});
    if (!places) return;
    for (const Place& place : *places) {
      const std::string port = std::to_string(place.port);
      note({.host = place.address, .port = port, .text = place.address + ":" + port}, place, false);
    }
  }

  /// One place for each port, by port.
  Result<std::vector<Place>> find(const jobs::DeviceUses& devices) {
    std::vector<Place> places;
    const Candidates among = candidates(devices);
    if (among.pids.empty()) return places;
    const Result<std::vector<tcp::Listener>> listeners = outside_.listeners(procfs_);
    if (!listeners) return listeners.error();
    for (const tcp::Listener& listener : *listeners) {
      const bool is_known = std::ranges::find(places, listener.port, &Place::port) != places.end();
      if (is_known || listener.address.empty() || !is_asked(listener.port)) continue;
      const int pid = holder_of(listener, among.pids);
      const std::string group = pid > 0 ? kin_.of(pid).group : group_of(listener, among);
      const bool is_wanted_one = pid > 0 ? is_wanted(pid) : !group.empty() && has_wanted(group, among);
      if (is_wanted_one) places.push_back({listener.address, listener.port, pid, group});
    }
    std::ranges::sort(places, {}, &Place::port);
    return places;
  }

  Candidates candidates(const jobs::DeviceUses& devices) {
    Candidates found;
    for (const auto& device : devices) {
      for (const workloads::ProcessUse& use : device->processes) {
        if (!use.present) continue;
        found.pids.insert(use.id.pid);
        for (const int ancestor : kin_.ancestors_of(use.id.pid)) found.pids.insert(ancestor);
        if (!use.group.empty() && use.uid) found.groups[use.group].insert(*use.uid);
      }
    }
    for (const auto& [group, users] : found.groups) {
      if (!jobs::workload_of_one_purpose(group).empty()) add_members(group, found.pids);
    }
    return found;
  }

  void add_members(const std::string& group, std::set<int>& pids) const {
    const std::string text = sysfs::read_text(cgroups_ + group + "/cgroup.procs");
    std::string_view rest = text;
    for (std::size_t i = 0; !rest.empty() && i < kMostMembers; ++i) {
      if (const auto pid = parse_number<int>(take_until(rest, '\n')); pid && *pid > 0) pids.insert(*pid);
    }
  }

  int holder_of(const tcp::Listener& listener, const std::set<int>& pids) const {
    const auto found = std::ranges::find_if(
        pids, [&](int pid) { return !tcp::sockets_of(procfs_, pid, {listener.inode}).sockets.empty(); });
    return found == pids.end() ? 0 : *found;
  }

  std::string group_of(const tcp::Listener& listener, const Candidates& candidates) const {
    for (const auto& [group, users] : candidates.groups) {
      struct stat folder {};
      const bool is_same = listener.cgroup_id != 0 && users.contains(listener.uid) &&
                           stat((cgroups_ + group).c_str(), &folder) == 0 &&
                           folder.st_ino == listener.cgroup_id;
      if (is_same) return group;
    }
    return {};
  }

  bool is_asked(std::uint16_t port) const {
    return std::ranges::find(settings_.ports, port, &options::Port::number) != settings_.ports.end();
  }

  bool is_wanted(int pid) const {
    if (settings_.processes.empty()) return true;
    const std::set<std::string> names = names_of(procfs_, pid);
    return std::ranges::any_of(settings_.processes,
                               [&](const std::string& wanted) { return names.contains(wanted); });
  }

  bool has_wanted(const std::string& group, const Candidates& candidates) {
    return std::ranges::any_of(candidates.pids,
                               [&](int pid) { return kin_.of(pid).group == group && is_wanted(pid); });
  }

  void read(Server& server) {
    const Result<std::string> page = outside_.fetch(server.target);
    server.reading = page ? read_page(*page) : std::nullopt;
    const std::string error = !page             ? page.error().message()
                              : !server.reading ? "the page is not that of a known model server"
                                                : "";
    if (server.reading) {
      server.kind = server.reading->kind;
      server.model = server.reading->model;
    }
    if (error != std::exchange(server.error, error)) {
      outside_.say({"metrics page of a model server", server.target.text, error});
    }
  }

  void write(const Server& server) {
    if (server.kind.empty() && !server.is_named) return;
    const std::string& host = server.target.host;
    const Labels labels{
        {"server", server.kind}, {"port", server.target.port}, {"host", is_loopback(host) ? "" : host}};
    series_.add(catalog::ml_server_up, labels, server.reading ? 1 : 0);
    if (!server.kind.empty()) write_facts(server, labels);
    if (server.reading) write_figures(*server.reading, labels);
  }

  void write_facts(const Server& server, const Labels& labels) {
    const ServerEnergy::Account& account = energy_.of(key_of(server.target));
    if (account.joules) series_.add(catalog::ml_server_energy, labels, *account.joules);
    const cgroup::Attribution owner = cgroup::attribution_of(cgroup::read_path(server.place.group));
    const bool is_owned = !owner.workload.empty();
    const Labels facts = labels.with({{"model", server.model},
                                      {"kind", is_owned ? std::string(cgroup::to_string(owner.kind)) : ""},
                                      {"workload", owner.workload}});
    for (const ServerEnergy::Gpu& gpu : account.gpus) {
      const Labels one = facts.with({{"gpu", std::to_string(gpu.index)}, {"uuid", gpu.uuid}});
      series_.add(catalog::ml_server_info, one, 1);
    }
    if (account.gpus.empty()) series_.add(catalog::ml_server_info, facts, 1);
  }

  void write_figures(const ServerReading& reading, const Labels& labels) {
    const auto add = [&](const MetricDescriptor& family, const Labels& of, std::optional<double> value) {
      if (value) series_.add(family, of, *value);
    };
    add(catalog::ml_server_tokens, labels.with({{"kind", "input"}}), reading.input_tokens);
    add(catalog::ml_server_tokens, labels.with({{"kind", "output"}}), reading.output_tokens);
    add(catalog::ml_server_requests, labels, reading.requests);
    add(catalog::ml_server_requests_running, labels, reading.running);
    add(catalog::ml_server_requests_waiting, labels, reading.waiting);
    add(catalog::ml_server_cache_utilization, labels, reading.cache_ratio);
    if (reading.first_token) write_histogram(*reading.first_token, labels);
  }

  // Views need the buckets first, then the sum, then the count.
  void write_histogram(const ServerHistogram& histogram, const Labels& labels) {
    const MetricDescriptor& family = catalog::ml_server_time_to_first_token;
    for (const ServerHistogram::Bucket& bucket : histogram.buckets) {
      series_.add(family, labels.with({{"le", jobs::bound_text(bucket.bound)}}), bucket.count,
                  SeriesPart::bucket);
    }
    series_.add(family, labels.with({{"le", "+Inf"}}), histogram.count, SeriesPart::bucket);
    series_.add(family, labels, histogram.sum, SeriesPart::sum);
    series_.add(family, labels, histogram.count, SeriesPart::count);
  }

  const Settings settings_;
  const Nanoseconds interval_;
  const Machine& machine_;
  const Outside outside_;
  const std::string procfs_, cgroups_;  ///< their roots
  jobs::ProcessKin kin_;
  ServerEnergy energy_;
  SeriesList series_;
  std::string find_error_;
  std::map<std::string, Server> servers_;  ///< by host and port
};

/// One GET, without redirects.
Result<std::string> fetch(const Target& target) {
  const bool is_ip6 = target.host.find(':') != std::string::npos;
  const std::string host = is_ip6 ? "[" + target.host + "]" : target.host;
  const std::string url = (target.is_tls ? "https://" : "http://") + host + ":" + target.port;
  client::HttpClient client({url, host}, {kPatience, kPatience, kMostBytes}, "gpumeter");
  Result<client::HttpClient::Answer> answer = client.get(target.path);
  if (client.was_refused()) return Error("connection refused");
  if (!answer) return answer.error();
  if (answer->status != kOk) return Error("HTTP status " + std::to_string(answer->status));
  return std::move(answer->body);
}

void say(Log& log, const Notice& notice) {
  if (notice.error.empty()) return log.info(notice.message + " is read", {{"server", notice.server}});
  log.warn(notice.message + " is not read; gpumeter retries",
           {{"server", notice.server}, {"error", notice.error}});
}

std::shared_ptr<Part> open(const PartContext& context) {
  const auto& settings = context.settings_of<Settings>();
  if (!settings.enabled && settings.targets.empty()) return nullptr;
  return make_part(context, Outside{fetch, [&log = context.log](const auto& notice) { say(log, notice); }});
}

}  // namespace

std::shared_ptr<Part> make_part(const PartContext& context, Outside outside) {
  return std::make_shared<Watch>(context, std::move(outside));
}

// The address of a section is a constant.
// NOLINTNEXTLINE(cppcoreguidelines-interfaces-global-init)
constinit const PartEntry kPart = {.name = "servers", .options = &kSection, .open = open};

}  // namespace gpumeter::servers
