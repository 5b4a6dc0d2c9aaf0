#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <iterator>

#include "config/keys.hpp"
#include "config/load.hpp"
#include "config/yaml_tree.hpp"

/// The file that is installed.
namespace gpumeter::config {
namespace {

const std::string kFile = GPUMETER_TESTS_DIR "/../config/gpumeter.yaml";
const std::vector<CollectorSchema> kSchemas = {{"amd", {}}, {"simulated", {}}};

std::string text() {
  std::ifstream file(kFile);
  return {std::istreambuf_iterator<char>(file), {}};
}

TEST(GpumeterYaml, SpellsTheDefaultsOut) {
  const auto loaded = load_file(kFile, kSchemas);
  ASSERT_TRUE(std::holds_alternative<Config>(loaded)) << to_string(std::get<1>(loaded).front());
  EXPECT_EQ(std::get<Config>(loaded), defaults(kSchemas));
}

TEST(GpumeterYaml, HasEveryKey) {
  std::vector<std::string> paths;
  const auto tree = parse_yaml(text());
  for (const Node& section : std::get<Node>(tree).children) {
    paths.push_back(section.key);
    for (const Node& key : section.children) paths.push_back(section.key + "." + key.key);
  }
  for (const Key& key : keys()) EXPECT_EQ(std::count(paths.begin(), paths.end(), key.path), 1) << key.path;
}

TEST(GpumeterYaml, IsOpenedToTheNetworkByOneCommentedLine) {
  const std::string closed = "  # listen: [\":10478\"]\n  listen: [\"localhost:10478\"]\n";
  std::string yaml = text();
  const std::size_t place = yaml.find(closed);
  ASSERT_NE(place, std::string::npos);
  yaml.replace(place, closed.size(), "  listen: [\":10478\"]\n");
  Config expected = defaults(kSchemas);
  expected.web.listen = {":10478"};
  EXPECT_EQ(std::get<Config>(load_text(yaml, kFile, kSchemas)), expected);
}

}  // namespace
}  // namespace gpumeter::config
