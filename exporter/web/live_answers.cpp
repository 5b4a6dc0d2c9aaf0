#include "exporter/web/live_answers.hpp"

#include <chrono>
#include <utility>
#include <vector>

#include "exporter/json/api.hpp"

namespace gpumeter {
namespace {

constexpr auto kOldest = std::chrono::seconds(2);
constexpr auto kWatched = std::chrono::seconds(5);

class Recorder final : public Part {
 public:
  explicit Recorder(const PartContext& context) : machine_(context.machine) {}

  Nanoseconds turn(Nanoseconds) override {
    machine_.history->sample();
    machine_.live->refresh();
    return std::chrono::seconds(1);
  }

 private:
  const Machine& machine_;
};

}  // namespace

std::optional<EncodedText> LiveAnswers::Document::current(Nanoseconds now) const {
  const MutexLock lock(mutex);
  if (text.identity == nullptr || now - rendered_at >= kOldest) return std::nullopt;
  return text;
}

EncodedText LiveAnswers::get(Document& document) {
  const Nanoseconds now = clock_.monotonic();
  document.asked_at = now.count();
  if (auto text = document.current(now)) return *std::move(text);
  const MutexLock alone(document.rendering);
  if (auto text = document.current(now))
    return *std::move(text);  // another request rendered it in the meantime
  return render(document, now);
}

SharedBytes LiveAnswers::newest_message() {
  const Nanoseconds now = clock_.monotonic();
  message_.asked_at = now.count();
  const std::optional<EncodedText> text = message_.current(now);
  return text ? text->identity : nullptr;
}

EncodedText LiveAnswers::render(Document& document, Nanoseconds now) {
  const auto picture = history_.picture();
  const auto report = health_.get();
  std::vector<std::vector<float>> sparklines;
  if (document.has_sparklines) sparklines = history_.sparklines();
  std::string json = live_json(*picture, {clock_.realtime(), now, report.get(), sparklines, host_});
  EncodedText text;
  if (document.is_message) {
    text.identity = std::make_shared<const std::string>(picture_of_stream(json));
  } else {
    text = EncodedText::of(std::move(json));
  }
  const MutexLock lock(document.mutex);
  document.text = text;
  document.rendered_at = now;
  return text;
}

void LiveAnswers::refresh() {
  const Nanoseconds now = clock_.monotonic();
  refresh(live_, now);
  refresh(sparklines_, now);
  refresh(message_, now);
}

void LiveAnswers::refresh(Document& document, Nanoseconds now) {
  const Nanoseconds asked_at(document.asked_at.load());
  const bool is_watched = asked_at.count() >= 0 && now - asked_at < kWatched;
  const MutexLock alone(document.rendering);
  if (is_watched) {
    render(document, now);
    return;
  }
  const MutexLock lock(document.mutex);
  document.text = {};
}

const PartEntry web::kHistory = {.name = "history", .reads_store = true, .open = open_part<Recorder>};

}  // namespace gpumeter
