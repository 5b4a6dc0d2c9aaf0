#include "collectors/jobs/intake/ingest.hpp"

#include <errno.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <system_error>
#include <utility>

namespace gpumeter::jobs {
namespace {

constexpr Nanoseconds kTick = std::chrono::seconds(1);
/// Batches of datagrams before connections and the tick have their turn.
constexpr int kBatchesAtOnce = 16;

/// Of the stop, for the threads that read logs.
constexpr Nanoseconds kStopLogs = std::chrono::milliseconds(300);

std::vector<std::unique_ptr<MllogReader>> logs_of(const std::vector<std::string>& entries) {
  std::vector<std::unique_ptr<MllogReader>> logs;
  for (const std::string& entry : entries) {
    const std::size_t end = entry.find("=/");
    logs.push_back(std::make_unique<MllogReader>(entry.substr(0, end), entry.substr(end + 1),
                                                 static_cast<std::int32_t>(logs.size()) + 1));
  }
  return logs;
}

}  // namespace

IngestSettings ingest_settings(const config::Config& config) {
  Limits limits;
  const config::JobLimits& wanted = config.job_limits;
  limits.lines_per_second = wanted.lines_per_second;
  limits.burst_lines = wanted.lines_per_second;
  limits.series_per_run = wanted.series_per_run;
  limits.series_per_sender = std::max<std::size_t>(limits.series_per_sender, wanted.series_per_run);
  limits.series_per_user = wanted.series_per_user;
  limits.series = wanted.series;
  limits.retention = wanted.retention;
  return {limits, config.jobs.users};
}

Ingest::Ingest(const Clock& clock, const config::Config& config, UserNames& names, Say say)
    : clock_(clock),
      say_(std::move(say)),
      gate_(config.paths.procfs, names),
      model_(ingest_settings(config).limits, [this](const SenderId& id) { return is_alive(id); }),
      connections_(gate_),
      logs_(logs_of(config.jobs.mllog)),
      troubles_(logs_.size()) {
  gate_.let_in(config.jobs.users);
}

Result<Done> Ingest::prepare(JobSockets sockets) {
  sockets_ = std::move(sockets);
  events_ = Descriptor(epoll_create1(EPOLL_CLOEXEC));
  wake_ = Descriptor(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  bool watched = events_ && wake_ && watch(wake_.number());
  if (sockets_.datagram) watched = watched && watch(sockets_.datagram.number());
  if (sockets_.stream) watched = watched && watch(sockets_.stream.number());
  if (!watched) return Error("jobs: epoll: " + std::generic_category().message(errno));
  return Done{};
}

Result<Done> Ingest::start() try {
  if (!thread_.joinable()) thread_ = std::thread([this] { run(); });
  return Done{};
} catch (const std::system_error& problem) {
  return Error("cannot start the thread jobs: " + problem.code().message());
}

bool Ingest::stop() {
  for (const auto& log : logs_) log->request_stop();
  {
    const MutexLock lock(mutex_);
    stop_ = true;
  }
  if (wake_) eventfd_write(wake_.number(), 1);
  if (thread_.joinable()) thread_.join();
  const Nanoseconds deadline = clock_.monotonic() + kStopLogs;
  bool all_ended = true;
  for (const auto& log : logs_) all_ended = log->join(deadline) && all_ended;
  return all_ended;
}

void Ingest::configure(IngestSettings settings) {
  {
    const MutexLock lock(mutex_);
    settings_ = std::move(settings);
  }
  if (wake_) eventfd_write(wake_.number(), 1);
}

bool Ingest::watch(int number) {
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.fd = number;
  return epoll_ctl(events_.number(), EPOLL_CTL_ADD, number, &event) == 0;
}

void Ingest::run() noexcept {
  pthread_setname_np(pthread_self(), "jobs");
  while (true) {
    {
      const MutexLock lock(mutex_);
      if (stop_) return;
    }
    try {
      turn();
    } catch (...) {  // out of memory: what was being taken is lost, the next message may find some
    }
  }
}

void Ingest::turn() {
  constexpr Nanoseconds kMillisecond = std::chrono::milliseconds(1);
  const Nanoseconds left = std::clamp(tick_at_ - clock_.monotonic(), Nanoseconds(0), kTick);
  hear_all(static_cast<int>((left + kMillisecond - Nanoseconds(1)) / kMillisecond));
  if (clock_.monotonic() >= tick_at_) tick();
}

/// Waits for so many milliseconds at the most.
void Ingest::hear_all(int patience) {
  std::array<epoll_event, 64> ready{};
  const int count = epoll_wait(events_.number(), ready.data(), ready.size(), patience);
  for (int i = 0; i < count; ++i) hear(ready[static_cast<std::size_t>(i)].data.fd);
}

void Ingest::hear(int number) {
  if (number == wake_.number()) return take_settings();
  if (sockets_.datagram && number == sockets_.datagram.number()) return read_datagrams();
  if (sockets_.stream && number == sockets_.stream.number()) return accept_all();
  read_connection(number);
}

void Ingest::take_settings() {
  eventfd_t ignored = 0;
  eventfd_read(wake_.number(), &ignored);
  std::optional<IngestSettings> settings;
  {
    const MutexLock lock(mutex_);
    settings = std::exchange(settings_, std::nullopt);
  }
  if (!settings) return;
  model_.set_limits(settings->limits);
  gate_.let_in(std::move(settings->users));
}

void Ingest::read_datagrams() {
  for (int i = 0; i < kBatchesAtOnce; ++i) {
    const auto each = [this](const Datagram& datagram) { take(datagram); };
    if (datagrams_.read(sockets_.datagram.number(), each) == 0) return;
  }
}

void Ingest::take(const Datagram& datagram) {
  const Moment at = now();
  const Nanoseconds age = std::max(Nanoseconds(0), at.unix - datagram.sent);
  const auto admitted = gate_.admit(datagram.from, at.elapsed - age, at.elapsed);
  if (const auto* refusal = std::get_if<Refusal>(&admitted)) return model_.drop(*refusal);
  if (datagram.cut) return model_.drop(Refusal::too_long);
  model_.receive(std::get<Guest>(admitted).sender(), datagram.payload, at);
}

void Ingest::accept_all() {
  while (true) {
    const int number = accept4(sockets_.stream.number(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (number < 0 && (errno == EINTR || errno == ECONNABORTED)) continue;
    if (number < 0) {
      // Else the listener would be ready for as long as no descriptor is to be had.
      deaf_ = errno != EAGAIN;
      if (deaf_) epoll_ctl(events_.number(), EPOLL_CTL_DEL, sockets_.stream.number(), nullptr);
      return;
    }
    const auto added = connections_.add(Descriptor(number), clock_.boottime());
    if (const auto* refusal = std::get_if<Refusal>(&added)) {
      model_.drop(*refusal);
    } else {
      watch(number);
    }
  }
}

void Ingest::read_connection(int number) {
  const Moment at = now();
  const auto each = [&](const Sender& sender, std::string_view payload) {
    model_.receive(sender, payload, at);
  };
  const std::uint64_t overlong = connections_.read(number, at.elapsed, each);
  if (overlong > 0) model_.drop(Refusal::too_long, overlong);
}

void Ingest::take_log(MllogReader& log) {
  std::string& said = troubles_[static_cast<std::size_t>(log.number() - 1)];
  if (const Result<Done> started = log.start(); !started) {
    return say_trouble(log, said, started.error().message());
  }
  say_trouble(log, said, log.trouble());
  const std::optional<MllogReader::Batch> batch = log.take();
  if (!batch) return;
  const Moment at = now();
  const std::string owner = gate_.name_of(batch->sender.uid);
  std::string_view rest = batch->lines;
  while (!rest.empty()) {
    const std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(line.size() + 1);
    model_.receive_mllog({batch->sender, owner}, log.run(), line, at);
  }
  if (batch->overlong > 0) model_.drop(Refusal::too_long, batch->overlong);
}

void Ingest::say_trouble(const MllogReader& log, std::string& said, std::string trouble) {
  if (said == trouble) return;
  said = std::move(trouble);
  if (!said.empty()) say_({"a log of MLPerf is not read", log.path(), said});
}

void Ingest::tick() {
  for (const auto& log : logs_) take_log(*log);
  const Moment at = now();
  gate_.tick(at.elapsed);
  connections_.tick(at.elapsed);
  model_.tick(at, [this] { hear_all(0); });
  if (std::exchange(deaf_, false)) watch(sockets_.stream.number());
  tick_at_ = clock_.monotonic() + kTick;
}

bool Ingest::is_alive(const SenderId& id) const {
  if (id.pid > 0) return gate_.identities().is_alive(id);
  return std::any_of(logs_.begin(), logs_.end(), [&](const auto& log) { return log->sender() == id; });
}

}  // namespace gpumeter::jobs
