#include "collectors/jobs/wire/run_facts.hpp"

#include <gtest/gtest.h>

#include <string>

namespace gpumeter::jobs {
namespace {

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
