#include "daemon/nccl/queries.hpp"

#include <sys/eventfd.h>

#include <string>
#include <utility>

#include "base/descriptor.hpp"
#include "collectors/nccl/watch.hpp"

namespace gpumeter {

/// The thread's state.
class NcclQueries::Turn {
 public:
  Turn(Parts parts, const nccl::Settings& settings)
      : parts_(std::move(parts)), watch_(watch_parts(), settings), series_(parts_.store.attach()) {}

  Nanoseconds run() {
    const Nanoseconds pause = watch_.turn();
    watch_.write(series_);
    series_.commit(parts_.clock.monotonic());
    return pause;
  }

  void stop() const { eventfd_write(stopper_.number(), 1); }

 private:
  nccl::Watch::Parts watch_parts() {
    return {.clock = parts_.clock,
            .uses = [book = parts_.workloads.book] { return book->uses(); },
            .run_of = [this](const workloads::ProcessUse& use) -> std::optional<nccl::RunLabels> {
              const auto run = parts_.runs->of(use.id);
              if (!run) return std::nullopt;
              return nccl::RunLabels{run->user, run->run};
            },
            .user_name = parts_.workloads.user_name,
            .say = [this](const std::string& user, nccl::State state,
                          const std::string& reason) { say(user, state, reason); },
            .waker = stopper_.number(),
            .procfs = parts_.workloads.procfs};
  }

  void say(const std::string& user, nccl::State state, const std::string& reason) {
    if (state == nccl::State::asked)
      return parts_.log.info("NCCL is asked about its ranks", {{"user", user}});
    if (state == nccl::State::failed) {
      return parts_.log.warn("NCCL does not answer; the next query follows later",
                             {{"user", user}, {"error", reason}});
    }
    parts_.log.warn("NCCL is not asked, because a query might crash the job",
                    {{"user", user}, {"state", std::string(to_string(state))}, {"reason", reason}});
  }

  const Parts parts_;
  const Descriptor stopper_{eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
  nccl::Watch watch_;
  SeriesList series_;
};

NcclQueries::NcclQueries(const Parts& parts, const nccl::Settings& settings)
    : turn_(std::make_shared<Turn>(parts, settings)), worker_(parts.clock) {}

Result<Done> NcclQueries::start() {
  return worker_.start("nccl", [turn = turn_] { return turn->run(); });
}

void NcclQueries::request_stop() {
  worker_.request_stop();
  turn_->stop();
}

std::unique_ptr<NcclQueries> make_nccl_queries(const nccl::Settings& settings,
                                               const NcclQueries::Parts& parts) {
  if (!settings.enabled || parts.workloads.book == nullptr) return nullptr;
  return std::make_unique<NcclQueries>(parts, settings);
}

}  // namespace gpumeter
