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
void add_dropped(const JobSnapshot& snapshot, SeriesSet& set) {
  for (const auto& [refusal, name] : kRefusalNames) {
    const Label reason{"reason", std::string(name)};
    set.add(self_catalog::jobs_dropped, LabelBlock(std::span(&reason, 1)),
            static_cast<double>(snapshot.dropped[static_cast<std::size_t>(refusal)]));
  }
}

}  // namespace

SeriesSet job_series(const JobSnapshot& snapshot) {
  SeriesSet set;
  set.entries.reserve(snapshot.series.size() + kRefusalCount);
  for (const JobSeries& line : snapshot.series) {
    set.add(*line.series.family, LabelBlock(line.series.labels), line.value, line.suffix);
  }
  add_dropped(snapshot, set);
  return set;
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
  SeriesSet set = job_series(*snapshot);
  if (append_) append_(*snapshot, set);
  registry_.publish("jobs", set);
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
