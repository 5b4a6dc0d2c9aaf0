#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "base/log.hpp"
#include "base/result.hpp"
#include "base/worker.hpp"
#include "collectors/jobs/join/run_join.hpp"
#include "collectors/jobs/model/run_list.hpp"
#include "collectors/profiles/budget_book.hpp"
#include "collectors/profiles/settings.hpp"
#include "daemon/service.hpp"
#include "exporter/store/store.hpp"

namespace gpumeter {

/// Profiles of jobs, on request (`gpumeter profile`) and by condition. The thread "profiles" answers Kineto's
/// clients and those who ask; Kineto waits 90 ms for an answer, so this thread calls nothing that may hang.
/// The thread "profile-rules" judges the conditions, and "profile-ports" looks for profiler services. Exists
/// only if the configuration enables profiles.
class Profiler final : public Service {
 public:
  /// All must live until join() returns true.
  struct Parts {
    const Clock& clock;
    Log& log;
    Store& store;
    std::function<std::uint32_t(std::uint32_t uid)> owner_of;
    std::function<std::string(std::uint32_t uid)> name_of;
    std::function<jobs::DeviceUses()> uses;  ///< who uses which GPU; must not block
    std::shared_ptr<profiles::BudgetBook> budget;
  };

  Profiler(Parts parts, profiles::Settings settings, std::string procfs);
  ~Profiler() override;

  Result<Done> start() override;
  void request_stop() override;
  bool join(Nanoseconds deadline) override;

  /// The runs as of now. Any thread.
  void take_runs(const jobs::RunList& runs);

 private:
  class Core;

  Result<Done> start_rules();
  Result<Done> start_search();

  const Parts parts_;
  const profiles::Settings settings_;
  const std::string procfs_;
  const std::shared_ptr<Core> core_;  ///< shared with the threads, which may outlive this object
  Worker worker_;
  Worker rules_;
  Worker search_;
};

}  // namespace gpumeter
