#include <curl/curl.h>
#include <langinfo.h>
#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <clocale>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/clock.hpp"
#include "base/descriptor.hpp"
#include "base/mutex.hpp"
#include "base/result.hpp"
#include "base/text.hpp"
#include "base/worker.hpp"
#include "programs/client/http.hpp"
#include "programs/top/options.hpp"
#include "programs/top/snapshot.hpp"
#include "programs/top/terminal.hpp"
#include "programs/top/view.hpp"

namespace gpumeter::top {
namespace {

using client::HttpClient;

/// Asks a daemon for a Snapshot: one request for all series and one for health. A daemon without health (404)
/// is asked for health again after a minute. One thread at a time; blocks as HttpClient::get() does.
class Query {
 public:
  /// `clock` must outlive the query.
  Query(HttpClient client, Charset charset, const Clock& clock)
      : client_(std::move(client)), charset_(charset), clock_(clock) {
    for (const std::string_view name : snapshot_series())
      (series_path_ += series_path_.find('?') == std::string::npos ? "?match=" : "&match=") += name;
  }

  /// The Error is printable.
  Result<Snapshot> run() {
    Result<Snapshot> result = snapshot();
    if (!result) return Error(printable(result.error().message(), charset_));
    return result;
  }

 private:
  Result<std::string> get(const std::string& path, bool* is_missing = nullptr) {
    Result<HttpClient::Answer> answer = client_.get(path);
    if (!answer) return answer.error();
    if (is_missing != nullptr) *is_missing = answer->status == 404;
    if (answer->status == 200) return std::move(answer->body);
    return Error("the answer has status " + std::to_string(answer->status) +
                 "; is this a gpumeter of this version?");
  }

  Result<std::optional<Health>> health() {
    const Nanoseconds now = clock_.monotonic();
    if (no_health_since_ && now - *no_health_since_ < std::chrono::minutes(1)) return std::optional<Health>();
    no_health_since_.reset();
    bool is_missing = false;
    const Result<std::string> body = get("/api/v1/health", &is_missing);
    if (is_missing) return no_health_since_ = now, std::optional<Health>();
    if (!body) return body.error();
    Result<Health> health = parse_health(*body, charset_);
    if (!health) return health.error();
    return std::optional(*std::move(health));
  }

  Result<Snapshot> snapshot() {
    const Result<std::string> body = get(series_path_);
    if (!body) return body.error();
    const double at = to_seconds(clock_.monotonic());
    const Result<std::vector<Sample>> samples = parse_series(*body, charset_);
    if (!samples) return samples.error();
    const Result<std::optional<Health>> judged = health();
    if (!judged) return judged.error();
    Snapshot made = make_snapshot(*samples, *judged);
    progress_.update(made, at);
    return made;
  }

  HttpClient client_;
  const Charset charset_;
  const Clock& clock_;
  std::string series_path_ = "/api/v1/series";
  std::optional<Nanoseconds> no_health_since_;
  Progress progress_;
};

/// The newest answer.
struct Latest {
  std::shared_ptr<const Snapshot> snapshot;
  Nanoseconds at{};     ///< when it came (CLOCK_MONOTONIC)
  std::string problem;  ///< why the last query failed; empty if it did not
};

/// Queries the daemon on its own thread, so that a host that does not answer never delays a key. Owner's
/// thread.
class Poller {
 public:
  /// `first` is shown until the thread has its own answer. `clock` must outlive the poller.
  Poller(Query query, Snapshot first, Nanoseconds interval, const Clock& clock)
      : shared_(new Shared{
            std::move(query), interval, clock, Descriptor(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)), {}, {}}),
        worker_(clock) {
    MutexLock lock(shared_->mutex);
    shared_->latest = {std::make_shared<const Snapshot>(std::move(first)), clock.monotonic(), {}};
  }

  Result<Done> start() {
    return worker_.start("poller",
                         [shared = shared_]() -> std::optional<Nanoseconds> { return turn(*shared); });
  }

