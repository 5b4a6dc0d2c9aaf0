#include "daemon/cli/check.hpp"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

#include "base/json/scalars.hpp"
#include "base/standard_streams.hpp"
#include "daemon/cli/check_text.hpp"
#include "daemon/cli/once.hpp"
#include "exporter/client/http_get.hpp"
#include "exporter/health/judge.hpp"
#include "exporter/http/settings.hpp"
#include "exporter/json/api.hpp"

namespace gpumeter {
namespace {

// The daemon answers from memory.
constexpr auto kPatience = std::chrono::seconds(5);
// A daemon without any GPU answers after this time.
constexpr auto kFirstJudgement = std::chrono::seconds(3);
constexpr auto kBetweenQuestions = std::chrono::milliseconds(250);
// An answer for 4096 GPUs with some findings each has less.
constexpr std::size_t kMostBytes = std::size_t{8} << 20;
// For own passes: a driver that initialises 8 GPUs first may need 15 s.
constexpr unsigned kWholeSeconds = 30;

constexpr std::string_view kTimeOver =
    "GPU UNKNOWN - no result within 30 s: a driver or the network does not answer\n";

// Calls only functions that are allowed in a signal handler. Exit 3 is "unknown".
extern "C" void end_without_result(int) {
  [[maybe_unused]] const ssize_t ignored = write(STDOUT_FILENO, kTimeOver.data(), kTimeOver.size());
  _exit(3);
}

void limit_time() {
  struct sigaction action {};
  action.sa_handler = end_without_result;
  sigaction(SIGALRM, &action, nullptr);
  alarm(kWholeSeconds);
}

health::Report judge_here(const config::Config& config) {
  health::Report report;
  sample_once(config, 2, [&report](const Store& store) {
    report = health::Judge(health::Judge::History::none).judge(store, SystemClock().monotonic());
  });
  return report;
}

std::string no_user(const HttpAccess& access) {
  if (access.login.user.empty()) return " requires a user (web.config_file): check --login-file";
  return " refuses the user " + access.login.user;
}

/// nullopt: no daemon listens there.
Result<std::optional<health::Report>> ask_daemon(const std::string& url, const HttpAccess& access) {
  const Result<HttpAddress> address = parse_http_address(url);
  if (!address) return address.error();
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  const Result<HttpAnswer> answer = http_get(*address, "/api/v1/health", deadline, kMostBytes, access);
  if (!answer) return answer.error().with(url);
  if (answer->is_refused) return std::optional<health::Report>();
  if (answer->status == 404) return Error(url + " has no /api/v1/health; is it an older gpumeter?");
  if (answer->status == 401) return Error(url + no_user(access));
  if (answer->status != 200) return Error(url + " answers with status " + std::to_string(answer->status));
  Result<health::Report> report = parse_health_json(answer->body, SystemClock().monotonic());
  if (!report) return report.error().with(url);
  return std::optional(*std::move(report));
}

/// Waits for the first judgement of a daemon that has just started, as after a restart of the service.
Result<std::optional<health::Report>> ask_patiently(const std::string& url, const HttpAccess& access) {
  const auto until = std::chrono::steady_clock::now() + kFirstJudgement;
  while (true) {
    Result<std::optional<health::Report>> asked = ask_daemon(url, access);
    const bool is_judged = !asked || !*asked || !(*asked)->devices.empty() || !(*asked)->machine.empty();
    if (is_judged || std::chrono::steady_clock::now() >= until) return asked;
    std::this_thread::sleep_for(kBetweenQuestions);
  }
}

Result<HttpAccess> access_of(const CheckOptions& options) {
  if (options.login_file.empty()) return HttpAccess{options.ca_file, {}};
  Result<Login> login = read_login(options.login_file);
  if (!login) return login.error();
  return HttpAccess{options.ca_file, *std::move(login)};
}

Result<health::Report> report_of(const CheckOptions& options, const config::Config& config) {
  const std::string url = options.url.empty() ? config.of<HttpSettings>().listen.front() : options.url;
  const Result<HttpAccess> access = access_of(options);
  if (!access) return access.error();
  Result<std::optional<health::Report>> asked = ask_patiently(url, *access);
  if (!asked) return asked.error();
  if (*asked) return **std::move(asked);
  if (!options.url.empty()) return Error(url + ": no daemon listens there");
  return judge_here(config);
}

/// Keeps one GPU, and nothing that belongs to the machine.
bool keep_only(unsigned gpu, health::Report& report) {
  std::erase_if(report.devices, [name = std::to_string(gpu)](const auto& each) { return each.gpu != name; });
  report.machine.clear();
  report.state = report.devices.empty() ? health::State::unknown : report.devices.front().state;
  return !report.devices.empty();
}

}  // namespace

int check_is_unknown(const CheckOptions& options, const std::string& reason) {
  const std::string json = "{\"state\":\"unknown\",\"error\":" + json_quoted(reason) + "}\n";
  print(options.json ? json : unknown_text(reason));
  return static_cast<int>(CheckStatus::unknown);
}

int check(const CheckOptions& options, const config::Config& config) {
  limit_time();
  Result<health::Report> report = report_of(options, config);
  if (!report) return check_is_unknown(options, report.error().message());
  if (options.gpu && !keep_only(*options.gpu, *report)) {
    return check_is_unknown(options, "there is no GPU " + std::to_string(*options.gpu));
  }
  const CheckStatus status = check_status(*report, options.fail_on);
  const int printed = print(options.json ? health_json(*report, report->at) : check_text(*report, status));
  return printed == 0 ? static_cast<int>(status) : static_cast<int>(CheckStatus::unknown);
}

}  // namespace gpumeter
