#include "programs/top/app.hpp"

#include <langinfo.h>
#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <clocale>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <string>
#include <utility>

#include "base/descriptor.hpp"
#include "base/text.hpp"
#include "programs/top/fetch/poller.hpp"
#include "programs/top/fetch/query.hpp"
#include "programs/top/pages/view.hpp"
#include "programs/top/terminal.hpp"

namespace gpumeter::top {
namespace {

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

int show_until_quit(Query query, Snapshot first, Frame frame, const Options& options) {
  static const SystemClock kClock;  // outlives a thread that is left behind
  const Descriptor signals = signals_as_descriptor();
  Poller poller(std::move(query), std::move(first), options.interval, kClock);
  if (const Result<Done> started = poller.start(); !started) return fail(started.error().message());
  {
    Result<std::unique_ptr<Terminal>> terminal = Terminal::open();
    if (!terminal) return fail(terminal.error().message());
    Session(**terminal, poller, std::move(frame), options, kClock).run(signals);
  }
  if (!poller.stop()) _exit(0);
  return 0;
}

}  // namespace

int run(const Options& options) {
  static const SystemClock kClock;
  const Charset charset = charset_of_locale();
  Query query(HttpClient(options.address, options.access), charset, kClock);
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
  return show_until_quit(std::move(query), *std::move(first), std::move(frame), options);
}

}  // namespace gpumeter::top
