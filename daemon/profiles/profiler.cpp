#include "daemon/profiles/profiler.hpp"

#include <utility>

#include "daemon/profiles/core.hpp"
#include "daemon/profiles/service_search.hpp"

namespace gpumeter {
namespace {

std::set<std::uint16_t> numbers_of(const std::vector<options::Port>& ports) {
  std::set<std::uint16_t> numbers;
  for (const options::Port& port : ports) numbers.insert(port.number);
  return numbers;
}

}  // namespace

Profiler::Profiler(Parts parts, profiles::Settings settings, std::string procfs)
    : parts_(std::move(parts)),
      settings_(std::move(settings)),
      procfs_(std::move(procfs)),
      core_(std::make_shared<Core>(parts_, settings_, procfs_)),
      worker_(parts_.clock),
      rules_(parts_.clock),
      search_(parts_.clock) {}

Profiler::~Profiler() { request_stop(); }

Result<Done> Profiler::start() {
  const auto turn = [core = core_] {
    core->turn();
    return Nanoseconds(0);
  };
  if (Result<Done> started = worker_.start("profiles", turn); !started) return started;
  if (Result<Done> started = start_rules(); !started) return started;
  return start_search();
}

Result<Done> Profiler::start_rules() {
  if (settings_.thresholds.enabled.empty()) return Done{};
  const auto conditions = std::make_shared<profiles::Conditions>(settings_.thresholds);
  const auto judge = [core = core_, conditions, &store = parts_.store, &clock = parts_.clock] {
    constexpr Nanoseconds kEvery = std::chrono::seconds(5);
    core->take_findings(conditions->judge(store, clock.monotonic()));
    return kEvery;
  };
  return rules_.start("profile-rules", judge);
}

Result<Done> Profiler::start_search() {
  if (settings_.profiler_ports.empty() && settings_.worker_sockets.empty()) return Done{};
  const auto take = [core = core_](auto services) { core->take_services(std::move(services)); };
  const auto search = std::make_shared<ServiceSearch>(
      profiles::PortSearch(procfs_, numbers_of(settings_.profiler_ports), parts_.clock),
      profiles::SocketSearch(procfs_, settings_.worker_sockets, parts_.clock), take, parts_.log);
  return search_.start("profile-ports", [search] { return search->turn(); });
}

void Profiler::request_stop() {
  worker_.request_stop();
  rules_.request_stop();
  search_.request_stop();
  core_->wake();
}

bool Profiler::join(Nanoseconds deadline) {
  const bool has_ended = worker_.join(deadline);
  const bool have_ended = rules_.join(deadline) && has_ended;
  return search_.join(deadline) && have_ended;
}

void Profiler::take_runs(const jobs::RunList& runs) { core_->take_runs(runs); }

}  // namespace gpumeter
