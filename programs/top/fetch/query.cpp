#include "programs/top/fetch/query.hpp"

#include <chrono>
#include <utility>

namespace gpumeter::top {
namespace {

constexpr Nanoseconds kAskAgain = std::chrono::minutes(1);

std::string series_path() {
  std::string path = "/api/v1/series";
  for (const std::string_view name : snapshot_series()) {
    path += path.find('?') == std::string::npos ? "?match=" : "&match=";
    path += name;
  }
  return path;
}

}  // namespace

Query::Query(HttpClient client, Charset charset, const Clock& clock)
    : client_(std::move(client)), charset_(charset), clock_(clock), series_path_(series_path()) {}

Result<Snapshot> Query::run() {
  Result<Snapshot> result = snapshot();
  if (!result) return Error(printable(result.error().message(), charset_));
  return result;
}

Result<std::string> Query::get(const std::string& path, bool* is_missing) {
  Result<HttpClient::Answer> answer = client_.get(path);
  if (!answer) return answer.error();
  if (is_missing != nullptr) *is_missing = answer->status == 404;
  if (answer->status == 200) return std::move(answer->body);
  return Error("the answer has status " + std::to_string(answer->status) +
               "; is this a gpumeter of this version?");
}

Result<std::optional<Health>> Query::health() {
  const Nanoseconds now = clock_.monotonic();
  if (no_health_since_ && now - *no_health_since_ < kAskAgain) return std::optional<Health>();
  bool is_missing = false;
  const Result<std::string> body = get("/api/v1/health", &is_missing);
  if (is_missing) {
    no_health_since_ = now;
    return std::optional<Health>();
  }
  if (!body) return body.error();
  Result<Health> health = parse_health(*body, charset_);
  if (!health) return health.error();
  no_health_since_.reset();
  return std::optional(*std::move(health));
}

Result<Snapshot> Query::snapshot() {
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

}  // namespace gpumeter::top
