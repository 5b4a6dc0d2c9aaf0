#include "collectors/jobs/intake/service.hpp"

#include <utility>

namespace gpumeter::jobs {

void JobService::start(const config::Config& config, const std::vector<systemd::PassedSocket>& passed) {
  JobSockets sockets = open_sockets(config.jobs, passed, parts_.say);
  if (!config.jobs.enabled) return;
  if (sockets.datagram) check_queue_length(config.paths.procfs, parts_.say);
  ingest_ = std::make_unique<Ingest>(parts_.clock, config, parts_.names, parts_.say);
  if (const Result<Done> started = ingest_->prepare(std::move(sockets)); !started) {
    parts_.say({"jobs are not listened to", "", started.error().message()});
    ingest_.reset();
    return;
  }
  page_ = std::make_unique<JobsPage>(
      parts_.store, parts_.clock, [this] { return ingest_->snapshot(); }, parts_.append);
  retry();
}

void JobService::retry() {
  if (!ingest_ || is_running_) return;
  Result<Done> started = ingest_->start();
  if (started) started = page_->start();
  is_running_ = static_cast<bool>(started);
  if (!started && !std::exchange(said_, true)) {
    parts_.say({"jobs are not listened to; it is tried again", "", started.error().message()});
  }
}

void JobService::configure(const config::Config& config) {
  if (ingest_) ingest_->configure(ingest_settings(config));
}

bool JobService::stop() {
  page_.reset();
  const bool all_ended = !ingest_ || ingest_->stop();
  ingest_.reset();
  return all_ended;
}

}  // namespace gpumeter::jobs
