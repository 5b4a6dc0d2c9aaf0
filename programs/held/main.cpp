#include <getopt.h>

#include <array>
#include <chrono>
#include <cstdio>
#include <exception>
#include <string>
#include <string_view>
#include <variant>

#include "base/build_info.hpp"
#include "base/text.hpp"
#include "programs/held/pass.hpp"

namespace gpumeter::held {
namespace {

constexpr const char* kHelp = R"(Usage: gpumeter-held [OPTION...]
Records the GPUs that the control groups of Slurm jobs permit, for gpumeter.

  --managed=NODE[,NODE...]  GPUs that Slurm is known to give: nvidia0, dri/renderD128, or nvidia and dri for all
  --settle=SECONDS          Age of a job before its group is entered (default 10)
  --folder=FOLDER           Where the records go (default /run/gpumeter-held)
  --path.dev=FOLDER         Where the device nodes are (default /dev)
  --path.procfs=FOLDER      Where procfs is mounted (default /proc)
  --path.sysfs=FOLDER       Where sysfs is mounted (default /sys)
  --version                 Print the version
  --help                    Print this help

The exit status is 0, 1 if the folder cannot be used or a group could not be entered, or 2 for a wrong option.
)";

enum Option : int { kManaged = 1, kSettle, kVersion, kHelpOption, kFolder, kDev, kProcfs, kSysfs };

constexpr std::array<option, 9> kOptions = {{{"managed", required_argument, nullptr, kManaged},
                                             {"settle", required_argument, nullptr, kSettle},
                                             {"folder", required_argument, nullptr, kFolder},
                                             {"path.dev", required_argument, nullptr, kDev},
                                             {"path.procfs", required_argument, nullptr, kProcfs},
                                             {"path.sysfs", required_argument, nullptr, kSysfs},
                                             {"version", no_argument, nullptr, kVersion},
                                             {"help", no_argument, nullptr, kHelpOption},
                                             {nullptr, 0, nullptr, 0}}};

/// The program ends with this text, on stdout if the code is 0.
struct Exit {
  int code;  ///< 0, or 2 for a wrong command line
  std::string text;
};

Exit usage_error(const std::string& sentence) {
  return {2, "gpumeter-held: " + sentence + "\nTry 'gpumeter-held --help'.\n"};
}

bool is_node(std::string_view name) {
  for (const std::string_view prefix : {"nvidia", "dri/renderD"}) {
    if (name.starts_with(prefix) && parse_number<unsigned>(name.substr(prefix.size()))) return true;
  }
  return name == "nvidia" || name == "dri";
}

/// Returns the reason why the value is wrong; empty if it is right.
std::string take_managed(std::string_view list, Settings& settings) {
  while (!list.empty()) {
    const std::string_view name = take_until(list, ',');
    if (!is_node(name)) {
      return "--managed: " + gpumeter::quoted(name) + " must be nvidia, dri, nvidiaN or dri/renderDN";
    }
    settings.managed.emplace(name);
  }
  return {};
}

std::string take_settle(std::string_view text, Settings& settings) {
  constexpr unsigned kMost = 3600;
  const auto seconds = parse_number<unsigned>(text);
  if (!seconds || *seconds > kMost) {
    return "--settle must be a number of seconds from 0 to 3600, not " + gpumeter::quoted(text);
  }
  settings.settle = std::chrono::seconds(*seconds);
  return {};
}

std::string take(int option, const char* value, Settings& settings) {
  std::string* const folders[] = {&settings.folder, &settings.roots.dev, &settings.roots.procfs,
                                  &settings.roots.sysfs};
  if (option == kManaged) return take_managed(value, settings);
  if (option == kSettle) return take_settle(value, settings);
  *folders[option - kFolder] = value;
  return {};
}

std::variant<Settings, Exit> parse_options(int argc, char* const* argv) {
  Settings settings;
  opterr = 0;
  for (int found = 0; (found = getopt_long(argc, argv, "", kOptions.data(), nullptr)) != -1;) {
    if (found == kHelpOption) return Exit{0, kHelp};
    if (found == kVersion) return Exit{0, build::version_text("gpumeter-held")};
    if (found == '?')
      return usage_error("unknown option, or an option without its value: " + std::string(argv[optind - 1]));
    if (const std::string wrong = take(found, optarg, settings); !wrong.empty()) return usage_error(wrong);
  }
  if (optind < argc) return usage_error("unexpected word " + gpumeter::quoted(argv[optind]));
  return settings;
}

int run(const Settings& settings) {
  const Result<Outcome> outcome = pass(
      settings, ask,
      std::chrono::duration_cast<std::chrono::seconds>(std::chrono::system_clock::now().time_since_epoch()));
  if (!outcome) {
    std::fprintf(stderr, "gpumeter-held: %s\n", outcome.error().message().c_str());
    return 1;
  }
  for (const std::string& failure : outcome->failures) {
    std::fprintf(stderr, "gpumeter-held: %s\n", failure.c_str());
  }
  if (outcome->entered > 0) {
    std::printf("%zu jobs, %zu control groups entered\n", outcome->jobs, outcome->entered);
  }
  return outcome->failures.empty() ? 0 : 1;
}

}  // namespace
}  // namespace gpumeter::held

int main(int argc, char** argv) {
  using namespace gpumeter::held;
  try {
    const auto parsed = parse_options(argc, argv);
    if (const auto* exit = std::get_if<Exit>(&parsed)) {
      std::fputs(exit->text.c_str(), exit->code == 0 ? stdout : stderr);
      return exit->code;
    }
    return run(std::get<Settings>(parsed));
  } catch (const std::exception& problem) {
    std::fprintf(stderr, "gpumeter-held: %s\n", problem.what());
    return 1;
  }
}
