#include "collectors/jobs/model/message.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>

#include "collectors/api/catalog.hpp"
#include "collectors/jobs/wire/label_text.hpp"

namespace gpumeter::jobs {
namespace {

/// gpumeter's own client reports with this metric the values that it could not send
/// (packaging/python/README.md).
constexpr std::string_view kClientDropped = "ml.client.dropped";
constexpr std::string_view kEvents[] = {"run_start", "run_stop", "restart", "epoch_start", "epoch_stop"};

bool is_near(std::int64_t unix_seconds, const Moment& now) noexcept {
  const double distance = static_cast<double>(unix_seconds) - to_seconds(now.unix);
  return std::abs(distance) <= to_seconds(kTimestampTolerance);
}

LabelChoice untagged(const Word& word) { return std::get<LabelChoice>(choose(word, Tags())); }

RunFacts facts_of_model(const std::string& model) {
  RunFacts facts;
  facts[static_cast<std::size_t>(Fact::model)] = model;
  return facts;
}

std::string metric_label(std::string_view metric) { return label_text(metric.empty() ? "unnamed" : metric); }

}  // namespace

void Message::take(const Line& line) {
  if (const auto* metric = std::get_if<MetricLine>(&line)) return take_metric(*metric);
  if (const auto* event = std::get_if<EventLine>(&line)) return take_event(*event);
  if (const auto* refusal = std::get_if<Refusal>(&line)) drop(*refusal);
}

void Message::take_metric(const MetricLine& line) {
  if (line.name == kClientDropped) return take_client_loss(line);
  const Word* const word = find_word(line.name);
  if (word == nullptr) return drop(Refusal::unknown_metric);
  if (!takes(*word, line.type)) return drop(Refusal::wrong_type);
  if (line.timestamp && !is_near(*line.timestamp, from_.now)) return drop(Refusal::bad_timestamp);
  const auto choice = choose(*word, line.tags);
  if (const auto* refusal = std::get_if<Refusal>(&choice)) return drop(*refusal);
  const auto direction = lower_is_better(line.tags);
  if (const auto* refusal = std::get_if<Refusal>(&direction)) return drop(*refusal);
  take_values(line, {*word, std::get<LabelChoice>(choice), 0, 1 / line.rate, line.tags.find("metric"),
                     std::get<std::optional<bool>>(direction)});
}

/// The job reports this loss itself. A limit on the loss between two lines keeps the sum meaningful.
void Message::take_client_loss(const MetricLine& line) {
  constexpr double kMostAtOnce = 1e6;
  if (line.type != LineType::count) return drop(Refusal::wrong_type);
  PackedValues values = line.values;
  while (const auto value = values.next()) {
    if (!*value || **value < 0) return drop(Refusal::bad_value);
    shared_.drop(Refusal::client, static_cast<std::uint64_t>(std::min(**value, kMostAtOnce)));
  }
}

void Message::take_values(const MetricLine& line, Measure measure) {
  constexpr double kSecondsPerMillisecond = 1e-3;
  const double unit = line.type == LineType::timer ? kSecondsPerMillisecond : 1;
  Place place;
  PackedValues values = line.values;
  while (const auto value = values.next()) {
    if (!*value || !takes(measure.word, **value) || !is_acceptable(**value * measure.weight)) {
      drop(Refusal::bad_value);
      continue;
    }
    measure.value = **value * unit;
    if (place.process == nullptr) place = user_.place(from_, user_.run_name(from_, line.tags.find("run")));
    apply(place, measure);
  }
}

void Message::apply(const Place& place, const Measure& measure) {
  if (place.run != nullptr) place.run->progress.worked();
  switch (measure.word.shape) {
    case Shape::step:
      return take_step(place, measure.value);
    case Shape::target:
    case Shape::eval:
      return take_evaluation(place, measure);
    case Shape::custom:
      return take_custom(place, measure);
    case Shape::memory:
      return take_memory(place, measure);
    default:
      break;
  }
  if (place.run != nullptr && measure.word.family == &catalog::ml_steps &&
      measure.choice == untagged(measure.word)) {
    place.member->counted_steps += measure.value * measure.weight;
  }
  Cell* const cell = user_.cell(place, measure.word, measure.choice, from_.now.elapsed);
  if (cell != nullptr) cell->add(measure.value, measure.weight);
}

void Message::take_step(const Place& place, double step) {
  if (place.run == nullptr) return drop(Refusal::series_limit);
  place.run->progress.at_step(*place.member, step);
  if (place.run->progress.is_unsettled()) unsettled_.push_back(place.run);
}

/// The run's sum is the value of the cell; see Run::tick().
void Message::take_memory(const Place& place, const Measure& measure) {
  if (place.run == nullptr) return drop(Refusal::series_limit);
  const Cell* const cell = user_.cell(place, measure.word, measure.choice, from_.now.elapsed);
  if (cell != nullptr) place.member->memory.at(measure.choice[0]) = measure.value;
}

void Message::finish() noexcept {
  for (Run* const run : unsettled_) {
    if (Member* const member = run->progress.find(from_.id)) run->progress.settle(*member);
  }
}

void Message::take_evaluation(const Place& place, const Measure& measure) {
  if (place.run == nullptr) return drop(Refusal::series_limit);
  const std::string metric = metric_label(measure.metric);
  Evaluation* evaluation = place.run->find_evaluation(metric);
  if (evaluation == nullptr) {
    const bool full = place.run->evaluations() >= shared_.limits.evaluations_per_run;
    if (full || !user_.has_room(place, kSeriesOfEvaluation)) return drop(Refusal::series_limit);
    user_.charge(place, kSeriesOfEvaluation);
    evaluation = &place.run->add_evaluation(metric);
  }
  if (measure.lower_is_better) evaluation->set_direction(*measure.lower_is_better);
  if (measure.word.shape == Shape::target) return evaluation->set_target(measure.value);
  evaluation->evaluated(measure.value, from_.at);
}

void Message::take_custom(const Place& place, const Measure& measure) {
  if (place.run == nullptr) return drop(Refusal::series_limit);
  const std::string metric = metric_label(measure.metric);
  Cells& cells = place.run->cells;
  if (CustomScalar* const known = cells.find_custom(metric)) {
    known->value = measure.value;
    return;
  }
  const bool full = cells.customs() >= shared_.limits.customs_per_run;
  if (full || !user_.has_room(place, 1)) return drop(Refusal::series_limit);
  user_.charge(place, 1);
  cells.add_custom(metric, measure.value);
}

void Message::take_event(const EventLine& line) {
  if (std::ranges::find(kEvents, line.title) == std::end(kEvents)) return drop(Refusal::unknown_metric);
  const bool starts = line.title == "run_start";
  const bool stops = line.title == "run_stop";
  if (stops && line.text != "success" && line.text != "aborted") return drop(Refusal::bad_label);
  const std::string_view tag = line.tags.find("run");
  const std::string run = user_.run_name(from_, tag.empty() && starts ? line.text : tag);
  const Place place = user_.place(from_, run);
  if (place.run == nullptr) return drop(Refusal::series_limit);
  if (starts) {
    place.process->run = run;
    place.run->started(*place.member,
                       {facts_of(line.tags), line.timestamp, std::chrono::milliseconds(line.milliseconds)},
                       from_.facts, from_.at);
  }
  if (stops) place.run->stopped(*place.member, line.text == "success", from_.at);
  if (line.title == "restart") place.run->progress.announced_restart(*place.member);
}

/// The other facts of a line with an unknown one are used.
RunFacts Message::facts_of(const Tags& tags) {
  FactsRead read = read_facts(tags);
  if (read.refused > 0) shared_.drop(Refusal::bad_label, read.refused);
  return std::move(read.facts);
}

void Message::take(std::string_view run, const MllogLine& line) {
  using Kind = MllogLine::Kind;
  const Place place = user_.place(from_, user_.run_name(from_, run));
  if (place.run == nullptr) return drop(Refusal::series_limit);
  std::string& benchmark = place.process->benchmark;
  const auto measure = [&](std::string_view name) {
    const Word& word = *find_word(name);
    apply(place, {word, untagged(word), line.value, 1, line.metric, mllog_lower_is_better(benchmark)});
  };
  if (line.samples) take_samples(place, *line.samples);
  switch (line.kind) {
    case Kind::run_start:
      return place.run->started(*place.member, {facts_of_model(benchmark), {}}, from_.facts, from_.at);
    case Kind::run_stop:
      return place.run->stopped(*place.member, line.success, from_.at);
    case Kind::benchmark:
      benchmark = label_text(line.text);
      return;
    case Kind::evaluation:
      return measure("ml.eval");
    case Kind::target:
      return measure("ml.target");
    case Kind::batch_size:
      return measure("ml.batch_size");
    default:
      return;
  }
}

void Message::take_samples(const Place& place, double so_far) {
  const Word& word = *find_word("ml.samples");
  apply(place, {word, untagged(word), place.run->new_samples(so_far), 1, {}, {}});
}

}  // namespace gpumeter::jobs
