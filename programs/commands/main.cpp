// `gpumeter check`, `record`, `forget`, `allocate`, `explain` and `bundle`: the commands that need the
// daemon's configuration, its state folder or its catalogues. `gpumeter` starts this program, with its own
// arguments.
#include <curl/curl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <exception>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "base/command_line.hpp"
#include "base/options.hpp"
#include "base/paths.hpp"
#include "base/program.hpp"
#include "base/text.hpp"
#include "collectors/attribution/allocation/part.hpp"
#include "collectors/builtin.hpp"
#include "daemon/cli/actions.hpp"
#include "daemon/cli/options.hpp"
#include "programs/commands/commands.hpp"

namespace gpumeter {
namespace {

constexpr std::string_view kGroup = "Options";

int complain(const std::string& sentence) {
  std::fprintf(stderr, "gpumeter: %s\n", sentence.c_str());
  std::fflush(nullptr);
  return 1;
}

/// The command line after it was parsed; `words` do not have the command's own name.
struct Given {
  const CommandLine& line;
  std::vector<std::string> words;
  const Options& options;
  const Clock& clock;
};

const Flag kFailOn = {"--fail-on",
                      "STATE",
                      "failed: ignore degraded GPUs; degraded: exit 2 for them too",
                      kGroup,
                      {"failed", "degraded"}};
const Flag kUrl = {"--url", "URL", "Ask this daemon (default: the first web.listen)", kGroup};
const Flag kCaFile = {"--ca-file", "FILE", "Trust these authorities (PEM) for https (default: the system's)",
                      kGroup};
const Flag kLoginFile = {"--login-file", "FILE", "A user for the daemon: USER:PASSWORD in the first line",
                         kGroup};

std::vector<Flag> with_daemon(std::vector<Flag> flags) {
  flags.insert(flags.end(), {kUrl, kCaFile, kLoginFile});
  return flags;
}

DaemonToAsk daemon_of(const CommandLine& line) {
  return {line.value(kUrl.name), line.value(kCaFile.name), line.value(kLoginFile.name)};
}

std::variant<int, Exit> run_check(const Given& given) {
  CheckOptions check;
  check.json = given.line.is_on("--json");
  check.suite = given.line.value("--suite");
  check.daemon = daemon_of(given.line);
  if (given.line.value("--fail-on") == "failed") check.fail_on = FailOn::failed;
  if (given.line.value("--fail-on") == "degraded") check.fail_on = FailOn::degraded;
  if (const std::string gpu = given.line.value("--gpu"); !gpu.empty()) {
    check.gpu = parse_number<unsigned>(gpu);
    if (!check.gpu)
      return usage_error("--gpu must be the index of a GPU, not " +
                         gpumeter::quoted(options::printable(gpu)));
  }
  return with_config(given.options, given.clock, [&check](const config::Config* config) {
    return config != nullptr ? gpumeter::check(check, *config)
                             : check_is_unknown(check, "the configuration is wrong");
  });
}

std::variant<int, Exit> run_record(const Given& given) {
  if (given.words.empty()) return usage_error("record requires the name of a new file");
  RecordOptions record{daemon_of(given.line), given.words.front(), std::nullopt};
  if (const std::string length = given.line.value("--for"); !length.empty()) {
    record.length = parse_duration(length);
    if (!record.length) {
      return usage_error("--for must be " + std::string(kDurationForm) + ", not " +
                         gpumeter::quoted(options::printable(length)));
    }
  }
  Result<Signals> signals = Signals::block();  // before a thread of the names' check
  if (!signals) return complain(signals.error().message());
  return with_config(given.options, given.clock, [&](const config::Config* config) {
    if (config == nullptr) return 2;
    const Result<std::string> done = gpumeter::record(record, *config, *signals);
    return done ? print(*done) : complain(options::printable(done.error().message()));
  });
}

std::variant<int, Exit> run_forget(const Given& given) {
  if (given.words.empty()) return usage_error("forget requires the uuid of a device");
  const std::string& uuid = given.words.front();
  return with_config(given.options, given.clock, [&](const config::Config* config) {
    if (config == nullptr) return 2;
    const Result<Done> done = forget_device_in_time(config->of<Paths>().state, uuid, given.clock);
    if (done) return print(uuid + " is forgotten\n");
    complain("not forgotten: " + done.error().message());
    _exit(1);  // a call to the folder may hang
  });
}

std::vector<std::string> kinds() {
  std::vector<std::string> names;
  for (const auto& [kind, name] : cgroup::kKindNames) {
    if (kind != cgroup::Kind::unattributed) names.emplace_back(name);
  }
  return names;
}

std::variant<int, Exit> run_allocate(const Given& given) {
  using Verb = AllocateOptions::Verb;
  AllocateOptions wanted;
  const std::string verb = given.words.empty() ? "list" : given.words.front();
  if (verb == "set") wanted.verb = Verb::set;
  if (verb == "clear") wanted.verb = Verb::clear;
  if (verb != "set" && verb != "clear" && verb != "list")
    return usage_error("VERB: must be set, clear or list, not " + gpumeter::quoted(options::printable(verb)));
  if (given.words.size() > 1) wanted.workload.name = given.words[1];
  for (const std::string& list : given.line.values("--gpu")) {
    for (std::string_view rest = list; !rest.empty();) wanted.gpus.emplace_back(take_until(rest, ','));
  }
  wanted.user = given.line.value("--user");
  wanted.workload.kind = cgroup::kKindNames.find(given.line.value("--kind")).value_or(cgroup::Kind::other);
  if (wanted.verb != Verb::list && wanted.workload.name.empty())
    return usage_error("allocate " + verb + " requires the name of a workload");
  if (wanted.verb == Verb::set && wanted.gpus.empty()) return usage_error("allocate set requires --gpu");
  return with_config(given.options, given.clock, [&wanted](const config::Config* config) {
    if (config == nullptr) return 2;
    const Result<std::string> done =
        allocate(wanted, config->of<allocation::Settings>().manual, config->of<Paths>().state);
    return done ? print(*done) : complain(done.error().message());
  });
}

std::variant<int, Exit> run_explain(const Given& given) {
  ExplainOptions wanted{.json = given.line.is_on("--json")};
  if (!given.words.empty()) wanted.kind = given.words.front();
  if (given.words.size() > 1) wanted.word = given.words[1];
  const bool is_kind =
      wanted.kind.empty() || wanted.kind == "xid" || wanted.kind == "sxid" || wanted.kind == "reason";
  if (!is_kind)
    return usage_error("KIND: must be xid, sxid or reason, not " +
                       gpumeter::quoted(options::printable(wanted.kind)));
  if (wanted.word.empty() && !wanted.kind.empty())
    return usage_error("explain " + wanted.kind + " requires a " +
                       (wanted.kind == "reason" ? "reason" : "code"));
  if (wanted.kind.empty() && isatty(STDIN_FILENO) != 0)
    return usage_error("explain reads a log on standard input: journalctl -k | gpumeter explain");
  const Result<Done> done = explain(wanted);
  return done ? 0 : complain(options::printable(done.error().message()));
}

std::variant<int, Exit> run_bundle(const Given& given) {
  BundleOptions wanted;
  if (!given.words.empty()) wanted.file = given.words.front();
  wanted.log = given.line.value("--log");
  wanted.daemon = daemon_of(given.line);
  wanted.lists_only = given.line.is_on("--list");
  return with_config(given.options, given.clock, [&](const config::Config* config) -> int {
    const Result<Done> done = make_bundle(wanted, config, given.clock);
    const int code = done ? 0 : complain(done.error().message());
    std::fflush(nullptr);
    _exit(code);  // a driver may hang
  });
}

/// A command: its words, and what they mean.
struct Command {
  std::string_view name;
  std::size_t most_words;   ///< after its name
  std::string_view help;    ///< its purpose, its usage, and its words
  std::vector<Flag> flags;  ///< in addition to those of the configuration
  std::variant<int, Exit> (*run)(const Given& given);
};

std::array<Command, 6> commands() {
  return {
      {{"check", 0,
        "Report failed and degraded GPUs as monitoring plugins do (check --help)\n"
        "Usage: gpumeter check [OPTIONS]\n",
        with_daemon({{"--json", "", "Print the answer of /api/v1/health", kGroup},
                     {"--gpu", "N", "Check this GPU only, by its index", kGroup},
                     kFailOn,
                     {"--suite", "NAME", "Only the conditions that cover another program's checks", kGroup,
                      suite_names()}}),
        run_check},
       {"record", 1,
        "Record the pages of a daemon, one a second, for --replay (record --help)\n"
        "Usage: gpumeter record [OPTIONS] [FILE]\n"
        "\nPositionals:\n"
        "  FILE TEXT                         The recording, which must not exist yet\n",
        with_daemon({{"--for", "DURATION", "How long, such as 10m (default: until Ctrl-C)", kGroup}}),
        run_record},
       {"forget",
        1,
        "Forget a missing GPU, so that its gpu_up 0 ends (forget UUID)\n"
        "Usage: gpumeter forget [OPTIONS] [UUID]\n"
        "\nPositionals:\n"
        "  UUID TEXT                         The GPU, as in the label uuid\n",
        {},
        run_forget},
       {"allocate",
        2,
        "Record by hand who was given a GPU (allocate --help)\n"
        "Usage: gpumeter allocate [OPTIONS] [VERB] [WORKLOAD]\n"
        "\nPositionals:\n"
        "  VERB TEXT                         set, clear, or list (the default)\n"
        "  WORKLOAD TEXT                     Name of the workload\n",
        {{"--gpu", "GPU", "Its GPU: index, uuid or PCI address; repeatable, or a list with commas", kGroup},
         {"--user", "USER", "Who is responsible for it", kGroup},
         {"--kind", "KIND", "Label kind (default other)", kGroup, kinds()}},
        run_allocate},
       {"explain",
        2,
        "Explain the lines of a kernel log, a code or a reason (explain --help)\n"
        "Usage: gpumeter explain [OPTIONS] [KIND] [CODE]\n"
        "\nPositionals:\n"
        "  KIND TEXT                         xid, sxid or reason; without it, the log on standard input\n"
        "  CODE TEXT                         The code, or the reason as in gpu_health_reason\n",
        {{"--json", "", "Print one object for each event", kGroup}},
        run_explain},
       {"bundle", 1,
        "Write a bug report: versions, log, pages, readings of each device, redacted (bundle --help)\n"
        "Usage: gpumeter bundle [OPTIONS] [FILE]\n"
        "\nPositionals:\n"
        "  FILE TEXT                         The archive (default: gpumeter-bundle-TIME.tar.gz)\n",
        with_daemon({{"--list", "", "Print what the archive would contain, and write nothing", kGroup},
                     {"--log", "FILE", "The daemon's log (default: the journal)", kGroup}}),
        run_bundle}}};
}

std::string help_text(const Command& command) {
  std::vector<Flag> flags = {{"--help", "", "Print this help", kGroup}};
  flags.insert(flags.end(), command.flags.begin(), command.flags.end());
  return std::string(command.help) + help_of(flags);
}

/// Flags of the configuration may be before and after the command.
std::variant<int, Exit> run(const Command& command, std::span<const char* const> arguments) {
  std::vector<Flag> flags = flags_of(builtin_collectors());
  flags.insert(flags.begin(), command.flags.begin(), command.flags.end());
  const CommandLine line(flags, arguments);
  if (line.is_on("--help")) return Exit{0, help_text(command)};
  std::variant<Options, Exit> parsed = options_of(line, builtin_collectors());
  if (auto* const exit = std::get_if<Exit>(&parsed)) return *exit;
  auto& options = std::get<Options>(parsed);
  options.action = Action::command;
  std::vector<std::string> words = line.words();
  if (const auto name = std::ranges::find(words, command.name); name != words.end()) words.erase(name);
  if (words.size() > command.most_words) return unexpected(words[command.most_words]);
  const SystemClock clock;
  return command.run({line, std::move(words), options, clock});
}

std::variant<int, Exit> run(std::span<const char* const> arguments, std::optional<std::string_view>& name) {
  const std::array<Command, 6> all = commands();
  for (const std::string_view word : arguments) {
    const auto* const command = std::ranges::find(all, word, &Command::name);
    if (command == all.end()) continue;
    name = command->name;
    return run(*command, arguments);
  }
  const auto parsed =
      options_of(CommandLine(flags_of(builtin_collectors()), arguments), builtin_collectors());
  if (const auto* const exit = std::get_if<Exit>(&parsed)) return *exit;
  return usage_error(
      "gpumeter-commands requires one of the commands check, record, forget, allocate, explain and bundle");
}

int run(std::span<const char* const> arguments) {
  std::optional<std::string_view> name;
  const std::variant<int, Exit> result = run(arguments, name);
  const auto* const exit = std::get_if<Exit>(&result);
  if (exit == nullptr) return std::get<int>(result);
  const int code = print(*exit);
  // For monitoring, exit 2 means that a GPU has failed; 3 is "unknown".
  return code != 0 && name == "check" ? 3 : code;
}

}  // namespace
}  // namespace gpumeter

int main(int argc, char** argv) {
  gpumeter::open_closed_streams();
  curl_global_init(CURL_GLOBAL_DEFAULT);
  try {
    return gpumeter::run(std::span(argv, static_cast<std::size_t>(argc)).subspan(1));
  } catch (const std::exception& problem) {
    std::fprintf(stderr, "gpumeter: %s\n", problem.what());
    return 1;
  }
}
