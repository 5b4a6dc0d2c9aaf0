#pragma once

#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/descriptor.hpp"
#include "base/mutex.hpp"
#include "collectors/jobs/intake/allowance.hpp"
#include "collectors/jobs/intake/sockets.hpp"
#include "collectors/profiles/debug_door.hpp"
#include "collectors/profiles/desk.hpp"
#include "collectors/profiles/kineto_door.hpp"
#include "collectors/profiles/kineto_socket.hpp"
#include "collectors/profiles/ledger.hpp"
#include "collectors/profiles/service_door.hpp"
#include "daemon/profiles/callers.hpp"
#include "daemon/profiles/fetches.hpp"
#include "daemon/profiles/profiler.hpp"
#include "daemon/profiles/targets.hpp"

namespace gpumeter {

/// The work of the thread "profiles". wake(), take_runs(), take_findings() and take_services(): any thread;
/// everything else: that thread.
class Profiler::Core {
 public:
  Core(Parts parts, profiles::Settings settings, const std::string& procfs);

  /// Waits for messages and answers them, up to a second.
  void turn();
  void wake() const noexcept;
  void take_runs(const jobs::RunList& runs) GPUMETER_EXCLUDES(mutex_);
  void take_findings(std::vector<profiles::Finding> findings) GPUMETER_EXCLUDES(mutex_);
  void take_services(std::vector<profiles::PortHolder> services) GPUMETER_EXCLUDES(mutex_);

 private:
  using Number = profiles::Desk::Number;

  /// A socket of Kineto, opened at the start or later, when another program gives the name back.
  struct Place {
    std::string folder;  ///< empty: the abstract one
    std::optional<profiles::KinetoSocket> socket = {};
    Nanoseconds next_attempt{};
    bool is_logged = false;
  };

  void open_all();
  void open(Place& place);
  void wait();
  std::string answer(const profiles::Peer& peer, std::string_view datagram);
  void take_call(const Callers::Call& call);
  void take_line(const Callers::Call& call);
  void pass_connections(Number request, const profiles::Request& made);
  void refuse(int number, const std::string& why);
  Result<Number> begin(profiles::Request request);
  void tick();
  void finish(const profiles::Desk::Event& event);
  void judge();
  void look_for_services();
  void fetch(const profiles::Member& member, const profiles::Order& order);
  void act_on(const profiles::Finding& finding, bool is_new);
  std::set<int> processes_on(const std::string& gpu) const;
  std::shared_ptr<const jobs::RunList> runs() const GPUMETER_EXCLUDES(mutex_);
  Nanoseconds now() const noexcept { return parts_.clock.monotonic(); }

  const Parts parts_;
  const profiles::Settings settings_;
  const Descriptor woken_;  // an eventfd
  profiles::KinetoDoor kineto_;
  profiles::ServiceDoor services_;
  profiles::DebugDoor debug_;
  Fetches fetches_;
  profiles::Desk desk_;
  profiles::Ledger ledger_;
  Targets targets_;
  Callers callers_;
  jobs::Allowance allowance_;
  std::vector<Place> places_;
  jobs::BoundSocket listener_;
  Nanoseconds next_attempt_{};  ///< of the listener
  bool is_listener_logged_ = false;
  SeriesList series_;
  Nanoseconds next_tick_{};
  bool accepts_ = true;  ///< false: no descriptor was left for a connection; accepts none until the next tick
  std::set<std::pair<profiles::RunName, std::string>> held_;  ///< run and condition at the last judgement

  mutable Mutex mutex_;
  std::shared_ptr<const jobs::RunList> runs_ GPUMETER_GUARDED_BY(mutex_);
  std::optional<std::vector<profiles::Finding>> findings_ GPUMETER_GUARDED_BY(mutex_);
  std::optional<std::vector<profiles::PortHolder>> found_ GPUMETER_GUARDED_BY(mutex_);
};

}  // namespace gpumeter
