// The lines of an MLPerf job's log, each into the parser and into a run model.
#include "collectors/jobs/model/run_model.hpp"
#include "collectors/jobs/wire/payload.hpp"
#include "tests/fuzz/fuzz.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace gpumeter;
  jobs::RunModel model({}, [](const jobs::SenderId&) { return true; });
  const jobs::Moment now{std::chrono::seconds(5000), std::chrono::seconds(1'700'000'000)};
  jobs::PayloadLines lines(fuzz::text_of(data, size));
  while (const auto line = lines.next()) {
    const auto parsed = jobs::parse_mllog(*line);
    if (parsed && std::holds_alternative<jobs::MllogLine>(*parsed)) {
      const auto& mllog = std::get<jobs::MllogLine>(*parsed);
      fuzz::expect(jobs::is_acceptable(mllog.value) && mllog.unix_time >= Nanoseconds(0));
      fuzz::expect(mllog.samples.value_or(0) >= 0);
    }
    model.receive_mllog({{1000, -1, 1}, "user"}, "run", *line, now);
  }
  model.tick(now);
  for (const jobs::JobSeries& series : model.snapshot()->series) {
    fuzz::expect(jobs::is_acceptable(series.value / 1e9));
    for (const Label& label : series.series.labels) fuzz::expect(label.value.size() <= 64);
  }
  return 0;
}
