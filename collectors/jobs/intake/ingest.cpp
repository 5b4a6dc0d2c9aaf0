#include "collectors/jobs/intake/ingest.hpp"

#include <errno.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <system_error>
#include <utility>

#include "base/text.hpp"
#include "collectors/attribution/workload_settings.hpp"

namespace gpumeter::jobs {
namespace {

constexpr Nanoseconds kTick = std::chrono::seconds(1);
/// How long a tick waits for the messages that are still in the queue of the datagram socket.
constexpr Nanoseconds kReceiveLast = std::chrono::milliseconds(200);

/// How often the state of the runs is kept for the next write of the state file and of its copy: at each
/// tick, less its jitter, so that a crash loses nothing that a page has shown.
constexpr Nanoseconds kKeep = kTick / 2;

/// The age of a datagram that is believed: the calendar clock, by which the kernel stamps it, may have been
/// set meanwhile.
constexpr Nanoseconds kMostAge = std::chrono::minutes(1);

/// How long stop() waits for the threads that read logs.
constexpr Nanoseconds kStopLogs = std::chrono::milliseconds(300);

/// How long stop() takes messages that are still queued. A full queue needs a third of it.
constexpr Nanoseconds kStopTaking = std::chrono::seconds(1);

/// The user of gpumeter-benchmark.service.
constexpr std::string_view kBenchmarkUser = "gpumeter-benchmark";

}  // namespace

Ingest::Ingest(Parts parts, Settings settings, const Limits& limits)
    : parts_(std::move(parts)),
      settings_(std::move(settings)),
      model_(source_, limits, [this](const SenderId& id) { return is_alive(id); }),
      troubles_(settings_.logs.size()),
      receiver_(parts_.clock, owners_, limits.lines_per_second,
                [this] { eventfd_write(wake_.number(), 1); }) {
  gate_.let_in(settings_.users);
  for (const LogSettings& log : settings_.logs) {
    logs_.push_back(std::make_unique<MllogReader>(log, static_cast<std::int32_t>(logs_.size()) + 1));
  }
}

Result<Done> Ingest::resume(const Sections& saved, bool is_of_this_boot) {
  const auto section = [&](std::size_t number) {
    const auto found = saved.find(kSections[number]);
    return found == saved.end() ? std::string_view() : std::string_view(found->second);
  };
  if (Result<Done> restored = model_.restore(section(0), now(), is_of_this_boot); !restored) return restored;
  if (Result<Done> restored = join_.restore(section(1)); !restored) return restored;
  return results_.restore(section(2));
}

void Ingest::start(std::vector<PassedSocket> passed) {
  sockets_ = open_sockets(settings_.sockets, std::move(passed), parts_.say);
  if (sockets_.datagram && !sockets_.datagram.has_long_queue()) check_queue_length(parts_.procfs, parts_.say);
  if (const Result<Done> watched = watch_sockets(); !watched) {
    parts_.say({"cannot listen for jobs", "", watched.error().message()});
    return;
  }
  retry();
}

Result<Done> Ingest::watch_sockets() {
  events_ = Descriptor(epoll_create1(EPOLL_CLOEXEC));
  wake_ = Descriptor(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  bool watched = events_ && wake_ && watch(wake_.number());
  if (sockets_.stream) watched = watched && watch(sockets_.stream.number());
  if (watched) return Done{};
  Error error("epoll: " + std::generic_category().message(errno));
  events_ = {};
  return error;
}

bool Ingest::watch(int number) {
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.fd = number;
  return epoll_ctl(events_.number(), EPOLL_CTL_ADD, number, &event) == 0;
}

void Ingest::retry() {
  if (is_running_ || !events_) return;
  owners_.start();
  Result<Done> started = sockets_.datagram ? receiver_.start(sockets_.datagram.number()) : Done{};
  if (started)
    started = worker_.start("jobs", [this] {
      turn();
      return Nanoseconds(0);
    });
  is_running_ = static_cast<bool>(started);
  if (!started && !std::exchange(is_missed_, true)) {
    parts_.say({"cannot listen for jobs yet; gpumeter retries", "", started.error().message()});
  }
}

bool Ingest::stop() {
  for (const auto& log : logs_) log->request_stop();
  if (is_running_) refuse_senders();
  receiver_.stop();
  worker_.request_stop();
  if (wake_) eventfd_write(wake_.number(), 1);
  worker_.join();
  if (is_running_) take_rest();
  const Nanoseconds deadline = parts_.clock.monotonic() + kStopLogs;
  const bool is_left =
      std::ranges::count_if(logs_, [&](const auto& log) { return !log->join(deadline); }) > 0;
  return !is_left && !owners_.hangs();
}

/// The receiver and the thread "jobs" still run, and take what is queued. A sender gets an error from now on,
/// and may keep its values for the next daemon, as our clients do.
void Ingest::refuse_senders() {
  sockets_.stream.remove_file();
  if (!sockets_.datagram.remove_file()) return;
  shutdown(sockets_.datagram.number(), SHUT_RD);
  const Nanoseconds deadline = parts_.clock.monotonic() + kStopTaking;
  const std::uint64_t question = receiver_.ask();
  while (!receiver_.is_answered(question, deadline - parts_.clock.monotonic()) &&
         parts_.clock.monotonic() < deadline) {
  }
  is_closed_ = true;
}

/// After the end of both threads.
void Ingest::take_rest() {
  take_letters();
  if (is_closed_) model_.drop(Refusal::stop, receiver_.discard());
  const Nanoseconds deadline = parts_.clock.monotonic() + kStopTaking;
  connections_.refuse_senders();
  while (hear_all(0) > 0 && parts_.clock.monotonic() < deadline) {
  }
  keep_runs();
}

void Ingest::configure(LiveSettings settings) {
  {
    const MutexLock lock(mutex_);
    next_ = std::move(settings);
  }
  if (wake_) eventfd_write(wake_.number(), 1);
}

void Ingest::turn() {
  constexpr Nanoseconds kMillisecond = std::chrono::milliseconds(1);
  const Nanoseconds left = std::clamp(tick_at_ - parts_.clock.monotonic(), Nanoseconds(0), kTick);
  hear_all(static_cast<int>((left + kMillisecond - Nanoseconds(1)) / kMillisecond));
  if (parts_.clock.monotonic() >= tick_at_) tick();
}

/// `patience`: the longest wait, in milliseconds. Returns the number of descriptors that had something.
int Ingest::hear_all(int patience) {
  std::array<epoll_event, 64> ready{};
  const int count = epoll_wait(events_.number(), ready.data(), ready.size(), patience);
  for (int i = 0; i < count; ++i) hear(ready[static_cast<std::size_t>(i)].data.fd);
  return count;
}

void Ingest::hear(int number) {
  if (number == wake_.number()) return take_orders();
  if (sockets_.stream && number == sockets_.stream.number()) return accept_all();
  read_connection(number);
}

void Ingest::take_orders() {
  eventfd_t ignored = 0;
  eventfd_read(wake_.number(), &ignored);
  take_letters();
  std::optional<LiveSettings> settings;
  {
    const MutexLock lock(mutex_);
    settings = std::exchange(next_, std::nullopt);
  }
  if (!settings) return;
  model_.set_limits(settings->limits);
  receiver_.set_rate(settings->limits.lines_per_second);
  gate_.let_in(std::move(settings->users));
}

void Ingest::take_letters() {
  receiver_.take(letters_);
  const Moment at = now();
  letters_.for_each([&](const Datagram& datagram) { take(datagram, at); });
  admissions_.clear();
  model_.drop(Refusal::rate_limit, letters_.over_rate());
  letters_.clear();
}

/// Takes all messages that were sent before the call.
void Ingest::receive_last() {
  if (sockets_.datagram) {
    const Nanoseconds deadline = parts_.clock.monotonic() + kReceiveLast;
    const std::uint64_t question = receiver_.ask();
    while (!receiver_.is_answered(question, std::chrono::milliseconds(2)) &&
           parts_.clock.monotonic() < deadline && !worker_.is_stopping()) {
      take_letters();  // the receiver may wait for room
    }
  }
  take_letters();
  hear_all(0);
}

void Ingest::take(const Datagram& datagram, const Moment& at) {
  const Nanoseconds age = std::max(Nanoseconds(0), at.unix - datagram.sent);
  const auto& admitted = admissions_.of(datagram.from, at.elapsed - age, at.elapsed);
  const auto* const refused = std::get_if<Refusal>(&admitted);
  if (datagram.payload.starts_with(benchmarks::kPrefix) &&
      (refused == nullptr || *refused == Refusal::user)) {
    return take_results(datagram, at);
  }
  if (refused != nullptr) return model_.drop(*refused);
  if (datagram.cut) return model_.drop(Refusal::too_long);
  const Moment sent = at.at(at.unix - std::min(age, kMostAge));
  model_.receive(std::get<Guest>(admitted).sender(), datagram.payload, at, sent);
}

/// jobs.users does not apply: it is about who may report runs.
bool Ingest::may_send_results(std::uint32_t uid) {
  return uid == 0 || uid == geteuid() || gate_.name_of(uid) == kBenchmarkUser;
}

void Ingest::take_results(const Datagram& datagram, const Moment& at) {
  if (!may_send_results(datagram.from.uid)) return model_.drop(Refusal::user);
  const auto devices = parts_.machine.known_devices.get();
  results_.receive(datagram.payload, *devices, at.unix, [this](Refusal refusal) { model_.drop(refusal); });
}

void Ingest::accept_all() {
  while (true) {
    const int number = accept4(sockets_.stream.number(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (number < 0 && (errno == EINTR || errno == ECONNABORTED)) continue;
    if (number < 0) {
      // Otherwise epoll would report the listener continuously until a descriptor is free.
      is_full_ = errno != EAGAIN;
      if (is_full_) epoll_ctl(events_.number(), EPOLL_CTL_DEL, sockets_.stream.number(), nullptr);
      return;
    }
    const auto added = connections_.add(Descriptor(number), parts_.clock.boottime());
    model_.drop(Refusal::connections, connections_.take_displaced());
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
  model_.drop(Refusal::too_long, connections_.read(number, at.elapsed, each));
}

void Ingest::take_log(MllogReader& log, std::string& said) {
  const Result<Done> started = log.start();
  const std::string trouble = started ? log.trouble() : started.error().message();
  if (said != trouble && !trouble.empty()) {
    parts_.say({"cannot read an MLPerf log", log.log().path, trouble});
  }
  said = trouble;
  const std::optional<MllogFile::Batch> batch = log.take();
  if (!batch) return;
  const Moment at = now();
  const std::uint32_t owner = gate_.owner_of(batch->sender.uid);
  const std::string name = gate_.name_of(owner);
  std::string_view rest = batch->lines;
  while (!rest.empty()) {
    model_.receive_mllog({batch->sender, name, nullptr, owner}, log.log().run, take_until(rest, '\n'), at);
  }
  model_.drop(Refusal::too_long, batch->overlong);
}

void Ingest::tick() {
  for (std::size_t i = 0; i < logs_.size(); ++i) take_log(*logs_[i], troubles_[i]);
  const Moment at = now();
  kin_.begin_pass(at.elapsed);
  gate_.tick(at.elapsed);
  connections_.tick(at.elapsed);
  model_.tick(at, [this] { receive_last(); });
  source_.commit(parts_.clock.monotonic());
  RunList runs = model_.runs();
  const WorkloadSettings* const workloads = parts_.machine.workloads.get();
  join_.update(runs, workloads != nullptr ? workloads->book->uses() : DeviceUses());
  runs.on_devices = join_.take_runs();
  parts_.machine.runs.publish(std::move(runs));
  join_.write(joined_);
  joined_.commit(parts_.clock.monotonic());
  if (!results_.empty()) {
    result_series_.show(results_, *parts_.machine.known_devices.get(), parts_.clock.monotonic());
  }
  if (parts_.clock.monotonic() - kept_at_ >= kKeep) keep_runs();
  if (std::exchange(is_full_, false)) watch(sockets_.stream.number());
  tick_at_ = parts_.clock.monotonic() + kTick;
}

void Ingest::keep_runs() {
  kept_at_ = parts_.clock.monotonic();
  if (parts_.keep == nullptr) return;
  parts_.keep->publish(
      {{kSections[0], model_.save(now())}, {kSections[1], join_.saved()}, {kSections[2], results_.saved()}});
}

bool Ingest::is_alive(const SenderId& id) const {
  if (id.pid > 0) return gate_.is_alive(id);
  return std::ranges::any_of(logs_, [&](const auto& log) { return log->sender() == id; });
}

}  // namespace gpumeter::jobs
