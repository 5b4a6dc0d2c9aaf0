#include "collectors/jobs/wire/vocabulary.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <set>
#include <string>

namespace gpumeter::jobs {
namespace {

std::string chosen(std::string_view name, std::string_view tags) {
  const Word& word = *find_word(name);
  const auto choice = choose(word, Tags(tags));
  if (const auto* refusal = std::get_if<Refusal>(&choice)) return std::string(to_string(*refusal));
  std::string text;
  for (const Label& label : labels_of(word, std::get<LabelChoice>(choice)))
    text += label.name + '=' + label.value + ' ';
  return text;
}

std::string types_of(const Word& word) {
  constexpr std::pair<LineType, std::string_view> kTypes[] = {
      {LineType::count, "c"},     {LineType::gauge, "g"},        {LineType::timer, "ms"},
      {LineType::histogram, "h"}, {LineType::distribution, "d"}, {LineType::set, "s"}};
  std::string text;
  for (const auto& [type, name] : kTypes) {
    if (takes(word, type)) text += ' ' + std::string(name);
  }
  return text;
}

TEST(Vocabulary, NamesFamiliesAndTypes) {
  std::string text;
  for (const Word& word : vocabulary()) {
    text += std::string(word.name) + " -> " + std::string(word.family->name) + types_of(word) +
            (takes(word, -1.0) ? "" : " >=0") + '\n';
  }
  EXPECT_EQ(text, R"(ml.steps -> ml_steps_total c >=0
ml.step -> ml_step g >=0
ml.samples -> ml_samples_total c >=0
ml.tokens -> ml_tokens_total c >=0
ml.flops -> ml_model_flops_total c >=0
ml.phase.seconds -> ml_phase_seconds_total ms h d >=0
ml.step.seconds -> ml_step_duration_seconds ms h d >=0
ml.infer.seconds -> ml_inference_duration_seconds ms h d >=0
ml.ttft.seconds -> ml_time_to_first_token_seconds ms h d >=0
ml.itl.seconds -> ml_inter_token_latency_seconds ms h d >=0
ml.loss -> ml_loss g
ml.batch_size -> ml_batch_size g >=0
ml.world_size -> ml_world_size g >=0
ml.memory -> ml_allocator_memory_bytes g >=0
ml.oom -> ml_out_of_memory_errors_total c >=0
ml.target -> ml_target_value g
ml.eval -> ml_eval_value g
ml.custom -> ml_custom g
)");
  EXPECT_EQ(find_word("ml.stepz"), nullptr);
  EXPECT_EQ(find_word(""), nullptr);
}

TEST(Vocabulary, LabelsAreClosedSets) {
  EXPECT_EQ(chosen("ml.steps", ""), "split=train ");
  EXPECT_EQ(chosen("ml.steps", "split:infer,pid:1,uuid:GPU-0,gpu:0"), "split=infer ");
  EXPECT_EQ(chosen("ml.steps", "split:mine"), "bad_label");
  EXPECT_EQ(chosen("ml.tokens", "kind:output,split:eval"), "split=eval kind=output ");
  EXPECT_EQ(chosen("ml.flops", ""), "");
  EXPECT_EQ(chosen("ml.flops", "dtype:bf16"), "dtype=bf16 ");
  EXPECT_EQ(chosen("ml.flops", "dtype:bf17"), "bad_label");
  EXPECT_EQ(chosen("ml.phase.seconds", "phase:data_loading"), "phase=data_loading ");
  EXPECT_EQ(chosen("ml.phase.seconds", "phase:augmentation"), "phase=other ");
  EXPECT_EQ(chosen("ml.step", "split:eval"), "");
  EXPECT_EQ(chosen("ml.memory", "state:peak"), "state=peak ");
  EXPECT_EQ(chosen("ml.memory", ""), "state=allocated ");
  EXPECT_EQ(chosen("ml.memory", "state:cached"), "bad_label");
}

TEST(Vocabulary, Direction) {
  EXPECT_EQ(std::get<0>(lower_is_better(Tags(""))), std::nullopt);
  EXPECT_EQ(std::get<0>(lower_is_better(Tags("direction:min"))), true);
  EXPECT_EQ(std::get<0>(lower_is_better(Tags("direction:max"))), false);
  EXPECT_EQ(std::get<1>(lower_is_better(Tags("direction:up"))), Refusal::bad_label);
}

TEST(Vocabulary, EachReasonHasAName) {
  std::set<std::string_view> names;
  for (std::size_t i = 0; i < kRefusalCount; ++i) names.insert(to_string(static_cast<Refusal>(i)));
  EXPECT_EQ(names.size(), kRefusalCount);
  EXPECT_FALSE(names.contains(""));
}

struct Set {
  const char* name;
  Bounds bounds;
  double from, to;  ///< range in which quantiles must be within 10 %
};

const Set kSets[] = {{"steps", find_word("ml.step.seconds")->bounds, 0.0005, 600},
                     {"requests", find_word("ml.infer.seconds")->bounds, 0.001, 600},
                     {"first tokens", find_word("ml.ttft.seconds")->bounds, 0.004, 120},
                     {"between tokens", find_word("ml.itl.seconds")->bounds, 0.0005, 1}};

/// The result of histogram_quantile for a run with the constant duration `seconds`: one bucket has all of
/// them.
double quantile_of_constant(Bounds bounds, double seconds, double share) {
  const auto above = std::ranges::lower_bound(bounds.all, seconds);
  const double below = above == bounds.all.begin() ? 0 : *std::prev(above);
  return below + share * (*above - below);
}

TEST(Buckets, AQuantileOfAConstantIsWithinTenPercent) {
  for (const Set& set : kSets) {
    double worst = 0;
    for (double seconds = set.from; seconds <= set.to; seconds *= 1.0007) {
      for (const double share : {0.5, 0.95, 0.99}) {
        const double error = quantile_of_constant(set.bounds, seconds, share) / seconds - 1;
        worst = std::max(worst, std::abs(error));
      }
    }
    EXPECT_LT(worst, 0.091) << set.name;
    EXPECT_GT(worst, 0.08) << set.name << ": more bounds than that takes";
  }
}

TEST(Buckets, TextsAreTheValuesAndAscend) {
  for (const Set& set : kSets) {
    double before = 0;
    for (const double bound : set.bounds.all) {
      const std::string text = bound_text(bound);
      EXPECT_EQ(std::strtod(text.c_str(), nullptr), bound) << text;
      EXPECT_GT(bound, before);
      EXPECT_NE(text.find('.'), std::string::npos) << text;  // OpenMetrics requires it
      before = bound;
    }
  }
}

TEST(Buckets, AreAsManyAsTheLimitsOfSeriesAreMadeFor) {
  EXPECT_EQ(find_word("ml.step.seconds")->bounds.classic(), 167U);
  EXPECT_EQ(find_word("ml.infer.seconds")->bounds.classic(), 159U);
  EXPECT_EQ(find_word("ml.ttft.seconds")->bounds.classic(), 127U);
  EXPECT_EQ(find_word("ml.itl.seconds")->bounds.classic(), 99U);
}

std::string read(std::string_view tags) {
  const FactsRead read = read_facts(Tags(tags));
  std::string text;
  for (const Label& label : labels_of(read.facts)) text += label.name + '=' + label.value + ' ';
  return text + std::to_string(read.refused);
}

TEST(RunFacts, AreTagsInAnyOrder) {
  EXPECT_EQ(read(""), "0");
  EXPECT_EQ(read("split:train,run:a"), "0");
  EXPECT_EQ(read("model:llama,framework:pytorch,version:2.8,sharding:fsdp,precision:bf16,data_parallel:8,"
                 "tensor_parallel:2,pipeline_parallel:1"),
            "framework=pytorch version=2.8 model=llama precision=bf16 sharding=fsdp data_parallel=8 "
            "tensor_parallel=2 pipeline_parallel=1 0");
  EXPECT_EQ(read("model:a\tb"),
            "model=a\xEF\xBF\xBD"
            "b 0");
}

TEST(RunFacts, PrecisionAndShardingAreClosedSets) {
  EXPECT_EQ(read("precision:bf17,sharding:ddp,model:a"), "model=a 2");
  EXPECT_EQ(read("precision:BF16"), "1");
  EXPECT_EQ(read("precision:mixed,sharding:zero3"), "precision=mixed sharding=zero3 0");
}

TEST(RunFacts, ASizeHasOneSpelling) {
  for (const std::string_view size : {"0", "08", "-1", "+1", "1.0", "1e3", " 1", "1000000", "eight"}) {
    EXPECT_EQ(read("data_parallel:" + std::string(size)), "1") << size;
  }
  EXPECT_EQ(read("data_parallel:999999"), "data_parallel=999999 0");
  EXPECT_EQ(read("data_parallel:"), "0");
}

}  // namespace

}  // namespace gpumeter::jobs
