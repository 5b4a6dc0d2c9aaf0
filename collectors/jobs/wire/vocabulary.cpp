#include "collectors/jobs/wire/vocabulary.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <iterator>
#include <string>

#include "collectors/api/buckets.hpp"
#include "collectors/api/catalog.hpp"
#include "collectors/jobs/wire/line.hpp"

namespace gpumeter::jobs {
namespace {

/// Bounds from 2^(first/8) to 2^(last/8) seconds; classic histograms have all of them up to 2^(fine_end/8).
template <int first, int fine_end, int last>
struct Range {
  // So that classic histograms have the last one.
  static_assert((last - fine_end) % static_cast<int>(Bounds::kCoarse) == 0);
  static constexpr auto kAll = [] {
    std::array<double, static_cast<std::size_t>(last - first + 1)> all{};
    for (int index = first; index <= last; ++index)
      all[static_cast<std::size_t>(index - first)] = exponential_bound(index);
    return all;
  }();
  static constexpr Bounds kBounds{kAll, fine_end - first + 1};
};

/// 0.5 ms to 10 minutes, coarser to 81 minutes: a small model's step, and a step that generates its own data.
constexpr Bounds kSteps = Range<-88, 74, 98>::kBounds;
/// 1 ms to 10 minutes, coarser to 81 minutes.
constexpr Bounds kRequests = Range<-80, 74, 98>::kBounds;
/// 4 ms to 152 s, coarser to 20 minutes: a long prompt, or one that waits in a queue.
constexpr Bounds kFirstTokens = Range<-64, 58, 82>::kBounds;
/// 0.5 ms to 1 s, coarser to 3 minutes: a stall between two tokens.
constexpr Bounds kInterTokens = Range<-88, 0, 60>::kBounds;
static_assert(kSteps.all[0] == 0.00048828125 && kSteps.all[88] == 1 && kSteps.all[89] == 1.0905077326652577);

constexpr std::string_view kSplits[] = {"train", "eval", "infer"};
constexpr std::string_view kKinds[] = {"train", "input", "output"};
constexpr std::string_view kPhases[] = {
    "data_loading",    "h2d",  "forward", "backward", "optimizer", "communication", "checkpoint_save",
    "checkpoint_load", "eval", "compile", "init",     "idle",      "other"};

constexpr std::string_view kStates[kMemoryStates] = {"allocated", "reserved", "peak"};

constexpr ClosedLabel kSplit{"split", kSplits, "train", ""};
constexpr ClosedLabel kKind{"kind", kKinds, "train", ""};
constexpr ClosedLabel kPhase{"phase", kPhases, "other", "other"};
constexpr ClosedLabel kDtype{"dtype", kDtypes, "", ""};
constexpr ClosedLabel kState{"state", kStates, "allocated", ""};

// clang-format off
constexpr Word kWords[] = {
    {"ml.steps",         Shape::counter,   &catalog::ml_steps,               {&kSplit}},
    {"ml.step",          Shape::step,      &catalog::ml_step},
    {"ml.samples",       Shape::counter,   &catalog::ml_samples,             {&kSplit}},
    {"ml.tokens",        Shape::counter,   &catalog::ml_tokens,              {&kSplit, &kKind}},
    {"ml.flops",         Shape::counter,   &catalog::ml_model_flops,         {&kDtype}},
    {"ml.phase.seconds", Shape::phase,     &catalog::ml_phase_seconds,       {&kPhase}, &catalog::ml_phases},
    {"ml.step.seconds",  Shape::histogram, &catalog::ml_step_duration,       {&kSplit}, nullptr, kSteps},
    {"ml.infer.seconds", Shape::histogram, &catalog::ml_inference_duration,  {}, nullptr, kRequests},
    {"ml.ttft.seconds",  Shape::histogram, &catalog::ml_time_to_first_token, {}, nullptr, kFirstTokens},
    {"ml.itl.seconds",   Shape::histogram, &catalog::ml_inter_token_latency, {}, nullptr, kInterTokens},
    {"ml.loss",          Shape::gauge,     &catalog::ml_loss,                {&kSplit}},
    {"ml.batch_size",    Shape::size,      &catalog::ml_batch_size},
    {"ml.world_size",    Shape::size,      &catalog::ml_world_size},
    {"ml.memory",        Shape::memory,    &catalog::ml_allocator_memory,    {&kState}},
    {"ml.oom",           Shape::counter,   &catalog::ml_out_of_memory},
    {"ml.target",        Shape::target,    &catalog::ml_target_value},
    {"ml.eval",          Shape::eval,      &catalog::ml_eval_value},
    {"ml.custom",        Shape::custom,    &catalog::ml_custom},
};
// clang-format on

constexpr bool is_duration(Shape shape) noexcept {
  return shape == Shape::phase || shape == Shape::histogram;
}

std::uint8_t place(const ClosedLabel& label, std::string_view value) noexcept {
  const auto found = std::ranges::find(label.values, value);
  return found == label.values.end() ? kNoLabel : static_cast<std::uint8_t>(found - label.values.begin());
}

}  // namespace

std::string bound_text(double bound) {
  std::array<char, 32> digits;
  const auto [end, error] =
      std::to_chars(digits.data(), digits.data() + digits.size(), bound, std::chars_format::fixed);
  std::string text(digits.data(), end);
  return text.find('.') == std::string::npos ? text + ".0" : text;
}

std::span<const Word> vocabulary() noexcept { return kWords; }

const Word* find_word(std::string_view name) noexcept {
  const auto* const found = std::ranges::find(kWords, name, &Word::name);
  return found == std::end(kWords) ? nullptr : found;
}

bool takes(const Word& word, LineType type) noexcept {
  if (word.shape == Shape::counter) return type == LineType::count;
  if (!is_duration(word.shape)) return type == LineType::gauge;
  return type == LineType::timer || type == LineType::histogram || type == LineType::distribution;
}

bool takes(const Word& word, double value) noexcept {
  const bool any = word.shape == Shape::gauge || word.shape == Shape::target || word.shape == Shape::eval ||
                   word.shape == Shape::custom;
  return any || value >= 0;
}

bool can_be_summed(const Word& word) noexcept {
  return word.shape == Shape::counter || is_duration(word.shape);
}

std::size_t series_of(const Word& word) noexcept {
  if (word.shape == Shape::histogram) return word.bounds.classic() + 3;  // +Inf, _sum, _count
  return word.shape == Shape::phase ? 2 : 1;
}

std::variant<LabelChoice, Refusal> choose(const Word& word, const Tags& tags) noexcept {
  LabelChoice choice = {kNoLabel, kNoLabel};
  for (std::size_t i = 0; i < choice.size() && word.labels[i] != nullptr; ++i) {
    const ClosedLabel& label = *word.labels[i];
    const std::string_view value = tags.find(label.name);
    choice[i] = place(label, value.empty() ? label.fallback : value);
    if (choice[i] != kNoLabel || value.empty()) continue;
    choice[i] = place(label, label.unknown);
    if (choice[i] == kNoLabel) return Refusal::bad_label;
  }
  return choice;
}

std::vector<Label> labels_of(const Word& word, LabelChoice choice) {
  std::vector<Label> labels;
  for (std::size_t i = 0; i < choice.size(); ++i) {
    if (choice[i] == kNoLabel) continue;
    labels.push_back({std::string(word.labels[i]->name), std::string(word.labels[i]->values[choice[i]])});
  }
  return labels;
}

std::variant<std::optional<bool>, Refusal> lower_is_better(const Tags& tags) noexcept {
  const std::string_view direction = tags.find("direction");
  if (direction.empty()) return std::optional<bool>();
  if (direction == "max" || direction == "min") return std::optional<bool>(direction == "min");
  return Refusal::bad_label;
}

namespace {

// The dtypes of ml.flops, and two that no FLOPs are counted in.
constexpr std::string_view kPrecisions[] = {"fp64", "fp32", "tf32", "fp16", "bf16",
                                            "fp8",  "int8", "fp4",  "int4", "mixed"};
constexpr std::string_view kShardings[] = {"fsdp", "hsdp", "zero1", "zero2", "zero3"};
constexpr std::size_t kMostDigits = 6;

/// One number has one spelling, so that it is one series.
bool is_size(std::string_view text) noexcept {
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  return text.size() <= kMostDigits && text.front() != '0' && std::ranges::all_of(text, is_digit);
}

}  // namespace

bool is_acceptable(Fact fact, std::string_view value) noexcept {
  if (value.empty()) return false;
  if (fact < Fact::precision) return true;
  if (fact == Fact::precision) return std::ranges::find(kPrecisions, value) != std::end(kPrecisions);
  if (fact == Fact::sharding) return std::ranges::find(kShardings, value) != std::end(kShardings);
  return is_size(value);
}

FactsRead read_facts(const Tags& tags) {
  FactsRead read;
  for (const auto& [fact, name] : kFactNames) {
    const std::string_view value = tags.find(name);
    if (is_acceptable(fact, value)) {
      read.facts[static_cast<std::size_t>(fact)] = label_text(value);
    } else if (!value.empty()) {
      ++read.refused;
    }
  }
  return read;
}

std::vector<Label> labels_of(const RunFacts& facts) {
  std::vector<Label> labels;
  for (const auto& [fact, name] : kFactNames) {
    const std::string& value = facts[static_cast<std::size_t>(fact)];
    if (!value.empty()) labels.push_back({std::string(name), value});
  }
  return labels;
}

}  // namespace gpumeter::jobs
