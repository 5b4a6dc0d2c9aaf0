#include "daemon/profiles/profiler.hpp"

#include <utility>

#include "base/text.hpp"
#include "daemon/profiles/core.hpp"
#include "daemon/profiles/service_search.hpp"

namespace gpumeter {
namespace {

profiles::Thresholds thresholds_of(const config::Profiles& settings) {
  constexpr double kPercent = 0.01;
  profiles::Thresholds thresholds;
  thresholds.enabled = {settings.conditions.begin(), settings.conditions.end()};
  thresholds.hold = settings.hold;
  thresholds.throttled_share = settings.throttled_percent * kPercent;
  thresholds.slow_factor = settings.slow_percent * kPercent;
  thresholds.mfu_share = settings.mfu_percent * kPercent;
  return thresholds;
}

std::set<std::uint16_t> ports_of(const std::vector<std::string>& texts) {
  std::set<std::uint16_t> ports;
  for (const std::string& text : texts) {
    if (const auto port = parse_number<std::uint16_t>(text)) ports.insert(*port);
  }
  return ports;
}

}  // namespace

Profiler::Profiler(Parts parts, const config::Config& config)
    : parts_(std::move(parts)),
      thresholds_(thresholds_of(config.profiles)),
      procfs_(config.paths.procfs),
      ports_(ports_of(config.profiles.profiler_ports)),
      sockets_(config.profiles.worker_sockets),
      core_(std::make_shared<Core>(parts_, config)),
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
  if (thresholds_.enabled.empty()) return Done{};
  const auto conditions = std::make_shared<profiles::Conditions>(thresholds_);
  const auto judge = [core = core_, conditions, &store = parts_.store, &clock = parts_.clock] {
    constexpr Nanoseconds kEvery = std::chrono::seconds(5);
    core->take_findings(conditions->judge(store, clock.monotonic()));
    return kEvery;
  };
  return rules_.start("profile-rules", judge);
}

Result<Done> Profiler::start_search() {
  if (ports_.empty() && sockets_.empty()) return Done{};
  const auto take = [core = core_](auto services) { core->take_services(std::move(services)); };
  const auto search = std::make_shared<ServiceSearch>(profiles::PortSearch(procfs_, ports_, parts_.clock),
                                                      profiles::SocketSearch(procfs_, sockets_, parts_.clock),
                                                      take, parts_.log);
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

std::shared_ptr<profiles::BudgetBook> make_profile_budget(const config::Profiles& settings,
                                                          const Clock& clock) {
  if (!settings.enabled) return nullptr;
  const profiles::Budget budget{settings.per_run, settings.per_host, settings.cooldown};
  return std::make_shared<profiles::BudgetBook>(budget, clock);
}

std::unique_ptr<Profiler> make_profiler(const config::Config& config, Profiler::Parts parts) {
  if (!config.profiles.enabled) return nullptr;
  return std::make_unique<Profiler>(std::move(parts), config);
}

}  // namespace gpumeter
