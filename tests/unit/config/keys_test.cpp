#include "config/keys.hpp"

#include <gtest/gtest.h>

#include <set>
#include <vector>

#include "base/log.hpp"
#include "base/options.hpp"
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

using Kind = OptionSchema::Kind;

TEST(ConfigurationMarkdown, HasALineForEveryKey) {
  const std::string page = configuration_markdown(schema());
  for (const Key& key : keys(schema())) {
    EXPECT_NE(page.find("\n| `" + std::string(key.path) + "` | " + std::string(key.type) + " | `" +
                        key.show(defaults(schema())) + "` | " +
                        (key.reload == options::Reload::applies ? "yes" : "no") + " | " +
                        std::string(key.help) + " |\n"),
              std::string::npos)
        << key.path;
  }
}

TEST(ConfigurationMarkdown, EndsWithTheCollectors) {
  const Schema known = {.collectors = {{"toy",
                                        {{"size", Kind::integer, "3", "a|b."},
                                         {"name", Kind::text, "", "Its name."},
                                         {"events", Kind::list, "", "What happens."}}}}};
  const std::string page = configuration_markdown(known);
  EXPECT_EQ(page.substr(page.find("\n## collectors.toy")),
            "\n## collectors.toy\n"
            "\n"
            "| key | type | default | reload | meaning |\n"
            "|---|---|---|---|---|\n"
            "| `collectors.toy.enabled` | auto, true or false | `auto` | yes | auto: enabled if the "
            "collector is enabled "
            "by default. |\n"
            "| `collectors.toy.size` | whole number | `3` | yes | a\\|b. |\n"
            "| `collectors.toy.name` | text | `\"\"` | yes | Its name. |\n"
            "| `collectors.toy.events` | list of texts | `[]` | yes | What happens. |\n");
}

TEST(Suggest, FindsWhatWasMeant) {
  const std::vector<std::string> words = {"listen", "config_file", "max_requests", "fast"};
  EXPECT_EQ(options::nearest("lissen", words), "listen");
  EXPECT_EQ(options::nearest("config-file", words), "config_file");
  EXPECT_EQ(options::nearest("maxrequest", words), "max_requests");
  EXPECT_EQ(options::nearest("fst", words), "fast");
}

TEST(Suggest, SaysNothingWhereNothingIsNear) {
  const std::vector<std::string> words = {"listen", "fast", "on"};
  EXPECT_EQ(options::nearest("certificate", words), "");
  EXPECT_EQ(options::nearest("xy", words), "");
  EXPECT_EQ(options::nearest("", words), "");
  EXPECT_EQ(options::nearest(std::string(65, 'l'), words), "");
  EXPECT_EQ(options::nearest("listen", {}), "");
}

TEST(Suggest, EnumeratesWords) {
  EXPECT_EQ(options::enumerate(std::vector<std::string>{}, "or"), "");
  EXPECT_EQ(options::enumerate(std::vector<std::string>{"a"}, "or"), "a");
  EXPECT_EQ(options::enumerate(std::vector<std::string>{"a", "b"}, "or"), "a or b");
  EXPECT_EQ(options::enumerate(std::vector<std::string>{"a", "b", "c"}, "and"), "a, b and c");
}

}  // namespace
}  // namespace gpumeter::config
