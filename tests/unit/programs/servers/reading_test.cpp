#include "programs/servers/reading.hpp"

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>
#include <utility>

#include "tests/fakes/places.hpp"

namespace gpumeter::servers {
namespace {

std::string fixture(const std::string& name) {
  std::ifstream file(places::in_tests("fixtures/servers/" + name + ".prom"));
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

void put(std::ostringstream& out, const char* name, std::optional<double> value) {
  if (value) out << ' ' << name << '=' << *value;
}

std::string text_of(const std::string& page) {
  const std::optional<ServerReading> reading = read_page(page);
  if (!reading) return "none";
  std::ostringstream out;
  out.precision(12);
  out << reading->kind << " '" << reading->model << "'";
  put(out, "in", reading->input_tokens);
  put(out, "out", reading->output_tokens);
  put(out, "requests", reading->requests);
  put(out, "running", reading->running);
  put(out, "waiting", reading->waiting);
  put(out, "cache", reading->cache_ratio);
  if (!reading->first_token) return out.str();
  for (const auto& [bound, count] : reading->first_token->buckets) out << ' ' << bound << ':' << count;
  out << " sum=" << reading->first_token->sum << " count=" << reading->first_token->count;
  return out.str();
}

TEST(ReadPage, OfVllmSumsItsEnginesAndTakesOneOfTwoNames) {
  EXPECT_EQ(
      text_of(fixture("vllm")),
      "vllm 'Qwen/Qwen3-8B' in=3000 out=7307644 requests=32 running=7 waiting=11 cache=0.375 0.001:0 "
      "0.005:0 0.01:0 0.02:0 0.04:3 0.06:6 0.08:9 0.1:12 0.25:15 0.5:18 0.75:21 1:24 2.5:27 5:30 7.5:33 "
      "10:33 20:33 40:33 80:33 160:33 640:33 2560:33 sum=3.75 count=33");
  EXPECT_EQ(text_of("vllm:gpu_cache_usage_perc{model_name=\"a\"} 0.75\n"), "vllm 'a' cache=0.75");
}

TEST(ReadPage, OfSglang) {
  EXPECT_EQ(text_of(fixture("sglang")),
            "sglang 'meta-llama/Llama-3.1-8B-Instruct' in=8128902 out=7557572 requests=11228 running=162 "
            "waiting=2826 cache=0.28 0.001:0 0.005:0 0.01:0 0.02:0 0.04:1 0.06:3 0.08:6 0.1:6 0.25:6 0.5:6 "
            "0.75:6 1:27 2.5:140 5:314 7.5:941 10:1330 15:1970 20:2326 25:2417 30:2513 sum=2351897.94741 "
            "count=11008");
}

TEST(ReadPage, OfSglangCountsNoRankAndNoPriorityTwice) {
  EXPECT_EQ(text_of(fixture("sglang_ranks")),
            "sglang 'm' out=150 requests=4 waiting=6 cache=0.4 0.5:3 sum=1.75 count=4");
}

TEST(ReadPage, OfSglangCountsTheRequestsOfAllPriorities) {
  EXPECT_EQ(text_of(fixture("sglang_priorities")),
            "sglang 'tiny' in=60 out=9 requests=3 running=2 waiting=5 cache=0.25 0.5:2 sum=1.75 count=3");
}

TEST(ReadPage, OfTgiWhichHasNoTimeToFirstToken) {
  EXPECT_EQ(text_of(fixture("tgi")), "tgi '' in=900 out=8123 requests=40 running=5 waiting=3");
}

TEST(ReadPage, OfLlamaCpp) {
  EXPECT_EQ(text_of(fixture("llama")), "llama.cpp '' in=1250 out=900 running=2 waiting=1");
}

TEST(ReadPage, OfTritonAndItsBackends) {
  EXPECT_EQ(text_of(fixture("triton")), "triton 'm' requests=4 waiting=0");
  EXPECT_EQ(text_of(fixture("triton_vllm")),
            "triton 'vllm_model' in=10 out=16 requests=1 waiting=0 0.001:0 sum=0.0323312282562 count=1");
  EXPECT_EQ(
      text_of(fixture("triton_trtllm")),
      "triton 'tensorrt_llm' in=20 out=36 requests=10 running=1 waiting=2 cache=0.4875 0.1:8 0.5:30 2:36 "
      "5:37 sum=10.771 count=37");
}

TEST(ReadPage, OfAnotherProgramIsNone) {
  EXPECT_EQ(text_of(""), "none");
  EXPECT_EQ(text_of("<html>vllm:num_requests_running 3</html>"), "none");
  EXPECT_EQ(text_of("# vllm:num_requests_running 3\ngo_goroutines 7\nvllm:num_requests_running_x 3\n"),
            "none");
}

TEST(ReadPage, TakesOpenMetricsAndOddSpacing) {
  EXPECT_EQ(text_of("  vllm:prompt_tokens_total{ model_name = \"a\\\"\\\\\\n\" , x=\"{\" , } 5 1700000000 # "
                    "{a=\"b\"} 1\r\n"),
            "vllm 'a\"\\\xEF\xBF\xBD' in=5");
  EXPECT_EQ(text_of("llamacpp:prompt_tokens_total\t+1e3\n"), "llama.cpp '' in=1000");
}

TEST(ReadPage, OmitsFiguresThatCannotBe) {
  EXPECT_EQ(text_of("vllm:num_requests_running NaN\nvllm:num_requests_waiting -1\n"
                    "vllm:prompt_tokens_total 1e308\nvllm:prompt_tokens_total{engine=\"1\"} 1e308\n"
                    "vllm:generation_tokens_total 1\n"),
            "vllm '' out=1");
}

/// A page with a histogram of these lines.
std::string of_histogram(const std::string& lines) {
  std::string page = "vllm:num_requests_running 1\n";
  std::istringstream in(lines);
  for (std::string line; std::getline(in, line);) page += "vllm:time_to_first_token_seconds_" + line + "\n";
  return text_of(page);
}

TEST(ReadPage, OmitsAHistogramThatContradictsItself) {
  const std::string none = "vllm '' running=1";
  const std::string end = "bucket{le=\"+Inf\"} 2\nsum 3\ncount 2\n";
  EXPECT_EQ(of_histogram("bucket{le=\"1\"} 1\n" + end), none + " 1:1 sum=3 count=2");
  EXPECT_EQ(of_histogram("bucket{le=\"1\"} 3\n" + end), none) << "it decreases";
  EXPECT_EQ(of_histogram("bucket{le=\"1\"} NaN\n" + end), none);
  EXPECT_EQ(of_histogram("bucket{le=\"1\"} 1\nsum 3\ncount 2\n"), none) << "without +Inf";
  EXPECT_EQ(of_histogram("bucket{le=\"1\"} 1\nbucket{le=\"+Inf\"} 2\ncount 2\n"), none) << "without a sum";
  EXPECT_EQ(of_histogram("bucket{le=\"+Inf\"} 2\nsum 3\ncount 4\n"), none);
  const std::string other =
      "bucket{e=\"1\",le=\"2\"} 1\nbucket{e=\"1\",le=\"+Inf\"} 2\nsum{e=\"1\"} 3\ncount{e=\"1\"} 2\n";
  EXPECT_EQ(of_histogram("bucket{le=\"1\"} 1\n" + end + other), none) << "two engines with different bounds";
  std::string many;
  for (int i = 0; i < 100; ++i) many += "bucket{le=\"" + std::to_string(i) + "\"} 1\n";
  EXPECT_EQ(of_histogram(many + end), none);
}

}  // namespace
}  // namespace gpumeter::servers
