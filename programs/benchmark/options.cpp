#include "programs/benchmark/options.hpp"

#include <CLI/CLI.hpp>
#include <cstdlib>
#include <utility>

#include "base/duration.hpp"
#include "base/text.hpp"
#include "build_info.hpp"

namespace gpumeter::benchmark {
namespace {

constexpr std::chrono::milliseconds kShortest{1000};

Exit usage_error(const std::string& sentence) {
  return {2, "gpumeter-benchmark: " + sentence + "\nTry 'gpumeter-benchmark --help'.\n"};
}

/// systemd names the folder of StateDirectory= in the environment.
std::string default_history() {
  const char* const folder = std::getenv("STATE_DIRECTORY");
  return folder == nullptr ? "/var/lib/gpumeter-benchmark" : folder;
}

/// The texts of the flags that need a check.
struct Texts {
  std::string url = "http://localhost:10478";
  std::string time = "17s";
  std::string backend = "all";
  std::string login_file;
  bool no_send = false;
};

void add_flags(CLI::App& app, Options& options, Texts& texts) {
  app.set_help_flag("-h,--help", "Print this help");
  app.add_option("--gpu", options.gpus,
                 "Measure this GPU: its number, uuid or PCI address; may be repeated (default: all)")
      ->type_name("GPU");
  app.add_flag("--cpu", options.cpu,
               "Measure the processor by OpenCL (PoCL) instead, to try out the program");
  app.add_option("--report-as", options.report_as,
                 "With --cpu: report the result under the uuid of this GPU, for tests")
      ->type_name("UUID");
  app.add_option("--backend", texts.backend, "opencl, blas (cuBLAS, rocBLAS) or all (default all)")
      ->type_name("WORD");
  app.add_option("--time", texts.time, "Time of the tests of one GPU, 1s to 17s (default 17s)")
      ->type_name("TIME");
  app.add_option("--url", texts.url, "Address of the daemon (default http://localhost:10478)")
      ->type_name("URL");
  app.add_option("--ca-file", options.access.ca_file,
                 "Trust these authorities (PEM) for https (default: the system's)")
      ->type_name("FILE");
  app.add_option("--login-file", texts.login_file, "A user for the daemon: USER:PASSWORD in the first line")
      ->type_name("FILE");
  app.add_option("--jobs-socket", options.jobs_socket,
                 "The daemon's socket for results (default /run/gpumeter/jobs.sock)")
      ->type_name("FILE");
  app.add_flag("--no-send", texts.no_send, "Send no results to the daemon");
  app.add_option("--history", options.history,
                 "Folder of earlier results (default /var/lib/gpumeter-benchmark)")
      ->type_name("FOLDER");
  app.add_option("--lock", options.lock, "The lock of all benchmarks (default /run/gpumeter/benchmark.lock)")
      ->type_name("FILE");
  app.add_option("--library-path", options.library_paths,
                 "Search the vendor's libraries in this folder first; may be repeated")
      ->type_name("FOLDER");
  app.add_flag("--json", options.json, "Print JSON instead of a table");
}

std::variant<Options, Exit> checked(Options options, const Texts& texts) {
  const Result<client::Address> address = client::parse_address(texts.url);
  if (!address)
    return usage_error("--url: " + gpumeter::quoted(texts.url) + ": " + address.error().message());
  options.address = *address;
  if (!texts.login_file.empty()) {
    Result<Login> login = read_login(texts.login_file);
    if (!login) return usage_error("--login-file: " + login.error().message());
    options.access.login = *std::move(login);
  }
  const auto time = parse_duration(texts.time);
  if (!time || *time < kShortest || *time > kLongestTests)
    return usage_error("--time: must be 1s to 17s, not " + gpumeter::quoted(texts.time));
  options.time = *time;
  if (texts.backend != "all" && texts.backend != "opencl" && texts.backend != "blas")
    return usage_error("--backend: must be opencl, blas or all, not " + gpumeter::quoted(texts.backend));
  options.opencl = texts.backend != "blas";
  options.blas = texts.backend != "opencl";
  if (!options.report_as.empty() && !options.cpu) return usage_error("--report-as: only with --cpu");
  if (options.cpu && !options.gpus.empty()) return usage_error("--cpu: not with --gpu");
  if (texts.no_send) options.jobs_socket.clear();
  return options;
}

}  // namespace

std::variant<Options, Exit> parse_options(int argc, const char* const* argv) {
  CLI::App app("Measures the GPUs that nobody uses, and reports the results to gpumeter.",
               "gpumeter-benchmark");
  Options options;
  options.jobs_socket = "/run/gpumeter/jobs.sock";
  options.lock = "/run/gpumeter/benchmark.lock";
  options.history = default_history();
  Texts texts;
  add_flags(app, options, texts);
  bool version = false;
  app.add_flag("--version", version, "Print the version");
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    return Exit{0, app.help()};
  } catch (const CLI::ParseError& error) {
    return usage_error(error.what());
  }
  if (version)
    return Exit{0, std::string("gpumeter-benchmark, version ") + build::kVersion +
                       " (revision: " + build::kRevision + ")\n"};
  return checked(std::move(options), texts);
}

}  // namespace gpumeter::benchmark
