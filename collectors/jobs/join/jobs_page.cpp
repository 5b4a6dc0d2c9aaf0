#include "collectors/jobs/join/jobs_page.hpp"

#include <pthread.h>

#include <chrono>
#include <cstddef>
#include <string>
#include <system_error>

#include "collectors/api/self_catalog.hpp"
#include "collectors/jobs/wire/refusal.hpp"

namespace gpumeter::jobs {
namespace {

constexpr auto kInterval = std::chrono::seconds(1);

/// Each reason is there from the start: an alert on its rate needs the first one.
void add_dropped(const JobSnapshot& snapshot, SeriesList& to) {
  for (const auto& [refusal, name] : kRefusalNames) {
    to.add(self_catalog::jobs_dropped, Labels{{"reason", std::string(name)}},
           static_cast<double>(snapshot.dropped[static_cast<std::size_t>(refusal)]));
  }
}

}  // namespace

void add_job_series(const JobSnapshot& snapshot, SeriesList& to) {
  for (const JobSeries& line : snapshot.series) {
    to.add(*line.series.family, Labels(line.series.labels), line.value, line.part);
  }
  add_dropped(snapshot, to);
}

Result<Done> JobsPage::start() try {
  if (!thread_.joinable()) thread_ = std::thread([this] { run(); });
  return Done{};
} catch (const std::system_error& problem) {
  return Error("cannot start the thread jobs-page: " + problem.code().message());
}

void JobsPage::stop() {
  {
    const MutexLock lock(mutex_);
    stop_ = true;
    changed_.notify_all();
  }
  if (thread_.joinable()) thread_.join();
}

void JobsPage::publish() {
  const std::shared_ptr<const JobSnapshot> snapshot = latest_();
  add_job_series(*snapshot, series_);
  if (append_) append_(*snapshot, series_);
  series_.commit(clock_.monotonic());
}

void JobsPage::run() noexcept {
  pthread_setname_np(pthread_self(), "jobs-page");
  do {
    try {
      publish();
    } catch (...) {  // out of memory: the page stays as it was
    }
  } while (!sleep());
}

/// True: stop.
bool JobsPage::sleep() {
  using SteadyClock = std::chrono::steady_clock;
  const auto until = SteadyClock::now() + kInterval;
  const MutexLock lock(mutex_);
  while (!stop_ && SteadyClock::now() < until) changed_.wait_for(mutex_, until - SteadyClock::now());
  return stop_;
}

}  // namespace gpumeter::jobs
