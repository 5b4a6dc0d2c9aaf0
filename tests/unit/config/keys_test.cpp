#include "config/keys.hpp"

#include <gtest/gtest.h>

#include <set>

#include "base/log.hpp"
#include "base/paths.hpp"
#include "collectors/attribution/workload_settings.hpp"
#include "collectors/jobs/intake/settings.hpp"
#include "daemon/fleet/settings.hpp"
#include "daemon/setup.hpp"
#include "exporter/http/settings.hpp"

namespace gpumeter::config {
namespace {

using Values = std::vector<std::string>;

TEST(Keys, HaveAPathOfTheirOwnAndAFullStop) {
  std::set<std::string_view> paths;
  const std::vector<Key> all = keys(schema());
  for (const Key& key : all) {
    EXPECT_TRUE(paths.insert(key.path).second) << key.path;
    EXPECT_TRUE(key.help.ends_with('.')) << key.path;
    EXPECT_EQ(find_key(all, key.path), &key);
  }
  EXPECT_EQ(find_key(all, "web"), nullptr);
}

TEST(Keys, CanBeSetFromOutsideOfTheFile) {
  Config config;
  EXPECT_EQ(set(keys(schema()), config, "web.listen", Values{":1", ":2"}), std::nullopt);
  EXPECT_EQ(set(keys(schema()), config, "log.level", Values{"warn"}), std::nullopt);
  EXPECT_EQ(set(keys(schema()), config, "workloads.enabled", Values{"false"}), std::nullopt);
  EXPECT_EQ(set(keys(schema()), config, "workloads.processes", Values{"true"}), std::nullopt);
  Config expected;
  expected.edit<HttpSettings>().listen = {":1", ":2"};
  expected.edit<Logging>().level = LogLevel::warn;
  expected.edit<WorkloadOptions>() = {false, true};
  EXPECT_EQ(config, expected);
}

TEST(Keys, StayAsTheyAreWhereAValueIsRefused) {
  Config config;
  EXPECT_EQ(set(keys(schema()), config, "log.level", Values{"loud"})->text,
            "must be debug, info, warn or error, not \"loud\"");
  EXPECT_EQ(set(keys(schema()), config, "web.listen", Values{":1", "x"})->text,
            "must be host:port, such as localhost:10478, [::1]:10478 or :10478, or unix:/path, not \"x\"");
  EXPECT_EQ(set(keys(schema()), config, "log.level", Values{"info", "warn"})->text, "must be one value");
  EXPECT_EQ(set(keys(schema()), config, "workloads.enabled", Values{"auto"})->text,
            "must be true or false, not \"auto\"");
  EXPECT_EQ(set(keys(schema()), config, "workloads.enabled", Values{"1"})->text,
            "must be true or false, not \"1\"");
  EXPECT_EQ(set(keys(schema()), config, "log.loudness", Values{"1"})->text,
            "is not a key of the configuration");
  EXPECT_EQ(config, Config{});
}

TEST(Keys, SayWhichChangesNeedARestart) {
  Config wanted;
  wanted.edit<HttpSettings>().listen = {":1"};
  wanted.edit<Paths>().state = "/x";
  wanted.edit<WorkloadOptions>().processes = true;
  wanted.edit<DeviceLabels>() = {.vendor = false};
  wanted.edit<SamplingIntervals>().fast = Duration(2'000);
  wanted.edit<Logging>().level = LogLevel::debug;
  wanted.edit<DeviceOptions>().names = {{"a", "b"}};
  wanted.collectors["amd"].enabled = Enabled::off;
  wanted.edit<jobs::Settings>().users = {"alice"};
  wanted.edit<jobs::Limits>().series = 1;
  wanted.edit<jobs::Settings>().sockets.datagram = "/x";
  EXPECT_EQ(restart_needed(schema(), Config{}, wanted),
            (Values{"web.listen", "device_labels", "workloads.processes", "paths.state", "jobs.socket"}));
  EXPECT_EQ(restart_needed(schema(), wanted, wanted), Values{});
}

}  // namespace
}  // namespace gpumeter::config
