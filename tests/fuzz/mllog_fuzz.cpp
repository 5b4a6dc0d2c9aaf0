// The lines of an MLPerf job's log, each through the parser and into a run model.
#include "collectors/jobs/model/run_model.hpp"
#include "collectors/jobs/wire/line.hpp"
#include "exporter/store/store.hpp"
#include "tests/fuzz/fuzz.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace gpumeter;
  Store store;
  Source source = store.attach();
  jobs::RunModel model(source, {}, [](const jobs::SenderId&) { return true; });
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
  source.commit(now.elapsed);
  store.walk([](const Family& family) {
    family.for_each([](const Series& series) {
      fuzz::expect(jobs::is_acceptable(series.value() / 1e9));
      for (const auto& [name, value] : series.labels().pairs()) fuzz::expect(value.size() <= 64);
    });
  });
  return 0;
}
