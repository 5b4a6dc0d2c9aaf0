#include "collectors/jobs/wire/vocabulary.hpp"

#include <algorithm>
#include <string>

#include "collectors/api/catalog.hpp"

namespace gpumeter::jobs {
namespace {

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
    {"ml.step.seconds",  Shape::histogram, &catalog::ml_step_duration,       {&kSplit}, nullptr, &kStepBounds},
    {"ml.infer.seconds", Shape::histogram, &catalog::ml_inference_duration,  {}, nullptr, &kRequestBounds},
    {"ml.ttft.seconds",  Shape::histogram, &catalog::ml_time_to_first_token, {}, nullptr, &kFirstTokenBounds},
    {"ml.itl.seconds",   Shape::histogram, &catalog::ml_inter_token_latency, {}, nullptr, &kInterTokenBounds},
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
  if (word.shape == Shape::histogram) return word.bounds->size() + 3;  // +Inf, _sum, _count
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

}  // namespace gpumeter::jobs
