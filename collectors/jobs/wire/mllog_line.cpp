
#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "collectors/jobs/wire/line.hpp"

namespace gpumeter::jobs {
namespace {

using Json = nlohmann::json;
using Kind = MllogLine::Kind;

constexpr std::string_view kToken = ":::MLLOG";

/// The keys of mllog/constants.py that the model uses, and target_accuracy. The rules fix the targets, and
/// submitters log them by this name.
constexpr std::pair<std::string_view, Kind> kKeys[] = {
    {"run_start", Kind::run_start},          {"run_stop", Kind::run_stop},
    {"eval_accuracy", Kind::evaluation},     {"target_accuracy", Kind::target},
    {"global_batch_size", Kind::batch_size}, {"submission_benchmark", Kind::benchmark},
    {"epoch_start", Kind::progress},         {"epoch_stop", Kind::progress},
    {"block_start", Kind::progress},         {"block_stop", Kind::progress},
    {"eval_start", Kind::progress},          {"eval_stop", Kind::progress},
};

/// time_ms in the year 2096, so that the nanoseconds fit into 63 bits with room for differences.
constexpr double kLatest = 4e12;

Kind kind_of(std::string_view key) noexcept {
  const auto* const found = std::ranges::find(kKeys, key, &std::pair<std::string_view, Kind>::first);
  return found == std::end(kKeys) ? Kind::other : found->second;
}

/// Returns the member, or a null if there is none.
const Json& member(const Json& object, const char* name) {
  static const Json kNone;
  if (!object.is_object()) return kNone;
  const auto found = object.find(name);
  return found == object.end() ? kNone : *found;
}

std::string text_of(const Json& value) {
  return value.is_string() ? value.get<std::string>() : std::string();
}

std::optional<double> number_of(const Json& value) {
  if (!value.is_number()) return std::nullopt;
  const auto number = value.get<double>();
  return is_acceptable(number) ? std::optional(number) : std::nullopt;
}

bool has_number(Kind kind) noexcept {
  return kind == Kind::evaluation || kind == Kind::target || kind == Kind::batch_size;
}

/// Only lines of these kinds report the samples of training in samples_count.
bool may_count_samples(Kind kind) noexcept {
  return kind == Kind::progress || kind == Kind::evaluation || kind == Kind::run_stop;
}

/// Reads the kind's own values. Returns a Refusal if they are missing or invalid.
std::optional<Refusal> read_value(const Json& object, MllogLine& line) {
  const Json& value = member(object, "value");
  const Json& metadata = member(object, "metadata");
  if (line.kind == Kind::run_stop) {
    const std::string status = text_of(member(metadata, "status"));
    line.success = status == "success";
    if (!line.success && status != "aborted") return Refusal::bad_label;
  }
  if (has_number(line.kind)) {
    const std::optional<double> number = number_of(value);
    if (!number) return Refusal::bad_value;
    line.value = *number;
    line.metric = text_of(member(metadata, "metric"));
    if (line.metric.empty()) line.metric = "eval_accuracy";
  }
  if (line.kind == Kind::benchmark) line.text = text_of(value);
  const std::optional<double> samples = number_of(member(metadata, "samples_count"));
  if (may_count_samples(line.kind) && samples && *samples >= 0) line.samples = samples;
  return std::nullopt;
}

std::variant<MllogLine, Refusal> parse_object(const Json& object) {
  const Json& key = member(object, "key");
  const std::optional<double> milliseconds = number_of(member(object, "time_ms"));
  if (!key.is_string() || !milliseconds || *milliseconds < 0 || *milliseconds > kLatest)
    return Refusal::malformed;
  MllogLine line;
  line.kind = kind_of(key.get_ref<const std::string&>());
  line.unix_time = std::chrono::milliseconds(static_cast<std::int64_t>(*milliseconds));
  if (const std::optional<Refusal> refusal = read_value(object, line)) return *refusal;
  return line;
}

}  // namespace

std::optional<std::variant<MllogLine, Refusal>> parse_mllog(std::string_view line) {
  const std::size_t at = line.find(kToken);
  if (at == std::string_view::npos) return std::nullopt;
  line.remove_prefix(at + kToken.size());
  const Json object = Json::parse(line, nullptr, /*allow_exceptions=*/false);
  if (object.is_discarded()) return Refusal::malformed;
  return parse_object(object);
}

bool mllog_lower_is_better(std::string_view benchmark) noexcept {
  // training_3.0.0/closed_gpt3.yaml, 4.0.0/closed_llama2_70b_lora.yaml, 5.x/closed_llama31_*.yaml,
  // closed_flux1.yaml.
  constexpr std::string_view kLower[] = {"gpt3", "llama2_70b_lora", "llama31_405b", "llama31_8b", "flux1"};
  return std::ranges::find(kLower, benchmark) != std::end(kLower);
}

}  // namespace gpumeter::jobs
