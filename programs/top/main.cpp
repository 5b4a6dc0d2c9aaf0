// Without the macros, whose names are those of functions here.
#define NCURSES_NOMACROS 1
#include <curl/curl.h>
#include <curses.h>
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
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <variant>
#include <vector>

#include "base/clock.hpp"
#include "base/command_line.hpp"
#include "base/descriptor.hpp"
#include "base/mutex.hpp"
#include "base/options.hpp"
#include "base/result.hpp"
#include "base/text.hpp"
#include "base/worker.hpp"
#include "programs/client/http.hpp"
#include "programs/top/snapshot.hpp"
#include "programs/top/view.hpp"

namespace gpumeter::top {
namespace {

/// The validated command line.
struct Options {
  client::Address address;
  Nanoseconds interval{};
  Sort sort = Sort::state;
  bool once = false;
  bool json = false;
};

constexpr Duration kShortest = std::chrono::milliseconds(100);
constexpr Duration kLongest = std::chrono::hours(1);

constexpr std::string_view kProgram = "gpumeter-top";

std::vector<std::string> sort_names() {
  std::vector<std::string> names;
  for (const auto& [sort, name] : kSortNames) names.emplace_back(name);
  return names;
}

/// "2s", or "2" for seconds, as other programs of this kind have it.
std::optional<Duration> parse_interval(const std::string& text) {
  const bool is_number = parse_number<double>(text).has_value();
  const std::optional<Duration> interval = parse_duration(is_number ? text + "s" : text);
  return interval && *interval >= kShortest && *interval <= kLongest ? interval : std::nullopt;
}

std::vector<Flag> flags() {
  constexpr std::string_view kGroup = "Options";
  return {
      {"--help", "", "Print this help", kGroup},
      {"--url", "URL",
       "Address of the daemon: URL, HOST[:PORT], unix:/PATH or vsock:CID:PORT (default "
       "http://localhost:10478)",
       kGroup},
      {"--ca-file", "FILE", "Trust these authorities (PEM) for https (default: the system's)", kGroup},
      {"--login-file", "FILE", "A user for the daemon: USER:PASSWORD in the first line", kGroup},
      {"--interval", "TIME", "Time between two refreshes (default 1s)", kGroup},
      {"--sort", "WORD",
       "Order of the GPUs: " + options::enumerate(sort_names(), "or") + " (default state, the worst first)",
       kGroup, sort_names()},
      {"--once", "", "Print one table and exit; the default if stdout is no terminal", kGroup},
      {"--json", "", "Print a JSON object a line at each interval; with --once a single one", kGroup},
      {"--version", "", "Print the version", kGroup},
  };
}

std::variant<Options, Exit> options_of(const CommandLine& line) {
  Options options;
  options.once = line.is_on("--once");
  options.json = line.is_on("--json");
  Result<client::Address> address = client::parse_address(
      line.value("--url", "http://localhost:10478"), line.value("--ca-file"), line.value("--login-file"));
  if (!address) return usage_error(address.error().message(), kProgram);
  options.address = *std::move(address);
  const std::string text = line.value("--interval", "1s");
  const auto interval = parse_interval(text);
  if (!interval)
    return usage_error(
        "--interval: must be 100ms to 1h, such as 2s, not " + gpumeter::quoted(options::printable(text)),
        kProgram);
  options.interval = *interval;
  options.sort = kSortNames.find(line.value("--sort")).value_or(Sort::state);
  return options;
}

std::variant<Options, Exit> parse_options(std::span<const char* const> arguments) {
  const std::vector<Flag> known = flags();
  const CommandLine line(known, arguments);
  std::optional<Exit> exit = early_exit(
      line, kProgram, "Shows the GPUs and jobs of a machine in the terminal, from its gpumeter.", known);
  if (exit) return *std::move(exit);
  return options_of(line);
}

using client::HttpClient;

/// Asks a daemon for a Snapshot: one request for all series, one for health, and one for the past of a GPU if
/// wanted. A daemon without health (404) is asked for health again after a minute. One thread at a time;
/// blocks as HttpClient::get() does.
class Query {
 public:
  /// `clock` must outlive the query.
  Query(HttpClient client, Charset charset, const Clock& clock)
      : client_(std::move(client)), charset_(charset), clock_(clock) {
    for (const std::string_view name : snapshot_series())
      (series_path_ += series_path_.find('?') == std::string::npos ? "?match=" : "&match=") += name;
  }

  /// `past_of`: a uuid, or empty. The Error is printable.
  Result<Snapshot> run(const std::string& past_of = {}) {
    Result<Snapshot> result = snapshot(past_of);
    if (!result) return Error(printable(result.error().message(), charset_));
    return result;
  }

