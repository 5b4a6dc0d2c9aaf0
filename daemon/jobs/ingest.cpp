#include "daemon/jobs/ingest.hpp"

#include <errno.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <utility>

namespace gpumeter::jobs {
namespace {

constexpr Nanoseconds kTick = std::chrono::seconds(1);
/// Batches of datagrams before connections and the tick have their turn.
constexpr int kBatchesAtOnce = 16;

std::vector<MllogFile> files_of(const std::vector<std::string>& entries) {
  std::vector<MllogFile> files;
  for (const std::string& entry : entries) {
    const std::size_t end = entry.find("=/");
    files.emplace_back(entry.substr(0, end), entry.substr(end + 1),
                       static_cast<std::int32_t>(files.size()) + 1);
  }
  return files;
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
      files_(files_of(config.jobs.mllog)),
      troubles_(files_.size()) {
  gate_.let_in(config.jobs.users);
}

Result<Done> Ingest::start(JobSockets sockets) {
  sockets_ = std::move(sockets);
  events_ = Descriptor(epoll_create1(EPOLL_CLOEXEC));
  wake_ = Descriptor(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  bool watched = events_ && wake_ && watch(wake_.number());
  if (sockets_.datagram) watched = watched && watch(sockets_.datagram.number());
  if (sockets_.stream) watched = watched && watch(sockets_.stream.number());
  if (!watched) return Error("jobs: epoll: " + std::generic_category().message(errno));
  thread_ = std::thread([this] { run(); });
  return Done{};
}

void Ingest::stop() {
  if (!thread_.joinable()) return;
  {
    const MutexLock lock(mutex_);
    stop_ = true;
  }
  eventfd_write(wake_.number(), 1);
  thread_.join();
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
  std::array<epoll_event, 64> ready{};
  const auto patience = static_cast<int>((left + kMillisecond - Nanoseconds(1)) / kMillisecond);
  const int count = epoll_wait(events_.number(), ready.data(), ready.size(), patience);
  for (int i = 0; i < count; ++i) hear(ready[static_cast<std::size_t>(i)].data.fd);
  if (clock_.monotonic() >= tick_at_) tick();
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

void Ingest::read_file(MllogFile& file) {
  const Moment at = now();
  std::string owner;
  const std::uint64_t overlong = file.read([&](std::string_view line) {
    const auto id = file.sender();
    if (owner.empty()) owner = gate_.name_of(id->uid);
    model_.receive_mllog({*id, owner}, file.run(), line, at);
  });
  if (overlong > 0) model_.drop(Refusal::too_long, overlong);
  std::string& said = troubles_[static_cast<std::size_t>(&file - files_.data())];
  if (said == file.trouble()) return;
  said = file.trouble();
  if (!said.empty()) say_({"a log of MLPerf is not read", file.path(), said});
}

void Ingest::tick() {
  for (MllogFile& file : files_) read_file(file);
  const Moment at = now();
  gate_.tick(at.elapsed);
  connections_.tick(at.elapsed);
  model_.tick(at);
  if (std::exchange(deaf_, false)) watch(sockets_.stream.number());
  tick_at_ = clock_.monotonic() + kTick;
}

bool Ingest::is_alive(const SenderId& id) const {
  if (id.pid > 0) return gate_.identities().is_alive(id);
  return std::any_of(files_.begin(), files_.end(),
                     [&](const MllogFile& file) { return file.sender() == id; });
}

}  // namespace gpumeter::jobs