  /// Readable when there is a new answer or problem.
  int descriptor() const noexcept { return shared_->news.number(); }

  /// Also makes descriptor() unreadable.
  Latest take() {
    std::uint64_t count = 0;
    [[maybe_unused]] const ssize_t size = read(descriptor(), &count, sizeof count);
    MutexLock lock(shared_->mutex);
    return shared_->latest;
  }

  /// Returns false if a query under way does not end within 200 ms. The caller must then leave by _exit().
  bool stop() { return worker_.stop(shared_->clock.monotonic() + std::chrono::milliseconds(200)); }

 private:
  struct Shared {
    Query query;  ///< the thread's
    const Nanoseconds interval;
    const Clock& clock;
    const Descriptor news;
    Mutex mutex;
    Latest latest GPUMETER_GUARDED_BY(mutex);
  };

  static Nanoseconds turn(Shared& shared) {
    const Nanoseconds begin = shared.clock.monotonic();
    Result<Snapshot> snapshot = shared.query.run();
    const Nanoseconds end = shared.clock.monotonic();
    {
      MutexLock lock(shared.mutex);
      if (snapshot) {
        shared.latest = {std::make_shared<const Snapshot>(*std::move(snapshot)), end, {}};
      } else {
        shared.latest.problem = snapshot.error().message();
      }
    }
    const std::uint64_t one = 1;
    [[maybe_unused]] const ssize_t size = write(shared.news.number(), &one, sizeof one);
    return std::max<Nanoseconds>(shared.interval - (end - begin), std::chrono::milliseconds(50));
  }

  const std::shared_ptr<Shared> shared_;  ///< with the thread
  Worker worker_;
};

constexpr int kPlainWidth = 160;
constexpr Nanoseconds kStale = std::chrono::seconds(3);  ///< in addition to the interval

int fail(const std::string& sentence) {
  std::fprintf(stderr, "gpumeter-top: %s\n", sentence.c_str());
  return 1;
}

// The numbers keep their point: only the characters follow the locale.
Charset charset_of_locale() {
  std::setlocale(LC_CTYPE, "");
  return std::strcmp(nl_langinfo(CODESET), "UTF-8") == 0 ? Charset::utf8 : Charset::ascii;
}

std::string time_of_day() {
  const std::time_t now = std::time(nullptr);
  std::tm local{};
  localtime_r(&now, &local);
  std::array<char, 16> text{};
  return {text.data(), std::strftime(text.data(), text.size(), "%H:%M:%S", &local)};
}

Descriptor signals_as_descriptor() {
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) sigaddset(&set, signal);
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
  return Descriptor(signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
}

int print_once(const Snapshot& snapshot, Frame frame, const Options& options) {
  const char* columns = std::getenv("COLUMNS");
  frame.width = std::max(40, parse_number<int>(columns == nullptr ? "" : columns).value_or(kPlainWidth));
  std::string text;
  for (const Line& line : plain_page(snapshot, frame, options.sort)) {
    const std::string whole = line.text();
    text += whole.substr(0, whole.find_last_not_of(' ') + 1) + "\n";
  }
  const bool is_written =
      std::fwrite(text.data(), 1, text.size(), stdout) == text.size() && std::fflush(stdout) == 0;
  return is_written ? 0 : fail("stdout cannot be written: " + std::string(std::strerror(errno)));
}

/// The full-screen program.
class Session {
 public:
  Session(Terminal& terminal, Poller& poller, Frame frame, const Options& options, const Clock& clock)
      : terminal_(terminal),
        poller_(poller),
        frame_(std::move(frame)),
        interval_(options.interval),
        clock_(clock) {
    view_.sort = options.sort;
  }

