#include "config/keys.hpp"

#include <gtest/gtest.h>

#include <set>

namespace gpumeter::config {
namespace {

using Values = std::vector<std::string>;

TEST(Keys, HaveAPathOfTheirOwnAndAFullStop) {
  std::set<std::string_view> paths;
  const std::vector<Key> all = keys();
  for (const Key& key : all) {
    EXPECT_TRUE(paths.insert(key.path).second) << key.path;
    EXPECT_TRUE(key.help.ends_with('.')) << key.path;
    EXPECT_EQ(find_key(all, key.path), &key);
  }
  EXPECT_EQ(find_key(all, "web"), nullptr);
}

TEST(Keys, CanBeSetFromOutsideOfTheFile) {
  Config config;
  EXPECT_EQ(set(keys(), config, "web.listen", Values{":1", ":2"}), std::nullopt);
  EXPECT_EQ(set(keys(), config, "log.level", Values{"warn"}), std::nullopt);
  EXPECT_EQ(set(keys(), config, "workloads.enabled", Values{"false"}), std::nullopt);
  EXPECT_EQ(set(keys(), config, "workloads.processes", Values{"true"}), std::nullopt);
  Config expected;
  expected.web.listen = {":1", ":2"};
  expected.log.level = LogLevel::warn;
  expected.workloads = {false, true};
  EXPECT_EQ(config, expected);
}

TEST(Keys, StayAsTheyAreWhereAValueIsRefused) {
  Config config;
  EXPECT_EQ(set(keys(), config, "log.level", Values{"loud"}),
            "must be debug, info, warn or error, not \"loud\"");
  EXPECT_EQ(set(keys(), config, "web.listen", Values{":1", "x"}),
            "must be host:port, such as localhost:10478, [::1]:10478 or :10478, or unix:/path, not \"x\"");
  EXPECT_EQ(set(keys(), config, "log.level", Values{"info", "warn"}), "must be one value");
  EXPECT_EQ(set(keys(), config, "workloads.enabled", Values{"auto"}), "must be true or false, not \"auto\"");
  EXPECT_EQ(set(keys(), config, "workloads.enabled", Values{"1"}), "must be true or false, not \"1\"");
  EXPECT_EQ(set(keys(), config, "log.loudness", Values{"1"}), "is not a key of the configuration");
  EXPECT_EQ(config, Config{});
}

TEST(Keys, SayWhichChangesNeedARestart) {
  Config wanted;
  wanted.web.listen = {":1"};
  wanted.paths.state = "/x";
  wanted.workloads.processes = true;
  wanted.device_labels = {.vendor = false};
  wanted.sampling.fast = Duration(2'000);
  wanted.log.level = LogLevel::debug;
  wanted.devices.names = {{"a", "b"}};
  wanted.collectors["amd"].enabled = Enabled::off;
  wanted.jobs.users = {"alice"};
  wanted.job_limits.series = 1;
  wanted.jobs.socket = "/x";
  EXPECT_EQ(restart_needed(Config{}, wanted),
            (Values{"web.listen", "device_labels", "workloads.processes", "paths.state", "jobs.socket"}));
  EXPECT_EQ(restart_needed(wanted, wanted), Values{});
}

}  // namespace
}  // namespace gpumeter::config
