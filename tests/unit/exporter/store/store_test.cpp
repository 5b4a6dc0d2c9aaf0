#include "exporter/store/store.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "exporter/store/series_list.hpp"
#include "exporter/text/view.hpp"
#include "tests/fakes/requirements.hpp"
#include "tests/fakes/walked.hpp"

namespace gpumeter {
namespace {

constexpr MetricDescriptor kPower{"gpu_power_watts", "Power.", "watts", MetricType::gauge};
constexpr MetricDescriptor kEnergy{"gpu_energy_joules_total", "Energy.", "joules", MetricType::counter};
constexpr MetricDescriptor kStep{"ml_step_seconds", "Step.", "seconds", MetricType::histogram};
constexpr Nanoseconds kNow{};

Labels device(unsigned index) {
  DeviceInfo info;
  info.uuid = "u" + std::to_string(index);
  return {info, index, ""};
}

std::string power(unsigned index, const char* value) {
  const std::string number = std::to_string(index);
  return "gpu_power_watts{gpu=\"" + number + "\",uuid=\"u" + number + "\"} " + value + "\n";
}

TEST(Store, ShowsSeriesFromTheFirstCommitOn) {
  Store store;
  Source source = store.attach("amd");
  const Source::Slot slot = source.add(kPower, device(0));
  source.set(slot, 1.5);
  EXPECT_EQ(walked(store), "");
  source.commit(kNow);
  EXPECT_EQ(walked(store), power(0, "1.5"));
  source.set(slot, 2);
  EXPECT_EQ(walked(store), power(0, "1.5")) << "not committed";
  source.miss(slot, ReadStatus::failed);
  source.commit(kNow);
  EXPECT_EQ(walked(store), "");
}

TEST(Store, GivesViewsWhatASeriesIs) {
  Store store;
  Source source = store.attach("jobs");
  source.set(source.add(kStep, Labels{{"le", "1"}}, SeriesPart::bucket), 3);
  source.commit(Nanoseconds(17));
  int seen = 0;
  store.walk([&](const Family& family) {
    EXPECT_EQ(&family.descriptor(), &kStep);
    EXPECT_NE(family.version(), 0U);
    family.for_each([&](const Series& series) {
      ++seen;
      EXPECT_EQ(series.position(), 0U);
      EXPECT_EQ(series.labels(), Labels({{"le", "1"}}));
      EXPECT_EQ(series.part(), SeriesPart::bucket);
      EXPECT_EQ(series.value(), 3);
      EXPECT_EQ(series.committed_at(), Nanoseconds(17));
      EXPECT_EQ(series.collector(), "jobs");
    });
  });
  EXPECT_EQ(seen, 1);
}

TEST(Store, SortsFamiliesByNameAndSeriesByDeviceSourceAndSlot) {
  Store store;
  Source second = store.attach("nvidia");
  Source first = store.attach("amd");
  first.set(first.add(kPower, device(10)), 10);
  first.set(first.add(kPower, device(2)), 2);
  first.set(first.add(kEnergy, {}), 5);
  second.set(second.add(kPower, device(3).with({{"b", "1"}})), 3);
  second.set(second.add(kPower, device(3).with({{"a", "1"}})), 4);
  second.set(second.add(kPower, {}), 100);
  first.commit(kNow);
  second.commit(kNow);
  EXPECT_EQ(walked(store), "gpu_energy_joules_total{} 5\n" + power(2, "2") +
                               "gpu_power_watts{gpu=\"3\",uuid=\"u3\",b=\"1\"} 3\n"
                               "gpu_power_watts{gpu=\"3\",uuid=\"u3\",a=\"1\"} 4\n" +
                               power(10, "10") + "gpu_power_watts{} 100\n");
}

TEST(Store, KeepsTheOrderOfAHistogram) {
  Store store;
  Source source = store.attach();
  for (const char* run : {"b", "a"}) {
    const Labels labels{{"run", run}};
    source.set(source.add(kStep, labels.with({{"le", "+Inf"}}), SeriesPart::bucket), 2);
    source.set(source.add(kStep, labels, SeriesPart::sum), 3.5);
    source.set(source.add(kStep, labels, SeriesPart::count), 2);
  }
  source.commit(kNow);
  EXPECT_EQ(walked(store),
            "ml_step_seconds/bucket{run=\"b\",le=\"+Inf\"} 2\n"
            "ml_step_seconds/sum{run=\"b\"} 3.5\n"
            "ml_step_seconds/count{run=\"b\"} 2\n"
            "ml_step_seconds/bucket{run=\"a\",le=\"+Inf\"} 2\n"
            "ml_step_seconds/sum{run=\"a\"} 3.5\n"
            "ml_step_seconds/count{run=\"a\"} 2\n");
}

TEST(Store, HidesASourceUntilItsNextCommit) {
  Store store;
  Source source = store.attach("amd");
  source.set(source.add(kPower, device(0)), 1);
  source.commit(kNow);
  source.hide();
  EXPECT_EQ(walked(store), "");
  source.commit(kNow);
  EXPECT_EQ(walked(store), power(0, "1"));
}

TEST(Store, SlotsComeAndGoWithTheCommit) {
  Store store;
  Source source = store.attach("amd");
  const Source::Slot first = source.add(kPower, device(0));
  const Source::Slot second = source.add(kPower, device(1));
  source.set(first, 1);
  source.set(second, 2);
  source.commit(kNow);
  source.drop(first);
  source.set(second, 3);
  EXPECT_EQ(walked(store), power(0, "1") + power(1, "2"));
  source.commit(kNow);
  EXPECT_EQ(walked(store), power(1, "3"));
  EXPECT_EQ(source.add(kEnergy, {}), first) << "used again";
  source.commit(kNow);
  EXPECT_EQ(walked(store), power(1, "3")) << "the old value is not the new series'";
  source.drop(first);
  source.commit(kNow);
  EXPECT_EQ(walked(store), power(1, "3"));
}

TEST(Store, SlotsAreUsedAgainBetweenTwoCommits) {
  static_assert(noexcept(std::declval<Source>().drop(0)),
                "it runs while an exception for lack of memory passes");
  Store store;
  Source source = store.attach("amd");
  const auto added = [&](unsigned gpu, double value) {
    const Source::Slot slot = source.add(kPower, device(gpu));
    source.set(slot, value);
    return slot;
  };
  const Source::Slot zero = added(0, 1);
  const Source::Slot one = added(1, 2);
  source.drop(added(2, 3));
  source.commit(kNow);
  EXPECT_EQ(walked(store), power(0, "1") + power(1, "2"));
  source.drop(zero);
  source.drop(one);
  EXPECT_EQ(added(3, 4), one) << "the last one that was dropped";
  source.commit(kNow);
  EXPECT_EQ(walked(store), power(3, "4"));
  EXPECT_EQ(added(4, 5), zero);
  source.drop(zero);
  EXPECT_EQ(added(5, 6), zero);
  source.commit(kNow);
  EXPECT_EQ(walked(store), power(3, "4") + power(5, "6"));
}

TEST(Store, RelabelsSlotsWithTheCommit) {
  Store store;
  Source source = store.attach("amd");
  const Source::Slot slot = source.add(kPower, device(0));
  source.set(slot, 1);
  source.commit(kNow);
  source.relabel(slot, device(4));
  EXPECT_EQ(walked(store), power(0, "1"));
  source.commit(kNow);
  EXPECT_EQ(walked(store), power(4, "1"));
}

/// The traces of all exemplars.
std::vector<std::string> traces(const Store& store) {
  std::vector<std::string> found;
  store.walk([&](const Family& family) {
    family.for_each([&](const Series& series) {
      if (series.exemplar() != nullptr) found.push_back(series.exemplar()->trace_id);
    });
  });
  return found;
}

TEST(Store, ASlotHasItsLastExemplarUntilItIsDropped) {
  Store store;
  Source source = store.attach("jobs");
  const Source::Slot first = source.add(kStep, {{"le", "1"}}, SeriesPart::bucket);
  const Source::Slot second = source.add(kStep, {{"le", "+Inf"}}, SeriesPart::bucket);
  for (const Source::Slot slot : {first, second}) source.set(slot, 1);
  source.exemplify(first, {1, 1, "a", ""});
  source.exemplify(first, {1, 2, "b", ""});
  EXPECT_EQ(traces(store), std::vector<std::string>());
  source.commit(kNow);
  EXPECT_EQ(traces(store), std::vector<std::string>{"b"});
  source.exemplify(second, {2, 3, "c", ""});
  source.relabel(first, {{"le", "2"}});
  source.commit(kNow);
  EXPECT_EQ(traces(store), (std::vector<std::string>{"b", "c"}));
  source.exemplify(first, {1, 4, "d", ""});
  source.drop(first);
  source.set(source.add(kStep, {{"le", "3"}}, SeriesPart::bucket), 1);
  source.commit(kNow);
  EXPECT_EQ(traces(store), std::vector<std::string>{"c"}) << "the slot is another series now";
  source.clear();
  source.set(source.add(kStep, {{"le", "3"}}, SeriesPart::bucket), 1);
  source.set(source.add(kStep, {{"le", "4"}}, SeriesPart::bucket), 1);
  source.commit(kNow);
  EXPECT_EQ(traces(store), std::vector<std::string>());
}

TEST(Store, ReplacesAllSlotsAtOnce) {
  Store store;
  Source source = store.attach("amd");
  for (unsigned i = 0; i < 20; ++i) source.set(source.add(kPower, device(i)), 1);
  source.commit(kNow);
  source.clear();
  EXPECT_EQ(source.add(kPower, device(21)), 0U);
  EXPECT_EQ(walked(store).substr(0, power(0, "1").size()), power(0, "1")) << "until the commit";
  source.set(0, 5);
  source.commit(kNow);
  EXPECT_EQ(walked(store), power(21, "5"));
}

TEST(Store, ForgetsASourceThatGoes) {
  Store store;
  {
    Source source = store.attach("amd");
    source.set(source.add(kPower, device(0)), 1);
    source.commit(kNow);
    const Source moved = std::move(source);
    EXPECT_EQ(walked(store), power(0, "1"));
  }
  EXPECT_EQ(walked(store), "");
}

TEST(Store, ShowsASeriesOnceAndPrefersTheYoungerSource) {
  Store store;
  const auto attach = [&](double value) {
    Source source = store.attach("amd");
    source.set(source.add(kPower, device(0)), value);
    source.set(source.add(kPower, device(0)), 10 * value);
    source.commit(kNow);
    return source;
  };
  Source old = attach(1);
  {
    const Source young = attach(2);
    old.set(0, 3);
    old.commit(kNow);
    EXPECT_EQ(walked(store), power(0, "2"));
  }
  EXPECT_EQ(walked(store), power(0, "3"));
}

TEST(Store, GrowsItsGenerationWithEveryChange) {
  Store store;
  std::uint64_t last = store.generation();
  const auto grew = [&] { return std::exchange(last, store.generation()) < store.generation(); };
  {
    Source source = store.attach("amd");
    source.set(source.add(kPower, device(0)), 1);
    source.commit(kNow);
    EXPECT_TRUE(grew());
    source.commit(kNow);
    EXPECT_TRUE(grew());
    source.hide();
    EXPECT_TRUE(grew());
    source.hide();
    EXPECT_FALSE(grew());
  }
  EXPECT_TRUE(grew());
  EXPECT_EQ(store.walk([](const Family&) {}), store.generation());
}

TEST(Store, ChangesTheVersionOfAFamilyWithItsListOnly) {
  Store store;
  const auto versions = [&] {
    std::vector<std::uint64_t> all;
    store.walk([&](const Family& family) { all.push_back(family.version()); });
    return all;
  };
  Source source = store.attach("amd");
  source.set(source.add(kPower, device(0)), 1);
  const Source::Slot energy = source.add(kEnergy, device(0));
  source.commit(kNow);
  const auto first = versions();
  source.set(0, 2);
  source.commit(kNow);
  source.hide();
  EXPECT_EQ(versions(), first);
  source.drop(energy);
  source.commit(kNow);
  const auto second = versions();
  EXPECT_NE(second[0], first[0]);
  EXPECT_EQ(second[1], first[1]);
}

TEST(Store, TakesFamiliesAtRunTime) {
  Store store;
  const MetricDescriptor* family = nullptr;
  {
    const std::string name = "site_rack_power_watts";
    family = *store.declare({name, std::string("Power of the rack."), "watts", MetricType::gauge});
  }
  EXPECT_EQ(*store.declare({"site_rack_power_watts", "Power of the rack.", "watts", MetricType::gauge}),
            family);
  Source source = store.attach("site");
  source.set(source.add(*family, Labels{{"rack", "7"}}), 4000);
  source.commit(kNow);
  EXPECT_EQ(walked(store), "site_rack_power_watts{rack=\"7\"} 4000\n");
}

TEST(Store, RefusesFamiliesThatPrometheusWouldOrThatCollide) {
  Store store;
  const MetricDescriptor* const known[] = {&kPower, &kEnergy, &kStep};
  store.reserve(known);
  const auto complaint = [&](MetricDescriptor family) {
    const auto result = store.declare(family);
    return result ? std::string() : result.error().message();
  };
  EXPECT_EQ(*store.declare({"gpu_power_watts", "Power.", "", MetricType::gauge}), &kPower);
  EXPECT_EQ(*store.declare({"gpu_power_watts", "", "", MetricType::gauge}), &kPower) << "any help text";
  EXPECT_EQ(complaint({"gpu_power_watts", "Another.", "watts", MetricType::gauge}),
            "family gpu_power_watts: gpu_power_watts already exists with another type or help text; use the "
            "same ones, or another name");
  EXPECT_NE(complaint({"gpu_energy_joules", "Energy.", "joules", MetricType::gauge}), "");
  EXPECT_NE(complaint({"ml_step_seconds_bucket", "Bucket.", "", MetricType::gauge}), "");
  EXPECT_NE(complaint({"", "None.", "", MetricType::gauge}), "");
  EXPECT_NE(complaint({"7_racks", "Seven.", "", MetricType::gauge}), "");
  EXPECT_EQ(complaint({"racks", "Of any form", "", MetricType::counter}), "");
  EXPECT_EQ(complaint({"seen_total", "A gauge", "", MetricType::gauge}), "");
  EXPECT_EQ(complaint({"load", "A summary", "", MetricType::summary}), "");
  EXPECT_NE(complaint({"load_sum", "Its line", "", MetricType::gauge}), "");
  std::string last;
  for (int i = 0; i <= 4000; ++i) {
    last = complaint({"rack_" + std::to_string(i) + "_power", "One.", "", MetricType::gauge});
  }
  EXPECT_THAT(last, testing::HasSubstr("4000 families are declared already, which is the limit"));
}

TEST(Store, AFamilyThatNobodyHoldsLeavesItsNameToAnother) {
  Store store;
  TextView view(store);
  const auto show = [&](const MetricDescriptor& family) {
    Source source = store.attach_guest("pages");
    source.set(source.add(family, {}), 1);
    source.commit(kNow);
    return view.render(Format::text).text;
  };
  const MetricDescriptor& gauge = **store.declare({"seen", "First.", "", MetricType::gauge});
  ASSERT_EQ(*store.declare({"seen", "First.", "", MetricType::gauge}), &gauge);
  EXPECT_EQ(show(gauge), "# HELP seen First.\n# TYPE seen gauge\nseen 1\n");
  store.release(gauge);
  EXPECT_FALSE(store.declare({"seen", "Second.", "", MetricType::counter})) << "one holder is left";
  store.release(gauge);
  const MetricDescriptor& other = **store.declare({"other", "Second.", "", MetricType::counter});
  EXPECT_EQ(show(other), "# HELP other Second.\n# TYPE other counter\nother 1\n");
}

TEST(Store, AGuestShowsNoSeriesOfAnother) {
  Store store;
  Source own = store.attach();
  own.set(own.add(kPower, Labels{{"gpu", "0"}}), 1);
  own.commit(kNow);
  Source guest = store.attach_guest("pages");
  guest.set(guest.add(kPower, Labels{{"gpu", "0"}}), 2);
  guest.set(guest.add(kPower, Labels{{"gpu", "7"}}), 7);
  guest.commit(kNow);
  EXPECT_EQ(walked(store), "gpu_power_watts{gpu=\"7\"} 7\ngpu_power_watts{gpu=\"0\"} 1\n");
}

TEST(SeriesList, IsReplacedAsAWhole) {
  Store store;
  SeriesList list(store.attach());
  const auto publish = [&](const std::vector<std::pair<unsigned, double>>& values) {
    for (const auto& [index, value] : values) list.add(kPower, Labels{{"n", std::to_string(index)}}, value);
    list.commit(kNow);
    return walked(store);
  };
  const auto line = [](int n, const char* value) {
    return "gpu_power_watts{n=\"" + std::to_string(n) + "\"} " + value + "\n";
  };
  EXPECT_EQ(publish({{1, 1}, {2, 0}}), line(1, "1") + line(2, "0"));
  EXPECT_EQ(publish({{1, 0.5}, {2, 4}}), line(1, "0.5") + line(2, "4"));
  EXPECT_EQ(publish({{0, 7}, {1, 1}, {2, 2}}), line(0, "7") + line(1, "1") + line(2, "2"));
  EXPECT_EQ(publish({{0, 7}, {2, 2}}), line(0, "7") + line(2, "2"));
  EXPECT_EQ(publish({{2, 3}}), line(2, "3"));
  EXPECT_EQ(publish({}), "");
  EXPECT_EQ(publish({{2, 3}}), line(2, "3"));
}

/// One lane: two series that always have the same value, and a third one that comes and goes.
class CommittingLane {
 public:
  CommittingLane(Store& store, unsigned index) : store_(store), labels_(device(index)) { attach(); }