  /// The document of /api/v1/live in one line. The Error is printable.
  Result<std::string> line() {
    const Result<std::string> body = get("/api/v1/live");
    Result<std::string> line = body ? one_line(*body) : body;
    if (!line) return Error(printable(line.error().message(), charset_));
    return line;
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

  Result<Snapshot> snapshot(const std::string& past_of) {
    const Result<std::string> body = get(series_path_);
    if (!body) return body.error();
    const double at = to_seconds(clock_.monotonic());
    const Result<std::vector<Sample>> samples = parse_series(*body, charset_);
    if (!samples) return samples.error();
    const Result<std::optional<Health>> judged = health();
    if (!judged) return judged.error();
    Snapshot made = make_snapshot(*samples, *judged);
    progress_.update(made, at);
    if (past_of.empty()) return made;
    const Result<std::string> history = get("/api/v1/history?range=5m&uuid=" + past_of);
    // Without an answer there are no plots: the GPU has just left, or the daemon is older.
    if (Result<Past> past = history ? parse_history(*history, charset_) : history.error())
      made.past = *std::move(past);
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
      : shared_(new Shared{std::move(query),
                           interval,
                           clock,
                           Descriptor(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
                           {},
                           {},
                           {}}),
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

  /// From now on the snapshots have the past of this GPU; empty: of none.
  void want(const std::string& past_of) {
    {
      MutexLock lock(shared_->mutex);
      if (shared_->past_of == past_of) return;
      shared_->past_of = past_of;
    }
    worker_.wake();
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
    std::string past_of GPUMETER_GUARDED_BY(mutex);

    std::string wanted() {
      MutexLock lock(mutex);
      return past_of;
    }
  };

  static Nanoseconds turn(Shared& shared) {
    const Nanoseconds begin = shared.clock.monotonic();
    Result<Snapshot> snapshot = shared.query.run(shared.wanted());
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

enum : short { kGood = 1, kWarning, kBad, kSelected };
constexpr int kEscape = 27;
constexpr int kControlL = 12;
constexpr int kControlH = 8;
constexpr int kDelete = 127;
constexpr int kEscapeMilliseconds = 25;

bool set_up_colours() {
  const char* refused = std::getenv("NO_COLOR");
  if ((refused != nullptr && *refused != '\0') || !has_colors() || start_color() == ERR) return false;
  use_default_colors();
  init_pair(kGood, COLOR_GREEN, -1);
  init_pair(kWarning, COLOR_YELLOW, -1);
  init_pair(kBad, COLOR_RED, -1);
  return true;
}

constexpr std::pair<int, Key> kKeys[] = {
    {KEY_UP, Key::up},      {KEY_DOWN, Key::down},   {KEY_PPAGE, Key::page_up}, {KEY_NPAGE, Key::page_down},
    {KEY_HOME, Key::first}, {KEY_END, Key::last},    {KEY_ENTER, Key::enter},   {'\n', Key::enter},
    {'\r', Key::enter},     {KEY_RIGHT, Key::enter}, {KEY_LEFT, Key::back},     {KEY_BACKSPACE, Key::back},
    {kDelete, Key::back},   {kControlH, Key::back},  {kEscape, Key::back}};

KeyPress key_of(int code) {
  const auto found = std::ranges::find(kKeys, code, &std::pair<int, Key>::first);
  if (found != std::end(kKeys)) return {found->second};
  if (code > ' ' && code < 127) return {Key::letter, static_cast<char>(code)};
  return {};
}

/// The terminal in full-screen mode, by ncurses. The destructor restores it. One at a time, one thread.
class Terminal {
 public:
  /// Returns an Error if the terminal's type ($TERM) is unknown or cannot move its cursor. Sets no colours if
  /// the terminal has none or $NO_COLOR is set.
  static Result<std::unique_ptr<Terminal>> open() {
    const char* type = std::getenv("TERM");
    set_escdelay(kEscapeMilliseconds);
    SCREEN* const screen = newterm(nullptr, stdout, stdin);
    if (screen == nullptr)
      return Error("the terminal type " + std::string(type == nullptr ? "(TERM is not set)" : type) +
                   " is unknown; use --once");
    cbreak();
    noecho();
    nonl();
    keypad(stdscr, TRUE);
    nodelay(stdscr, TRUE);
    curs_set(0);
    return std::unique_ptr<Terminal>(new Terminal(screen, set_up_colours()));
  }
  ~Terminal() {
    endwin();
    delscreen(screen_);
  }
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;

  static int width() noexcept { return getmaxx(stdscr); }
  static int height() noexcept { return getmaxy(stdscr); }

  void draw(const Lines& lines) {
    werase(stdscr);
    const int rows = std::min(static_cast<int>(lines.size()), height());
    for (int row = 0; row < rows; ++row) {
      const Line& line = lines[static_cast<std::size_t>(row)];
      const attr_t selected = line.is_selected ? A_REVERSE : A_NORMAL;
      wmove(stdscr, row, 0);
      for (const Piece& piece : line.pieces) {
        wattrset(stdscr, static_cast<int>(attributes(piece.style) | selected));
        // ERR at the last column of the last row, where the cursor cannot move on: the text is written.
        waddnstr(stdscr, piece.text.c_str(), static_cast<int>(piece.text.size()));
      }
    }
    wattrset(stdscr, A_NORMAL);
    wrefresh(stdscr);
  }

  /// Returns the next key without waiting; Key::none if there is none. A change of the size is Key::none too.
  static KeyPress read() {
    const int code = wgetch(stdscr);
    if (code == kControlL) clearok(stdscr, TRUE);  // also draws what ncurses believes to be there
    return code == ERR ? KeyPress{} : key_of(code);
  }

 private:
  Terminal(SCREEN* screen, bool has_colours) : screen_(screen), has_colours_(has_colours) {}

  attr_t coloured(short pair) const {
    return has_colours_ ? static_cast<attr_t>(COLOR_PAIR(pair)) : A_NORMAL;
  }
  attr_t attributes(Style style) const {
    switch (style) {
      case Style::dim:
        return A_DIM;
      case Style::bold:
        return A_BOLD;
      case Style::title:
        return A_BOLD | A_UNDERLINE;
      case Style::good:
        return coloured(kGood);
      case Style::warning:
        return coloured(kWarning) | A_BOLD;
      case Style::bad:
        return coloured(kBad) | A_BOLD;
      default:
        return A_NORMAL;
    }
  }

  SCREEN* const screen_;
  const bool has_colours_;
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

int print(const std::string& text) {
  const bool is_written =
      std::fwrite(text.data(), 1, text.size(), stdout) == text.size() && std::fflush(stdout) == 0;
  return is_written ? 0 : fail("stdout cannot be written: " + std::string(std::strerror(errno)));
}

std::string unreachable(const Options& options, const Error& error) {
  const client::Address& address = options.address;
  const std::string& where = address.machine          ? address.host
                             : address.socket.empty() ? address.url
                                                      : address.socket;
  return where + ": " + error.message() +
         ". Is the service running (systemctl status gpumeter)? Name another address by --url.";
}

int print_once(const Snapshot& snapshot, Frame frame, const Options& options) {
  const char* columns = std::getenv("COLUMNS");
  frame.width = std::max(40, parse_number<int>(columns == nullptr ? "" : columns).value_or(kPlainWidth));
  std::string text;
  for (const Line& line : plain_page(snapshot, frame, options.sort)) {
    const std::string whole = line.text();
    text += whole.substr(0, whole.find_last_not_of(' ') + 1) + "\n";
  }
  return print(text);
}

/// Signals end the program, also during a query. A daemon that does not answer any more gets a line too.
int print_lines(Query& query, const Options& options, const Clock& clock) {
  while (true) {
    const Nanoseconds next = clock.monotonic() + options.interval;
    const Result<std::string> line = query.line();
    if (!line && options.once) return fail(unreachable(options, line.error()));
    if (const int code = print((line ? *line : error_line(line.error().message())) + "\n");
        code != 0 || options.once)
      return code;
    std::this_thread::sleep_for(next - clock.monotonic());
  }
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
    frame_.width = Terminal::width();
    frame_.height = Terminal::height();
    frame_.time = time_of_day();
    const Nanoseconds age = clock_.monotonic() - latest_.at;
    const bool is_stale = !latest_.problem.empty() || age > interval_ + kStale;
    frame_.stale_seconds = is_stale ? Number(to_seconds(age)) : std::nullopt;
    frame_.problem = latest_.problem.empty() ? "waiting" : latest_.problem;
    terminal_.draw(compose(view_, *latest_.snapshot, frame_));
    poller_.want(plotted_gpu(view_, *latest_.snapshot, frame_));
  }

  /// False if a key ends the program.
  bool take_keys() {
    for (KeyPress key = Terminal::read(); key.key != Key::none; key = Terminal::read()) {
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

/// Shows the machine until the person quits or a signal ends the program, or prints it. Returns the
/// exit code. Blocks SIGINT, SIGTERM and SIGHUP: call it before the first thread starts.
int run(const Options& options) {
  static const SystemClock kClock;  // outlives a thread that is left behind
  constexpr client::Limits kLimits{std::chrono::seconds(3), std::chrono::seconds(10), std::size_t{64} << 20U};
  const Charset charset = charset_of_locale();
  Query query(HttpClient(options.address, kLimits, "gpumeter-top"), charset, kClock);
  if (options.json) return print_lines(query, options, kClock);
  Result<Snapshot> first = query.run();
  if (!first) return fail(unreachable(options, first.error()));
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
    const auto parsed = parse_options(std::span(argv, static_cast<std::size_t>(argc)).subspan(1));
    if (const auto* exit = std::get_if<gpumeter::Exit>(&parsed)) return gpumeter::print(*exit);
    return run(std::get<Options>(parsed));
  } catch (const std::exception& problem) {
    std::fprintf(stderr, "gpumeter-top: %s\n", problem.what());
    return 1;
  }
}
