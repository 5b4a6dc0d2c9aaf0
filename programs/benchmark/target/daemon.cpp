#include "programs/benchmark/target/daemon.hpp"

#include <string>
#include <utility>

namespace gpumeter::benchmark {
namespace {

// The daemon answers from memory. While a benchmark runs, a process is noticed between two answers.
constexpr std::chrono::milliseconds kDeadline{250};
constexpr std::size_t kMostBytes = std::size_t{16} << 20U;
constexpr unsigned kOk = 200;

}  // namespace

Result<std::string> Daemon::body(const char* path) const {
  Result<HttpAnswer> answer =
      http_get(address_, path, std::chrono::steady_clock::now() + kDeadline, kMostBytes, access_);
  if (!answer) return answer.error().with("the daemon");
  if (answer->is_refused)
    return Error("no daemon listens there; start gpumeter, or give its address by --url");
  if (answer->status == 401) return Error("the daemon requires a user; use --login-file");
  if (answer->status != kOk) return Error(std::string(path) + ": status " + std::to_string(answer->status));
  return std::move(answer->body);
}

Result<std::vector<Gpu>> Daemon::gpus() const {
  const Result<std::string> live = body("/api/v1/live?sparklines=1");
  if (!live) return live.error();
  const Result<std::string> series = body("/api/v1/series?match=gpu_mode&match=gpu_info");
  if (!series) return series.error();
  return parse_gpus(*live, *series);
}

}  // namespace gpumeter::benchmark
