#include "programs/profiler/conditions.hpp"

#include <array>
#include <cmath>
#include <cstdio>

#include "base/text.hpp"
#include "collectors/api/catalog.hpp"
#include "collectors/sources/page/sample_lines.hpp"

namespace gpumeter::profiles {
namespace {

RunName run_of(const SampleLine& sample) {
  return {std::string(sample.label("user")), std::string(sample.label("run"))};
}

template <class... Values>
std::string words(const char* form, Values... values) {
  std::array<char, 200> text{};
  const int size = std::snprintf(text.data(), text.size(), form, values...);
  return std::string(text.data(), size < 0 ? 0 : std::min<std::size_t>(text.size() - 1, std::size_t(size)));
}

constexpr double kPercent = 100;

}  // namespace

std::vector<Finding> Conditions::judge(std::string_view page, Nanoseconds now) {
  readings_.push_back(read(page, now));
  // The first reading is the youngest one that is at least `hold` old.
  while (readings_.size() > 1 && now - readings_[1].at >= thresholds_.hold) readings_.pop_front();
  std::vector<Finding> findings;
  const Reading& before = readings_.front();
  const Reading& after = readings_.back();
  if (after.at - before.at < thresholds_.hold) return findings;
  if (thresholds_.has(kThermal)) judge_heat(before, after, findings);
  if (thresholds_.has(kSlowSteps)) judge_steps(before, after, findings);
  if (thresholds_.has(kLowMfu)) judge_mfu(before, after, findings);
  return findings;
}

Conditions::Reading Conditions::read(std::string_view page, Nanoseconds now) {
  Reading reading{.at = now};
  for (SampleLines lines(page); lines.next();) take(reading, lines.sample());
  return reading;
}

void Conditions::take(Reading& reading, const SampleLine& sample) {
  const std::string uuid(sample.label("uuid"));
  if (sample.name == catalog::throttle_seconds.name) {
    if (sample.label("cause") == "thermal") reading.throttled[uuid] = sample.value;
  } else if (sample.name == catalog::peak_flops.name) {
    if (sample.label("dtype") == "bf16") reading.peaks[uuid] = sample.value;
  } else if (sample.name == catalog::ml_run_gpu_info.name) {
    reading.runs[run_of(sample)].gpus.insert(uuid);
  } else if (sample.name == catalog::ml_model_flops.name) {
    Run& run = reading.runs[run_of(sample)];
    run.flops += sample.value;
    run.has_flops = true;
  } else if (sample.name.starts_with(catalog::ml_step_duration.name)) {
    const std::string_view part = sample.name.substr(std::string_view(catalog::ml_step_duration.name).size());
    Steps& steps = reading.runs[run_of(sample)].steps[std::string(sample.label("split"))];
    if (part == "_sum") steps.sum = sample.value;
    if (part == "_count") steps.count = sample.value;
    const auto bound = parse_number<double>(sample.label("le"));
    if (part == "_bucket" && bound) steps.buckets[*bound] = sample.value;
  }
}

void Conditions::judge_heat(const Reading& before, const Reading& after, std::vector<Finding>& to) const {
  const double elapsed = to_seconds(after.at - before.at);
  for (const auto& [name, run] : after.runs) {
    for (const std::string& uuid : run.gpus) {
      const auto past = before.throttled.find(uuid);
      const auto present = after.throttled.find(uuid);
      if (past == before.throttled.end() || present == after.throttled.end()) continue;
      const double share = (present->second - past->second) / elapsed;
      if (share < thresholds_.throttled_percent / kPercent || share <= 0) continue;
      to.push_back({std::string(kThermal), name,
                    words("GPU %.60s was throttled by heat for %.0f %% of %.0f s", uuid.c_str(),
                          share * kPercent, elapsed),
                    uuid});
      break;
    }
  }
}

// Linear within the bucket, as histogram_quantile is.
double Conditions::median(const Steps& steps) {
  const double half = steps.count / 2;
  double lower = 0;
  double below = 0;
  for (const auto& [bound, count] : steps.buckets) {
    if (count >= half) {
      if (!std::isfinite(bound)) return lower;
      return count > below ? lower + (bound - lower) * (half - below) / (count - below) : bound;
    }
    lower = bound;
    below = count;
  }
  return lower;
}

void Conditions::judge_steps(const Reading& before, const Reading& after, std::vector<Finding>& to) const {
  for (const auto& [name, run] : after.runs) {
    const auto past = before.runs.find(name);
    if (past == before.runs.end()) continue;
    for (const auto& [split, steps] : run.steps) {
      const auto earlier = past->second.steps.find(split);
      if (earlier == past->second.steps.end() || earlier->second.count < kFewestSteps) continue;
      const double count = steps.count - earlier->second.count;
      const double usual = median(earlier->second);
      if (count < 1 || usual <= 0) continue;
      const double mean = (steps.sum - earlier->second.sum) / count;
      if (mean < thresholds_.slow_percent / kPercent * usual) continue;
      to.push_back({std::string(kSlowSteps), name,
                    words("a step (%.20s) takes %.4g s on average, %.2g times the median of %.4g s",
                          split.empty() ? "all" : split.c_str(), mean, mean / usual, usual)});
      break;
    }
  }
}

void Conditions::judge_mfu(const Reading& before, const Reading& after, std::vector<Finding>& to) const {
  const double elapsed = to_seconds(after.at - before.at);
  for (const auto& [name, run] : after.runs) {
    const auto past = before.runs.find(name);
    if (past == before.runs.end() || !past->second.has_flops || run.flops < past->second.flops) continue;
    double peak = 0;
    bool is_known = !run.gpus.empty();
    for (const std::string& uuid : run.gpus) {
      const auto at = after.peaks.find(uuid);
      is_known = is_known && at != after.peaks.end() && at->second > 0;
      if (is_known) peak += at->second;
    }
    if (!is_known) continue;
    const double share = (run.flops - past->second.flops) / elapsed / peak;
    if (share >= thresholds_.mfu_percent / kPercent) continue;
    to.push_back({std::string(kLowMfu), name,
                  words("the model FLOPS utilisation was %.1f %% over %.0f s", share * kPercent, elapsed)});
  }
}

}  // namespace gpumeter::profiles
