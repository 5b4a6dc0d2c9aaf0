#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>

#include "daemon/fleet/device_directory.hpp"
#include "programs/commands/commands.hpp"
#include "tests/fakes/tree.hpp"

namespace gpumeter {
namespace {

using Verb = AllocateOptions::Verb;

class AllocateTest : public testing::Test {
 protected:
  Result<std::string> run(Verb verb, const std::string& name, std::vector<std::string> gpus = {}) const {
    AllocateOptions options;
    options.verb = verb;
    options.workload.name = name;
    options.gpus = std::move(gpus);
    return allocate(options, tree_ / "manual", tree_ / "state");
  }
  std::vector<manual::Grant> grants() const { return *manual::read_grants(tree_ / "manual"); }

  Tree tree_ = make_tree({});
};

TEST_F(AllocateTest, WritesWhatTheDaemonReads) {
  DeviceDirectory directory(tree_ / "state");
  DeviceInfo info;
  info.uuid = "GPU-5";
  directory.admit("nvidia", info, 5, {});
  std::filesystem::create_directory(tree_ / "state");
  ASSERT_TRUE(directory.save());

  ASSERT_TRUE(run(Verb::set, "lab", {"5", "MIG-1"}));
  ASSERT_EQ(grants().size(), 1U);
  EXPECT_EQ(grants()[0].gpus, (std::vector<std::string>{"GPU-5", "MIG-1"}));
  ASSERT_TRUE(run(Verb::set, "lab", {"GPU-9"}));
  EXPECT_EQ(grants()[0].gpus, std::vector<std::string>{"GPU-9"});
  EXPECT_TRUE(run(Verb::clear, "lab"));
  EXPECT_TRUE(grants().empty());
  EXPECT_FALSE(run(Verb::clear, "lab"));
}

TEST_F(AllocateTest, RejectsUnknownIndexesWrongNamesAndRepetitions) {
  EXPECT_FALSE(run(Verb::set, "lab", {"5"}));
  EXPECT_FALSE(run(Verb::set, "../lab", {"GPU-1"}));
  EXPECT_FALSE(run(Verb::set, "lab", {"GPU-1", "GPU-1"}));
  EXPECT_EQ(*run(Verb::list, ""), "no GPU is allocated by hand\n");
}

TEST_F(AllocateTest, DoesNotWriteInAFolderOfAnybody) {
  tree_.write("manual/x", "");
  ASSERT_EQ(chmod((tree_ / "manual").c_str(), 0777), 0);
  EXPECT_FALSE(run(Verb::set, "lab", {"GPU-1"}));
  EXPECT_FALSE(run(Verb::list, ""));
}

}  // namespace
}  // namespace gpumeter