  void run(const Descriptor& signals) {
    std::array<pollfd, 3> sources = {
        {{STDIN_FILENO, POLLIN, 0}, {poller_.descriptor(), POLLIN, 0}, {signals.number(), POLLIN, 0}}};
    while (true) {
      show();
      const int ready = poll(sources.data(), sources.size(), 1000);  // each second for the time of day
      if (ready < 0 && errno != EINTR) return;
      if (ready > 0 && sources[2].revents != 0) return;
      if (ready > 0 && (sources[0].revents & (POLLHUP | POLLERR | POLLNVAL)) != 0) return;
      if (!take_keys()) return;
    }
  }

 private:
  void show() {
    latest_ = poller_.take();
    frame_.width = terminal_.width();
    frame_.height = terminal_.height();
    frame_.time = time_of_day();
    const Nanoseconds age = clock_.monotonic() - latest_.at;
    const bool is_stale = !latest_.problem.empty() || age > interval_ + kStale;
    frame_.stale_seconds = is_stale ? Number(to_seconds(age)) : std::nullopt;
    frame_.problem = latest_.problem.empty() ? "waiting" : latest_.problem;
    terminal_.draw(compose(view_, *latest_.snapshot, frame_));
  }

  /// False if a key ends the program.
  bool take_keys() {
    for (KeyPress key = terminal_.read(); key.key != Key::none; key = terminal_.read()) {
      if (!press(view_, *latest_.snapshot, key)) return false;
    }
    return true;
  }

  Terminal& terminal_;
  Poller& poller_;
  Frame frame_;
  const Nanoseconds interval_;
  const Clock& clock_;
  View view_;
  Latest latest_;
};

int show_until_quit(Query query, Snapshot first, Frame frame, const Options& options, const Clock& clock) {
  const Descriptor signals = signals_as_descriptor();
  Poller poller(std::move(query), std::move(first), options.interval, clock);
  if (const Result<Done> started = poller.start(); !started) return fail(started.error().message());
  {
    Result<std::unique_ptr<Terminal>> terminal = Terminal::open();
    if (!terminal) return fail(terminal.error().message());
    Session(**terminal, poller, std::move(frame), options, clock).run(signals);
  }
  if (!poller.stop()) _exit(0);
  return 0;
}

/// Shows the machine until the person quits or a signal ends the program, or prints one table. Returns the
/// exit code. Blocks SIGINT, SIGTERM and SIGHUP: call it before the first thread starts.
int run(const Options& options) {
  static const SystemClock kClock;  // outlives a thread that is left behind
  constexpr client::Limits kLimits{std::chrono::seconds(3), std::chrono::seconds(10), std::size_t{64} << 20U};
  const Charset charset = charset_of_locale();
  Query query(HttpClient(options.address, options.access, kLimits, "gpumeter-top"), charset, kClock);
  Result<Snapshot> first = query.run();
  if (!first)
    return fail((options.address.socket.empty() ? options.address.url : options.address.socket) + ": " +
                first.error().message() +
                ". Is the service running (systemctl status gpumeter)? Name another address by --url.");
  Frame frame;
  frame.charset = charset;
  frame.host = printable(options.address.host, charset);
  const bool is_terminal = isatty(STDIN_FILENO) == 1 && isatty(STDOUT_FILENO) == 1;
  if (options.once || !is_terminal) return print_once(*first, std::move(frame), options);
  return show_until_quit(std::move(query), *std::move(first), std::move(frame), options, kClock);
}

}  // namespace
}  // namespace gpumeter::top

int main(int argc, char** argv) {
  using namespace gpumeter::top;
  try {
    curl_global_init(CURL_GLOBAL_DEFAULT);
    const auto parsed = parse_options(argc, argv);
    if (const auto* exit = std::get_if<Exit>(&parsed)) {
      std::fputs(exit->text.c_str(), exit->code == 0 ? stdout : stderr);
      return exit->code;
    }
    return run(std::get<Options>(parsed));
  } catch (const std::exception& problem) {
    std::fprintf(stderr, "gpumeter-top: %s\n", problem.what());
    return 1;
  }
}