  void commit(int value) {
    if (value % 500 == 0) attach();
    if (value % 7 == 0) add_or_drop();
    for (const Source::Slot slot : slots_) source_->set(slot, value);
    source_->commit(Nanoseconds(value));
    if (value % 100 == 0) source_->hide();
  }

 private:
  void attach() {
    source_ = store_.attach("amd");
    slots_ = {source_->add(kEnergy, labels_), source_->add(kPower, labels_)};
  }
  void add_or_drop() {
    if (slots_.size() == 2) {
      slots_.push_back(source_->add(kStep, labels_.with({{"n", "1"}}), SeriesPart::sum));
    } else {
      source_->drop(slots_.back());
      slots_.pop_back();
    }
  }

  Store& store_;
  const Labels labels_;
  std::optional<Source> source_;
  std::vector<Source::Slot> slots_;
};

TEST(Store, ShowsEachCommitWholeToAViewWhileEightLanesCommit) {
  Store store;
  std::atomic<bool> stop = false;
  std::vector<std::thread> lanes;
  for (unsigned index = 0; index < 8; ++index) {
    lanes.emplace_back([&, index] {
      CommittingLane lane(store, index);
      for (int i = 1; !stop; ++i) lane.commit(i);
    });
  }
  std::size_t seen = 0;
  std::uint64_t last = 0;
  for (int i = 0; i < 1000 || seen == 0; ++i) {
    std::map<unsigned, std::set<double>> values;
    const std::uint64_t generation = store.walk([&](const Family& family) {
      EXPECT_FALSE(family.descriptor().name.empty());
      family.for_each([&](const Series& series) {
        ++seen;
        EXPECT_GE(series.labels().pairs().size(), 2U);
        EXPECT_EQ(series.value(), static_cast<double>(series.committed_at().count()));
        values[series.labels().order()].insert(series.value());
      });
    });
    EXPECT_GE(generation, last);
    last = generation;
    for (const auto& [lane, of_lane] : values) EXPECT_EQ(of_lane.size(), 1U) << lane;
  }
  stop = true;
  for (std::thread& lane : lanes) lane.join();
  EXPECT_EQ(walked(store), "");
}

// Memory that is short while slots are dropped, as by destructors after a bad_alloc, must not end the
// process.
TEST(Store, SlotsAreDroppedWithoutMemory) {
  if (kIsSanitized) GTEST_SKIP() << "the sanitizer's allocator ends the process";
  constexpr int kHasNoLimit = 77;
  Store store;
  Source source = store.attach();
  std::vector<Source::Slot> slots;
  for (int i = 0; i < 10'000; ++i) slots.push_back(source.add(kPower, Labels({{"gpu", std::to_string(i)}})));
  source.commit({});
  const pid_t child = fork();
  if (child == 0) {
    const rlimit none{0, 0};
    setrlimit(RLIMIT_AS, &none);
    if (std::malloc(std::size_t{1} << 30U) != nullptr) _exit(kHasNoLimit);
    for (std::size_t size = std::size_t{1} << 20U; size >= 16; size /= 2) {
      while (std::malloc(size) != nullptr) {
      }
    }
    for (const Source::Slot slot : slots) source.drop(slot);
    _exit(0);
  }
  int status = -1;
  waitpid(child, &status, 0);
  if (WIFEXITED(status) && WEXITSTATUS(status) == kHasNoLimit) {
    GTEST_SKIP() << "there is memory beyond RLIMIT_AS: an emulator does not limit it";
  }
  EXPECT_EQ(status, 0);
}

TEST(Frame, StartsWithNothingRead) {
  const Frame frame(3);
  ASSERT_EQ(frame.size(), 3U);
  for (const ReadStatus status : frame.statuses()) EXPECT_EQ(status, ReadStatus::unsupported);
}

TEST(Frame, HoldsWhatTheSinkIsGiven) {
  Frame frame(2);
  SampleSink sink = frame.sink();
  sink.set(0, 42.5);
  sink.miss(1, ReadStatus::timeout);
  EXPECT_EQ(frame.values()[0], 42.5);
  EXPECT_EQ(frame.statuses()[0], ReadStatus::ok);
  EXPECT_EQ(frame.statuses()[1], ReadStatus::timeout);
}

TEST(Frame, LiesInOnePiece) {
  const Frame frame(5);
  const auto* values_end = reinterpret_cast<const std::byte*>(frame.values().data() + 5);
  EXPECT_EQ(values_end, reinterpret_cast<const std::byte*>(frame.statuses().data()));
}

TEST(Frame, IsCopiedAsAWhole) {
  Frame from(2);
  from.sink().set(1, -1);
  Frame to(2);
  to.sink().set(0, 7);
  to.copy_from(from);
  EXPECT_EQ(to.statuses()[0], ReadStatus::unsupported);
  EXPECT_EQ(to.statuses()[1], ReadStatus::ok);
  EXPECT_EQ(to.values()[1], -1);
}

TEST(Frame, StaysAsItIsWhenTheOtherHasAnotherSize) {
  Frame to(1);
  to.sink().set(0, 7);
  to.copy_from(Frame(2));
  EXPECT_EQ(to.values()[0], 7);
  EXPECT_EQ(to.statuses()[0], ReadStatus::ok);
}

TEST(Frame, KeepsItsPlaceWhenMoved) {
  Frame frame(1);
  frame.sink().set(0, 7);
  const Frame moved = std::move(frame);
  EXPECT_EQ(moved.values()[0], 7);
  EXPECT_EQ(moved.statuses()[0], ReadStatus::ok);
}

TEST(Frame, MayHaveNoSlot) { EXPECT_EQ(Frame(0).size(), 0U); }

}  // namespace
}  // namespace gpumeter
