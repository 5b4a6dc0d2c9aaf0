#include <gtest/gtest.h>

#include <limits>
#include <vector>

#include "exporter/json/api.hpp"
#include "exporter/store/series_list.hpp"

namespace gpumeter {
namespace {

using Limits = std::numeric_limits<double>;

constexpr MetricDescriptor kPower{"gpu_power_watts", "Power.", "watts", MetricType::gauge};
constexpr MetricDescriptor kUp{"gpu_up", "Up.", "", MetricType::gauge};
constexpr MetricDescriptor kStep{"ml_step_seconds", "Step.", "seconds", MetricType::histogram};

class SeriesJsonTest : public testing::Test {
 protected:
  void SetUp() override {
    series_.add(kPower, {{"gpu", "0"}, {"sensor", "board"}}, 301.5);
    series_.add(kPower, {{"gpu", "1"}}, Limits::infinity());
    series_.add(kUp, {{"gpu", "0"}, {"name", "a \"b\" \\ \xff"}}, 1);
    series_.add(kStep, {{"le", "+Inf"}}, 3, SeriesPart::bucket);
    series_.add(kStep, {}, Limits::quiet_NaN(), SeriesPart::sum);
    series_.commit(std::chrono::seconds(100));
  }
  std::string json(const std::vector<std::string_view>& match) {
    const auto body = series_json(store_, match, std::chrono::milliseconds(100'500));
    return body ? *body : body.error().message();
  }
  static std::string series(const std::vector<std::string>& lines) {
    std::string body = "{\"series\":[";
    for (const std::string& line : lines) body += (body.ends_with('[') ? "\n" : ",\n") + line;
    return body + "\n]}\n";
  }
  static std::string line(const char* name, const char* labels, const char* value, const char* unit,
                          const char* type) {
    return std::string("{\"name\":\"") + name + "\",\"labels\":{" + labels + "},\"value\":" + value +
           ",\"unit\":\"" + unit + "\",\"type\":\"" + type + "\",\"age_seconds\":0.5}";
  }

  const std::string power0_ =
      line("gpu_power_watts", R"("gpu":"0","sensor":"board")", "301.5", "watts", "gauge");
  const std::string power1_ = line("gpu_power_watts", R"("gpu":"1")", "\"+Inf\"", "watts", "gauge");
  const std::string up_ = line("gpu_up", R"("gpu":"0","name":"a \"b\" \\ \ufffd")", "1", "", "gauge");
  const std::string bucket_ = line("ml_step_seconds_bucket", R"("le":"+Inf")", "3", "seconds", "histogram");
  const std::string sum_ = line("ml_step_seconds_sum", "", "\"NaN\"", "seconds", "histogram");
  Store store_;
  SeriesList series_{store_.attach("amd")};
};

TEST_F(SeriesJsonTest, ListsAllWithoutAMatch) {
  EXPECT_EQ(json({}), series({power0_, power1_, up_, bucket_, sum_}));
}

TEST_F(SeriesJsonTest, SelectsByNameAndLabels) {
  EXPECT_EQ(json({"gpu_power_watts"}), series({power0_, power1_}));
  EXPECT_EQ(json({"gpu_power_watts{gpu=\"1\"}"}), series({power1_}));
  EXPECT_EQ(json({"gpu_power_watts{sensor!=\"board\"}"}), series({power1_}));
  EXPECT_EQ(json({"{gpu=\"0\"}"}), series({power0_, up_}));
  EXPECT_EQ(json({"{ gpu = \"0\" , sensor != \"\", } "}), series({power0_}));
  EXPECT_EQ(json({"{__name__=\"gpu_up\"}"}), series({up_}));
  EXPECT_EQ(json({"gpu_up{name=\"a \\\"b\\\" \\\\ \xff\"}"}), series({up_}));
  EXPECT_EQ(json({"gpu_up", "gpu_power_watts{gpu=\"1\"}", "gpu_up"}), series({power1_, up_}));
  EXPECT_EQ(json({"gpu_down"}), series({}));
}

TEST_F(SeriesJsonTest, SelectsAHistogramAsAWholeOrByItsParts) {
  EXPECT_EQ(json({"ml_step_seconds"}), series({bucket_, sum_}));
  EXPECT_EQ(json({"ml_step_seconds_sum"}), series({sum_}));
}

TEST_F(SeriesJsonTest, RefusesWhatDoesNotParse) {
  EXPECT_EQ(json({"gpu_up", "gpu_up{gpu=0}"}),
            "match=gpu_up{gpu=0}: use a name, label matchers with = or !=, or both, such as "
            "gpu_power_watts{gpu=\"0\",sensor!=\"board\"}; repeat match for alternatives");
  for (const std::string_view wrong :
       {"", " ", "{}", "a b", "a{", "a{b}", "a{b=\"}", "a{b=\"c\"", "a{b=\"c\"}d", "a{=\"c\"}", "a{b=~\"c\"}",
        "a{b=\"c\" d=\"e\"}", "a{,}", "a{b=\"\\"}) {
    EXPECT_TRUE(json({wrong}).starts_with("match=")) << wrong;
  }
}

TEST_F(SeriesJsonTest, ShowsAFamilyThatIsDeclaredAtRunTime) {
  const auto rack = store_.declare({"site_rack_power_watts", "Power of a rack.", "watts", MetricType::gauge});
  ASSERT_TRUE(rack);
  SeriesList site(store_.attach("site"));
  site.add(**rack, {{"rack", "7"}}, 4e6);
  site.commit(std::chrono::seconds(100));
  EXPECT_EQ(json({"site_rack_power_watts"}),
            series({line("site_rack_power_watts", R"("rack":"7")", "4e+06", "watts", "gauge")}));
}

WorkloadCost job() {
  WorkloadCost cost{"slurm_job", "4711", {{"user", "alice"}, {"user", "hidden"}}, {}, {}, true, {}};
  cost.begun = std::chrono::milliseconds(1700000000500);
  cost.seen = std::chrono::milliseconds(1700000060500);
  cost.devices.push_back({"GPU-1", 0, 15000.5, 60, 45, 15, 1024, {{"power", 3.5}, {"thermal", 0}}});
  cost.devices.push_back({"GPU-2", 1, {}, 40, {}, {}, 2048, {}});
  return cost;
}

TEST(WorkloadsJson, HasTheSumsAndTheDevices) {
  EXPECT_EQ(
      workloads_json(std::vector{job()}),
      "{\"workloads\":[\n"
      "{\"kind\":\"slurm_job\",\"workload\":\"4711\",\"state\":\"ended\","
      "\"start_timestamp_seconds\":1700000000.5,\"end_timestamp_seconds\":1700000060.5,"
      "\"labels\":{\"user\":\"alice\"},\n"
      "  \"joules\":15000.5,\"gpu_seconds\":100,\"busy_seconds\":45,\"busy_ratio\":0.75,\"idle_ratio\":0.25,"
      "\"peak_memory_bytes\":2048,\"throttled_seconds\":{\"power\":3.5,\"thermal\":0},\n"
      "  \"devices\":[{\"gpu\":\"0\",\"uuid\":\"GPU-1\",\"joules\":15000.5,\"gpu_seconds\":60,"
      "\"busy_seconds\":45,\"busy_ratio\":0.75,\"idle_ratio\":0.25,\"peak_memory_bytes\":1024,"
      "\"throttled_seconds\":{\"power\":3.5,\"thermal\":0}},\n"
      "   {\"gpu\":\"1\",\"uuid\":\"GPU-2\",\"joules\":null,\"gpu_seconds\":40,\"busy_seconds\":null,"
      "\"busy_ratio\":null,\"idle_ratio\":null,\"peak_memory_bytes\":2048,\"throttled_seconds\":{}}]}\n"
      "]}\n");
  EXPECT_EQ(workloads_json({}), "{\"workloads\":[\n]}\n");
}

TEST(WorkloadsJson, ARunningOneHasNoEnd) {
  WorkloadCost running = job();
  running.has_ended = false;
  const std::string text = workloads_json(std::vector{running});
  EXPECT_NE(text.find("\"state\":\"running\""), std::string::npos);
  EXPECT_NE(text.find("\"end_timestamp_seconds\":null"), std::string::npos);
}

TEST(WorkloadsJson, ALineForALog) {
  EXPECT_EQ(workload_line(job()),
            "kind=slurm_job workload=4711 state=ended user=alice gpus=2 gpu_seconds=100 busy_ratio=0.75 "
            "idle_ratio=0.25 busy_seconds=45 joules=15000.5 peak_memory_bytes=2048 "
            "throttled_power_seconds=3.5\n");
  WorkloadCost named = job();
  named.labels = {
      {"slurm_account", "nlp"}, {"slurm_job", "4711"}, {"slurm_job_name", "bert"}, {"user", "alice"}};
  EXPECT_TRUE(workload_line(named).starts_with(
      "kind=slurm_job workload=4711 state=ended slurm_account=nlp slurm_job_name=bert user=alice gpus=2 "));
  WorkloadCost odd;
  odd.kind = "other";
  odd.workload = "a b\"c";
  EXPECT_EQ(workload_line(odd), "kind=other workload=\"a b\\\"c\" state=running gpus=0 gpu_seconds=0\n");
}

}  // namespace
}  // namespace gpumeter
