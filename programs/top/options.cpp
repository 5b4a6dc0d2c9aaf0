#include "programs/top/options.hpp"

#include <CLI/CLI.hpp>
#include <chrono>
#include <optional>
#include <utility>

#include "base/duration.hpp"
#include "base/text.hpp"
#include "build_info.hpp"
#include "programs/top/layout.hpp"

namespace gpumeter::top {
namespace {

constexpr Duration kShortest = std::chrono::milliseconds(100);
constexpr Duration kLongest = std::chrono::hours(1);

Exit usage_error(const std::string& sentence) {
  return {2, "gpumeter-top: " + printable(sentence, Charset::ascii) + "\nTry 'gpumeter-top --help'.\n"};
}

std::string sort_names() {
  std::string names;
  for (const auto& [sort, name] : kSortNames) names += (names.empty() ? "" : ", ") + std::string(name);
  return names;
}

/// "2s", or "2" for seconds, as other programs of this kind have it.
std::optional<Duration> parse_interval(const std::string& text) {
  const bool is_number = parse_number<double>(text).has_value();
  const std::optional<Duration> interval = parse_duration(is_number ? text + "s" : text);
  return interval && *interval >= kShortest && *interval <= kLongest ? interval : std::nullopt;
}

/// The texts of the flags.
struct Texts {
  std::string url = "http://localhost:10478";
  std::string interval = "1s";
  std::string sort = "state";
  std::string ca_file;
  std::string login_file;
};

std::variant<Options, Exit> checked(const Texts& texts, bool once) {
  Options options;
  options.once = once;
  const Result<client::Address> address = client::parse_address(texts.url);
  if (!address)
    return usage_error("--url: " + gpumeter::quoted(texts.url) + ": " + address.error().message());
  options.address = *address;
  options.access.ca_file = texts.ca_file;
  if (!texts.login_file.empty()) {
    Result<Login> login = read_login(texts.login_file);
    if (!login) return usage_error("--login-file: " + login.error().message());
    options.access.login = *std::move(login);
  }
  const auto interval = parse_interval(texts.interval);
  if (!interval)
    return usage_error("--interval: must be 100ms to 1h, such as 2s, not " +
                       gpumeter::quoted(texts.interval));
  options.interval = *interval;
  const auto sort = kSortNames.find(texts.sort);
  if (!sort)
    return usage_error("--sort: must be one of " + sort_names() + ", not " + gpumeter::quoted(texts.sort));
  options.sort = *sort;
  return options;
}

}  // namespace

std::variant<Options, Exit> parse_options(int argc, const char* const* argv) {
  CLI::App app("Shows the GPUs and jobs of a machine in the terminal, from its gpumeter.", "gpumeter-top");
  Texts texts;
  app.set_help_flag("-h,--help", "Print this help");
  app.add_option("--url", texts.url,
                 "Address of the daemon, URL, HOST[:PORT] or unix:/PATH (default http://localhost:10478)")
      ->type_name("URL");
  app.add_option("--ca-file", texts.ca_file,
                 "Trust these authorities (PEM) for https (default: the system's)")
      ->type_name("FILE");
  app.add_option("--login-file", texts.login_file, "A user for the daemon: USER:PASSWORD in the first line")
      ->type_name("FILE");
  app.add_option("--interval", texts.interval, "Time between two refreshes (default 1s)")->type_name("TIME");
  app.add_option("--sort", texts.sort,
                 "Order of the GPUs: " + sort_names() + " (default state, the worst first)")
      ->type_name("WORD");
  bool once = false;
  bool version = false;
  app.add_flag("--once", once, "Print one table and exit; the default if stdout is no terminal");
  app.add_flag("--version", version, "Print the version");
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    return Exit{0, app.help()};
  } catch (const CLI::ParseError& error) {
    return usage_error(error.what());
  }
  if (version)
    return Exit{0, std::string("gpumeter-top, version ") + build::kVersion +
                       " (revision: " + build::kRevision + ")\n"};
  return checked(texts, once);
}

}  // namespace gpumeter::top
