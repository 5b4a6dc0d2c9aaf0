#include "collectors/jobs/model/run_model.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "collectors/api/catalog.hpp"
#include "collectors/jobs/model/users.hpp"
#include "collectors/jobs/wire/line.hpp"

namespace gpumeter::jobs {
namespace {

/// The largest accepted difference between a line's own time and the machine's. The time is not exported; the
/// check rejects lines of another day.
constexpr Nanoseconds kTimestampTolerance = std::chrono::hours(1);

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

/// Applies the lines of one message to the runs of its user. Lives as long as the message is read.
class Message {
 public:
  Message(Users& users, User& user, const Origin& origin) noexcept
      : users_(users), user_(user), from_(origin) {}

  void take(const Line& line) {
    if (const auto* metric = std::get_if<MetricLine>(&line)) return take_metric(*metric);
    if (const auto* event = std::get_if<EventLine>(&line)) return take_event(*event);
    if (const auto* refusal = std::get_if<Refusal>(&line)) drop(*refusal);
  }

  /// `run`: the name that the configuration gives to the log.
  void take(std::string_view run, const MllogLine& line) {
    using Kind = MllogLine::Kind;
    const Place place = place_of(run);
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

  /// Call after the last line: by then both ml.step and ml.steps of a step have arrived, in either order.
  void finish() noexcept {
    for (Run* const run : unsettled_) {
      if (Member* const member = run->find(from_.id)) run->settle(*member);
    }
  }

 private:
  /// One value of a line, with the word and the labels that it counts under.
  struct Measure {
    const Word& word;
    LabelChoice choice;
    double value;
    double weight;
    std::string_view metric;
    std::optional<bool> lower_is_better;
    Trace trace = {};
  };

  /// The run of a line whose tag says this name.
  Place place_of(std::string_view said) {
    return users_.place(user_, from_, Users::run_name(user_, from_, said));
  }

  void take_metric(const MetricLine& line) {
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
                       std::get<std::optional<bool>>(direction),
                       word->shape == Shape::histogram ? trace_of(line.tags) : Trace()});
  }

  /// The job reports this loss itself. A limit on the loss between two lines keeps the sum meaningful.
  void take_client_loss(const MetricLine& line) {
    constexpr double kMostAtOnce = 1e6;
    if (line.type != LineType::count) return drop(Refusal::wrong_type);
    PackedValues values = line.values;
    while (const auto value = values.next()) {
      if (!*value || **value < 0) return drop(Refusal::bad_value);
      users_.drop(Refusal::client, static_cast<std::uint64_t>(std::min(**value, kMostAtOnce)));
    }
  }

  void take_values(const MetricLine& line, Measure measure) {
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
      if (place.process == nullptr) place = place_of(line.tags.find("run"));
      apply(place, measure);
    }
  }

  void apply(const Place& place, const Measure& measure) {
    if (place.run != nullptr) place.run->worked();
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
    Cell* const cell = users_.cell(user_, place, measure.word, measure.choice, from_.now);
    if (cell != nullptr) cell->add(measure.value, measure.weight, measure.trace, from_.at);
  }

  void take_step(const Place& place, double step) {
    if (place.run == nullptr) return drop(Refusal::series_limit);
    place.run->at_step(*place.member, step);
    if (place.run->is_unsettled()) unsettled_.push_back(place.run);
  }

  /// The run's sum is the value of the cell; see Run::tick().
  void take_memory(const Place& place, const Measure& measure) {
    if (place.run == nullptr) return drop(Refusal::series_limit);
    const Cell* const cell = users_.cell(user_, place, measure.word, measure.choice, from_.now);
    if (cell != nullptr) place.member->memory.at(measure.choice[0]) = measure.value;
  }

  void take_evaluation(const Place& place, const Measure& measure) {
    if (place.run == nullptr) return drop(Refusal::series_limit);
    const std::string metric = metric_label(measure.metric);
    Evaluation* evaluation = place.run->find_evaluation(metric);
    if (evaluation == nullptr) {
      const bool full = place.run->evaluations() >= users_.limits.evaluations_per_run;
      if (full || !users_.has_room(user_, place, kSeriesOfEvaluation)) return drop(Refusal::series_limit);
      users_.charge(user_, place, kSeriesOfEvaluation);
      evaluation = &place.run->add_evaluation(metric);
    }
    if (measure.lower_is_better) evaluation->set_direction(*measure.lower_is_better);
    if (measure.word.shape == Shape::target) return evaluation->set_target(measure.value);
    evaluation->evaluated(measure.value, from_.at);
  }

  void take_custom(const Place& place, const Measure& measure) {
    if (place.run == nullptr) return drop(Refusal::series_limit);
    const std::string metric = metric_label(measure.metric);
    Cells& cells = place.run->cells;
    if (CustomScalar* const known = cells.find_custom(metric)) {
      known->value = measure.value;
      return;
    }
    const bool full = cells.customs() >= users_.limits.customs_per_run;
    if (full || !users_.has_room(user_, place, 1)) return drop(Refusal::series_limit);
    users_.charge(user_, place, 1);
    cells.add_custom(metric, measure.value);
  }

