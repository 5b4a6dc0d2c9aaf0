#include "daemon/cli/options.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "base/build_info.hpp"
#include "base/log.hpp"
#include "daemon/setup.hpp"
#include "exporter/http/settings.hpp"

namespace gpumeter {
namespace {

using options::Enabled;
using Kind = CollectorOption::Kind;

constexpr CollectorOption kOptions[] = {{"devices", Kind::integer, "2", "How many."},
                                        {"events", Kind::list, "", "What happens."}};
constexpr CollectorEntry kCollectors[] = {
    {"amd", true, 0, {}, nullptr, nullptr, nullptr},
    {"simulated", false, 0, kOptions, nullptr, nullptr, nullptr, 1024},
};

config::Schema known_keys() { return schema_of(kCollectors); }

std::variant<Options, Exit> parsed(std::vector<const char*> arguments,
                                   std::span<const CollectorEntry> known = kCollectors) {
  arguments.insert(arguments.begin(), "gpumeter");
  return parse_options(static_cast<int>(arguments.size()), arguments.data(), known);
}

Options options(const std::vector<const char*>& arguments) {
  auto result = parsed(arguments);
  if (const auto* exit = std::get_if<Exit>(&result)) {
    ADD_FAILURE() << exit->text;
    return {};
  }
  return std::get<Options>(std::move(result));
}

/// "code: text" if the daemon exits before it starts.
std::string end_of(const std::vector<const char*>& arguments,
                   std::span<const CollectorEntry> known = kCollectors) {
  const auto result = parsed(arguments, known);
  const auto* exit = std::get_if<Exit>(&result);
  return exit == nullptr ? "runs" : std::to_string(exit->code) + ": " + exit->text;
}

std::string refusal(const std::string& sentence) {
  return "2: gpumeter: " + sentence + "\nTry 'gpumeter --help'.\n";
}

config::Config applied(const std::vector<const char*>& arguments) {
  config::Config config = config::defaults(known_keys());
  apply(options(arguments), known_keys(), config);
  return config;
}

TEST(Options, ChangeNothingWhereThereAreNone) {
  EXPECT_EQ(applied({}), config::defaults(known_keys()));
  const Options none = options({});
  EXPECT_EQ(none.action, Action::run);
  EXPECT_EQ(none.config_file, "");
  EXPECT_FALSE(none.systemd_socket);
}

TEST(Options, GoBeforeTheFile) {
  config::Config expected = config::defaults(known_keys());
  expected.edit<HttpSettings>().listen = {":1", "[::1]:2"};
  expected.edit<HttpSettings>().telemetry_path = "/m";
  expected.edit<Paths>() = {"/a", "/b", "/c", "/d"};
  expected.edit<Logging>() = {LogLevel::debug, LogFormat::json};
  EXPECT_EQ(applied({"--web.listen-address=:1", "--web.listen-address", "[::1]:2", "--web.telemetry-path=/m",
                     "--path.sysfs=/a", "--path.procfs=/b", "--path.state=/c", "--path.api=/d",
                     "--log.level=debug", "--log.format=json"}),
            expected);
}

TEST(Options, TakeTheLastOfWhatCanBeThereOnce) {
  EXPECT_EQ(applied({"--log.level=warn", "--log.level=debug"}).of<Logging>().level, LogLevel::debug);
  EXPECT_EQ(applied({"--simulate=2", "--simulate=3"}).collectors["simulated"].options["devices"],
            std::vector<std::string>{"3"});
  EXPECT_EQ(applied({"--collector.amd", "--no-collector.amd"}).collectors["amd"].enabled, Enabled::off);
  EXPECT_EQ(applied({"--no-collector.amd", "--collector.amd"}).collectors["amd"].enabled, Enabled::on);
}

TEST(Options, TakeRelativePathsFromWhereTheyAreGiven) {
  EXPECT_EQ(applied({"--path.sysfs=tree/sys"}).of<Paths>().sysfs,
            (std::filesystem::current_path() / "tree/sys").string());
}

TEST(Options, SwitchCollectors) {
  config::Config expected = config::defaults(known_keys());
  expected.collectors["amd"].enabled = Enabled::off;
  expected.collectors["simulated"].enabled = Enabled::on;
  EXPECT_EQ(applied({"--no-collector.amd", "--collector.simulated"}), expected);
  EXPECT_EQ(applied({"--collector.disable-defaults", "--collector.simulated"}), expected);
}

TEST(Options, LeaveACollectorOnThatTheFileSwitchedOn) {
  config::Config config = config::defaults(known_keys());
  config.collectors["simulated"].enabled = Enabled::on;
  apply(options({"--collector.disable-defaults"}), known_keys(), config);
  EXPECT_EQ(config.collectors["amd"].enabled, Enabled::off);
  EXPECT_EQ(config.collectors["simulated"].enabled, Enabled::on);
}

TEST(Options, SimulateDevicesAndNoOthers) {
  config::Config expected = config::defaults(known_keys());
  expected.collectors["amd"].enabled = Enabled::off;
  expected.collectors["simulated"] = {Enabled::on,
                                      {{"devices", {"4"}}, {"events", {"hang 1 after 5s", "b"}}}};
  EXPECT_EQ(applied({"--simulate=4", "--simulate-event", "hang 1 after 5s", "--simulate-event=b",
                     "--collector.amd"}),
            expected);
}

TEST(Options, SayWhatTheProcessIsFor) {
  EXPECT_EQ(options({"--check-config"}).action, Action::check_config);
  EXPECT_EQ(options({"--reload=4711"}).action, Action::reload);
  EXPECT_EQ(options({"--reload", "4711"}).argument, "4711");
  EXPECT_EQ(options({"--list-devices"}).action, Action::list_devices);
  EXPECT_EQ(options({"--print-metrics=text"}).action, Action::print_metrics);
  EXPECT_EQ(options({"--print-metrics=text"}).argument, "text");
  EXPECT_EQ(options({"--print-config=markdown"}).action, Action::print_config);
  EXPECT_EQ(options({"--print-config=markdown"}).argument, "markdown");
  EXPECT_TRUE(options({"--web.systemd-socket"}).systemd_socket);
}

TEST(Options, TakeOnePassOrTwoOnce) {
  for (const char* argument : {"--once", "--once=1"}) {
    const Options once = options({argument, "--log.level=error"});
    EXPECT_EQ(once.action, Action::once);
    EXPECT_NE(once.argument, "0") << argument;
  }
  EXPECT_EQ(options({"--once=0"}).argument, "0");
  EXPECT_EQ(options({"--once=0"}).action, Action::once);
}

TEST(Options, NameUnknownFlags) {
  EXPECT_EQ(end_of({"--web.listen-adress=:1"}),
            refusal("unknown flag --web.listen-adress; did you mean --web.listen-address?"));
  EXPECT_EQ(end_of({"--collector.nvidia"}), refusal("unknown flag --collector.nvidia"));
  EXPECT_EQ(end_of({"--no-collector.amb"}),
            refusal("unknown flag --no-collector.amb; did you mean --no-collector.amd?"));
  EXPECT_EQ(end_of({"-web.listen-address=:1"}),
            refusal("unknown flag -web.listen-address; did you mean --web.listen-address?"));
  EXPECT_EQ(end_of({"start"}),
            refusal("unexpected argument \"start\"; gpumeter accepts flags and the "
                    "commands forget, allocate, profile, check, record, explain, bundle, import and top"));
  EXPECT_EQ(
      end_of({"chek"}),
      refusal("unexpected argument \"chek\"; did you mean check?; gpumeter accepts flags and the commands "
              "forget, allocate, profile, check, record, explain, bundle, import and top"));
  EXPECT_EQ(end_of({"--web.listen-address", ":1", ":2"}),
            refusal("unexpected argument \":2\"; gpumeter accepts flags and the commands forget, allocate, "
                    "profile, check, record, explain, bundle, import and top"));
}

TEST(Options, NameBadValues) {
  EXPECT_EQ(end_of({"--log.level=loud"}),
            refusal("--log.level: must be debug, info, warn or error, not \"loud\""));
  EXPECT_EQ(
      end_of({"--web.listen-address=10478"}),
      refusal("--web.listen-address: must be host:port, such as localhost:10478, [::1]:10478 or :10478, "
              "unix:/path or vsock:CID:PORT, not \"10478\""));
  EXPECT_EQ(end_of({"--once", "--list-devices"}), refusal("--once and --list-devices cannot be combined"));
  EXPECT_EQ(end_of({"--simulate=2"}, std::span(kCollectors).first(1)),
            refusal("--simulate requires the simulated collector, which this gpumeter was built without"));
  EXPECT_EQ(end_of({"--simulate=0"}),
            refusal("--simulate: must be a whole number from 1 to 1024, not \"0\""));
  EXPECT_EQ(end_of({"--simulate=2x"}),
            refusal("--simulate: must be a whole number from 1 to 1024, not \"2x\""));
  EXPECT_EQ(end_of({"--simulate=1024"}), "runs");
  EXPECT_EQ(end_of({"--simulate=1025"}),
            refusal("--simulate: must be a whole number from 1 to 1024, not \"1025\""));
  EXPECT_EQ(end_of({"--simulate"}), refusal("--simulate requires a value"));
  EXPECT_EQ(end_of({"--log.level"}), refusal("--log.level requires a value"));
  EXPECT_EQ(end_of({"--log.level", "--once"}), refusal("--log.level requires a value"));
  EXPECT_EQ(end_of({"--collector.amd=x"}), refusal("--collector.amd: must be true or false, not \"x\""));
  EXPECT_EQ(end_of({"--once=2"}), refusal("--once: must be 0 or 1, not \"2\""));
  EXPECT_EQ(end_of({"--print-metrics=html"}),
            refusal("--print-metrics: must be markdown or text, not \"html\""));
}

TEST(Options, PrintTheVersionAsOtherExportersDo) {
  EXPECT_EQ(end_of({"--version"}), std::string("0: gpumeter, version ") + build::kVersion +
                                       " (branch: " + build::kBranch + ", revision: " + build::kRevision +
                                       ")\n  compiler:         " + build::kCompiler + "\n");
}

TEST(Options, PrintHelpForEveryFlag) {
  const std::string help = end_of({"-h"});
  EXPECT_EQ(help.substr(0, 3), "0: ");
  EXPECT_EQ(help, end_of({"--help"}));
  for (const char* flag : {"--config.file",
                           "--web.listen-address",
                           "--web.config.file",
                           "--web.systemd-socket",
                           "--web.telemetry-path",
                           "--collector.amd",
                           "--no-collector.amd",
                           "--collector.simulated",
                           "--collector.disable-defaults",
                           "--path.sysfs",
                           "--path.procfs",
                           "--path.state",
                           "--log.level",
                           "--log.format",
                           "--version",
                           "--check-config",
                           "--once",
                           "--simulate",
                           "--simulate-event",
                           "--list-devices",
                           "--print-metrics",
                           "--print-config",
                           "--help"}) {
    EXPECT_NE(help.find(flag), std::string::npos) << flag;
  }
  EXPECT_EQ(help.find('{'), std::string::npos) << help;
}

TEST(LoadConfig, AppliesFlagsToTheFileThatIsNamed) {
  const std::string file = testing::TempDir() + "gpumeter_options_" + std::to_string(getpid()) + ".yaml";
  std::ofstream(file) << "log: {level: warn, format: json}\n";
  const std::string flag = "--config.file=" + file;
  const auto loaded = load_config(options({flag.c_str(), "--log.level=debug"}), known_keys());
  std::filesystem::remove(file);
  config::Config expected = config::defaults(known_keys());
  expected.edit<Logging>() = {LogLevel::debug, LogFormat::json};
  EXPECT_TRUE(loaded.problems.empty());
  EXPECT_EQ(loaded.config, expected);
}

TEST(LoadConfig, WantsAFileThatIsNamedToExist) {
  const auto loaded = load_config(options({"--config.file=/none/g.yaml"}), known_keys());
  ASSERT_EQ(loaded.problems.size(), 1U);
  EXPECT_EQ(to_string(loaded.problems.front()), "/none/g.yaml: cannot be read: No such file or directory");
}

}  // namespace
}  // namespace gpumeter
