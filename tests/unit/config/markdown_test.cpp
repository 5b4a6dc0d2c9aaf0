#include <gtest/gtest.h>

#include <vector>

#include "config/keys.hpp"
#include "daemon/setup.hpp"

namespace gpumeter::config {
namespace {

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

}  // namespace
}  // namespace gpumeter::config