  void take_event(const EventLine& line) {
    if (std::ranges::find(kEvents, line.title) == std::end(kEvents)) return drop(Refusal::unknown_metric);
    const bool starts = line.title == "run_start";
    const bool stops = line.title == "run_stop";
    if (stops && line.text != "success" && line.text != "aborted") return drop(Refusal::bad_label);
    const std::string_view tag = line.tags.find("run");
    const std::string run = Users::run_name(user_, from_, tag.empty() && starts ? line.text : tag);
    const Place place = users_.place(user_, from_, run);
    if (place.run == nullptr) return drop(Refusal::series_limit);
    if (starts) {
      place.process->run = run;
      place.run->started(*place.member,
                         {facts_of(line.tags), line.timestamp, std::chrono::milliseconds(line.milliseconds)},
                         from_.facts, from_.at);
    }
    if (stops) place.run->stopped(*place.member, line.text == "success", from_.at);
    if (line.title == "restart") place.run->announced_restart(*place.member);
  }

  /// The other facts of a line with an unknown one are used.
  RunFacts facts_of(const Tags& tags) {
    FactsRead read = read_facts(tags);
    if (read.refused > 0) users_.drop(Refusal::bad_label, read.refused);
    return std::move(read.facts);
  }

  void take_samples(const Place& place, double so_far) {
    const Word& word = *find_word("ml.samples");
    apply(place, {word, untagged(word), place.run->new_samples(so_far), 1, {}, {}});
  }

  void drop(Refusal refusal) noexcept { users_.drop(refusal); }

  Users& users_;
  User& user_;
  const Origin from_;
  std::vector<Run*> unsettled_;  ///< runs that a step of this message may have restarted
};

const SenderFacts kNoFacts;

Origin origin_of(const Sender& sender, const Moment& now, const Moment& at) noexcept {
  return {sender.id, sender.facts != nullptr ? *sender.facts : kNoFacts, now, at};
}

}  // namespace

RunModel::RunModel(Source& source, const Limits& limits, IsAlive is_alive)
    : users_(std::make_unique<Users>(source, limits, std::move(is_alive))) {}
RunModel::~RunModel() = default;

void RunModel::drop(Refusal refusal, std::uint64_t count) noexcept { users_->drop(refusal, count); }
void RunModel::set_limits(const Limits& limits) noexcept { users_->set_limits(limits); }
RunModel::Usage RunModel::usage() const noexcept { return users_->usage(); }

void RunModel::receive(const Sender& sender, std::string_view payload, const Moment& now,
                       const std::optional<Moment>& sent) {
  if (payload.size() > kMaxPayload) return drop(Refusal::too_long);
  User* const user = users_->user_of(sender, now);
  if (user == nullptr) return drop(Refusal::series_limit);
  Message message(*users_, *user, origin_of(sender, now, sent.value_or(now)));
  PayloadLines lines(payload);
  for (std::size_t count = 0; const auto line = lines.next(); ++count) {
    if (count >= kMaxLines) {
      drop(Refusal::too_many_lines);
    } else if (const std::size_t cost = lines_in(*line);
               !user->lines.take(now.elapsed, static_cast<double>(cost))) {
      drop(Refusal::rate_limit, cost);
    } else {
      message.take(parse_line(*line));
    }
  }
  message.finish();
}

void RunModel::receive_mllog(const Sender& sender, std::string_view run, std::string_view line,
                             const Moment& now) {
  if (line.size() > kMaxPayload) return drop(Refusal::too_long);
  const auto parsed = parse_mllog(line);
  if (!parsed) return;
  if (const auto* refusal = std::get_if<Refusal>(&*parsed)) return drop(*refusal);
  const auto& mllog = std::get<MllogLine>(*parsed);
  if (mllog.unix_time > now.unix + kTimestampTolerance) return drop(Refusal::bad_timestamp);
  User* const user = users_->user_of(sender, now);
  if (user == nullptr) return drop(Refusal::series_limit);
  Message(*users_, *user, origin_of(sender, now, now.at(mllog.unix_time))).take(run, mllog);
}

void RunModel::tick(const Moment& now, const std::function<void()>& receive_last) {
  users_->find_gone(now);
  if (receive_last) receive_last();
  users_->remove_gone(now);
  users_->show(now);
}

RunList RunModel::runs() const {
  RunList list;
  for (const auto& [account, user] : users_->all()) {
    for (const auto& [name, run] : user.runs) {
      const RunName& label = list.runs.emplace_back(RunName{user.label, run.label()});
      if (run.is_over()) list.ended.push_back(label);
      for (const SenderId& id : run.working()) list.processes.push_back({id, label});
    }
  }
  return list;
}

std::string RunModel::save(const Moment& now) const {
  RecordWriter out;
  out.begin("clock")(now);
  users_->save(out);
  return out.take();
}

Result<Done> RunModel::restore(std::string_view section, const Moment& now, bool is_of_this_boot) {
  constexpr Nanoseconds kMostShift = std::chrono::hours(24 * 365 * 10);  // of an invalid file
  RecordReader in(section);
  Moment saved = now;
  if (!section.empty()) {
    in.check(in.next() && in.kind() == "clock");
    in(saved);
  }
  // Within a boot CLOCK_BOOTTIME goes on, whatever happens to the calendar clock.
  if (!is_of_this_boot) {
    const Nanoseconds shift = (now.elapsed - now.unix) - (saved.elapsed - saved.unix);
    in.check(shift <= kMostShift && shift >= -kMostShift).shift_elapsed(shift);
  }
  users_->restore(in, now.elapsed);
  if (in.failed()) return Error("the runs of jobs, line " + std::to_string(in.line()));
  return Done{};
}

}  // namespace gpumeter::jobs
