#include "config/markdown.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "config/keys.hpp"

namespace gpumeter::config {
namespace {

using Kind = OptionSchema::Kind;

TEST(ConfigurationMarkdown, HasALineForEveryKey) {
  const std::string page = configuration_markdown({});
  for (const Key& key : keys()) {
    EXPECT_NE(page.find("\n| `" + std::string(key.path) + "` | " + std::string(key.type) + " | `" +
                        key.show(Config{}) + "` | " + (key.reloadable ? "yes" : "no") + " | " +
                        std::string(key.help) + " |\n"),
              std::string::npos)
        << key.path;
  }
}

TEST(ConfigurationMarkdown, EndsWithTheCollectors) {
  const std::vector<CollectorSchema> schemas = {{"toy",
                                                 {{"size", Kind::integer, "3", "a|b."},
                                                  {"name", Kind::text, "", "Its name."},
                                                  {"events", Kind::list, "", "What happens."}}}};
  const std::string page = configuration_markdown(schemas);
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
