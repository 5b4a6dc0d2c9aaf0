#include <algorithm>
#include <cmath>
#include <cstdint>

#include "collectors/api/catalog.hpp"
#include "collectors/jobs/model/run_model.hpp"
#include "collectors/jobs/wire/label_text.hpp"

// What a line means for its run.
namespace gpumeter::jobs {
namespace {

/// Of our own client: what it could not send (packaging/python/README.md).
constexpr std::string_view kClientDropped = "ml.client.dropped";

bool is_near(std::int64_t unix_seconds, const Moment& now) noexcept {
  const double distance = static_cast<double>(unix_seconds) - to_seconds(now.unix);
  return std::abs(distance) <= to_seconds(kTimestampTolerance);
}

bool counts_steps(const Word& word, LabelChoice choice) {
  return word.family == &catalog::ml_steps && choice == std::get<LabelChoice>(choose(word, Tags()));
}

}  // namespace

void RunModel::take(const Origin& origin, const Line& line) {
  if (const auto* metric = std::get_if<MetricLine>(&line)) return take_metric(origin, *metric);
  if (const auto* event = std::get_if<EventLine>(&line)) return take_event(origin, *event);
  if (const auto* refusal = std::get_if<Refusal>(&line)) drop(*refusal);
}

void RunModel::take_metric(const Origin& origin, const MetricLine& line) {
  if (line.name == kClientDropped) return take_client_loss(line);
  const Word* const word = find_word(line.name);
  if (word == nullptr) return drop(Refusal::unknown_metric);
  if (!takes(*word, line.type)) return drop(Refusal::wrong_type);
  if (line.timestamp && !is_near(*line.timestamp, origin.now)) return drop(Refusal::bad_timestamp);
  const auto choice = choose(*word, line.tags);
  if (const auto* refusal = std::get_if<Refusal>(&choice)) return drop(*refusal);
  const auto direction = lower_is_better(line.tags);
  if (const auto* refusal = std::get_if<Refusal>(&direction)) return drop(*refusal);
  take_values(origin, line,
              {*word, std::get<LabelChoice>(choice), 0, 1 / line.rate, line.tags.find("metric"),
               std::get<std::optional<bool>>(direction)});
}

/// A claim: held to what one client can lose between two lines, so that none makes the sum meaningless.
void RunModel::take_client_loss(const MetricLine& line) {
  constexpr double kMostAtOnce = 1e6;
  if (line.type != LineType::count) return drop(Refusal::wrong_type);
  PackedValues values = line.values;
  while (const auto value = values.next()) {
    if (!*value || **value < 0) return drop(Refusal::bad_value);
    drop(Refusal::client, static_cast<std::uint64_t>(std::min(**value, kMostAtOnce)));
  }
}

void RunModel::take_values(const Origin& origin, const MetricLine& line, Measure measure) {
  constexpr double kSecondsPerMillisecond = 1e-3;
  const double unit = line.type == LineType::timer ? kSecondsPerMillisecond : 1;
  Place where;
  PackedValues values = line.values;
  while (const auto value = values.next()) {
    if (!*value || !takes(measure.word, **value) || !is_acceptable(**value * measure.weight)) {
      drop(Refusal::bad_value);
      continue;
    }
    measure.value = **value * unit;
    if (where.process == nullptr) where = place(origin, run_name(origin, line.tags.find("run")));
    apply(origin, where, measure);
  }
}

void RunModel::apply(const Origin& origin, const Place& place, const Measure& measure) {
  if (place.run != nullptr) place.run->progress.worked();
  switch (measure.word.shape) {
    case Shape::step:
      return take_step(place, measure.value);
    case Shape::target:
    case Shape::eval:
      return take_evaluation(origin, place, measure);
    case Shape::custom:
      return take_custom(origin, place, measure);
    default:
      break;
  }
  if (place.run != nullptr && counts_steps(measure.word, measure.choice))
    place.member->counted_steps += measure.value * measure.weight;
  if (Cell* const cell = cell_of(origin, place, measure)) cell->add(measure.value, measure.weight);
}

void RunModel::take_step(const Place& place, double step) {
  if (place.run == nullptr) return drop(Refusal::series_limit);
  place.run->progress.at_step(*place.member, step);
  if (place.run->progress.is_unsettled()) unsettled_.push_back(place.run);
}

void RunModel::settle(const SenderId& id) noexcept {
  for (Run* const run : unsettled_) {
    if (Member* const member = run->progress.find(id)) run->progress.settle(*member);
  }
  unsettled_.clear();
}

void RunModel::take_evaluation(const Origin& origin, const Place& place, const Measure& measure) {
  if (place.run == nullptr) return drop(Refusal::series_limit);
  const std::string metric = label_text(measure.metric.empty() ? "unnamed" : measure.metric);
  Evaluation* evaluation = place.run->find_evaluation(metric);
  if (evaluation == nullptr) {
    const bool full = place.run->evaluations() >= limits_.evaluations_per_run;
    if (full || !has_room(origin, place, kSeriesOfEvaluation)) return drop(Refusal::series_limit);
    charge(origin, place, kSeriesOfEvaluation);
    evaluation = &place.run->add_evaluation(metric);
  }
  if (measure.lower_is_better) evaluation->set_direction(*measure.lower_is_better);
  if (measure.word.shape == Shape::target) return evaluation->set_target(measure.value);
  evaluation->evaluated(measure.value, origin.at);
}

void RunModel::take_custom(const Origin& origin, const Place& place, const Measure& measure) {
  if (place.run == nullptr) return drop(Refusal::series_limit);
  std::string metric = label_text(measure.metric.empty() ? "unnamed" : measure.metric);
  Cells& cells = place.run->cells;
  if (CustomScalar* const known = cells.find_custom(metric)) {
    known->value = measure.value;
    return;
  }
  const bool full = cells.customs() >= limits_.customs_per_run;
  if (full || !has_room(origin, place, 1)) return drop(Refusal::series_limit);
  charge(origin, place, 1);
  cells.add_custom({std::move(metric), measure.value});
}

void RunModel::take_event(const Origin& origin, const EventLine& line) {
  const bool starts = line.title == "run_start";
  const bool stops = line.title == "run_stop";
  const bool restarts = line.title == "restart";
  if (!starts && !stops && !restarts && line.title != "epoch_start" && line.title != "epoch_stop") {
    return drop(Refusal::unknown_metric);
  }
  if (stops && line.text != "success" && line.text != "aborted") return drop(Refusal::bad_label);
  const std::string_view tag = line.tags.find("run");
  const std::string run = run_name(origin, tag.empty() && starts ? line.text : tag);
  const Place where = place(origin, run);
  if (where.run == nullptr) return drop(Refusal::series_limit);
  if (starts) {
    where.process->run = run;
    const RunFacts facts{line.tags.find("framework"), line.tags.find("version"), line.tags.find("model")};
    where.run->started(*where.member, {facts, line.timestamp}, origin.facts, origin.at);
  }
  if (stops) where.run->stopped(*where.member, line.text == "success", origin.at);
  if (restarts) where.run->progress.announced_restart(*where.member);
}

void RunModel::take_mllog(const Origin& origin, std::string_view run, const MllogLine& line) {
  using Kind = MllogLine::Kind;
  const Place where = place(origin, run_name(origin, run));
  if (where.run == nullptr) return drop(Refusal::series_limit);
  std::string& benchmark = where.process->benchmark;
  const auto measure = [&](std::string_view word) {
    apply(origin, where,
          {*find_word(word),
           {kNoLabel, kNoLabel},
           line.value,
           1,
           line.metric,
           mllog_lower_is_better(benchmark)});
  };
  if (line.samples) take_samples(origin, where, *line.samples);
  switch (line.kind) {
    case Kind::run_start:
      return where.run->started(*where.member, {{.model = benchmark}, {}}, origin.facts, origin.at);
    case Kind::run_stop:
      return where.run->stopped(*where.member, line.success, origin.at);
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

void RunModel::take_samples(const Origin& origin, const Place& place, double so_far) {
  const Word& word = *find_word("ml.samples");
  const auto train = std::get<LabelChoice>(choose(word, Tags()));
  apply(origin, place, {word, train, place.run->new_samples(so_far), 1, {}, {}});
}

}  // namespace gpumeter::jobs
