#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <sstream>

#include "config/config.hpp"
#include "daemon/setup.hpp"
#include "exporter/http/settings.hpp"
#include "tests/fakes/places.hpp"

/// The file that is installed. tests/package/config_file_test.py compares its keys with those of the binary.
namespace gpumeter::config {
namespace {

const std::string kFile = places::in_tests("../config/gpumeter.yaml");

std::string text() {
  std::ifstream file(kFile);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// Removes the # of lines that are keys. A line of prose has exactly one space after it.
std::string uncommented() {
  std::istringstream lines(text());
  std::string result;
  for (std::string line; std::getline(lines, line); result += line + "\n") {
    const bool prose = line.starts_with("# ") && !line.starts_with("#  ");
    if (line.starts_with("#") && !prose) line.erase(0, 1);
  }
  return result;
}

Config loaded(const std::string& yaml) {
  auto result = load_text(yaml, kFile, schema());
  if (!result.problems.empty()) ADD_FAILURE() << to_string(result.problems.front());
  return std::move(result.config);
}

TEST(GpumeterYaml, ChangesNothingAsItIsInstalled) { EXPECT_EQ(loaded(text()), defaults(schema())); }

TEST(GpumeterYaml, SpellsTheDefaultsOut) {
  Config expected = defaults(schema());
  EXPECT_EQ(loaded(uncommented()), expected);
}

TEST(GpumeterYaml, IsOpenedToTheNetworkAsItsCommentSays) {
  const std::string opened = "listen: [\":10478\"]";
  ASSERT_NE(text().find("set " + opened), std::string::npos);
  Config expected = defaults(schema());
  expected.edit<HttpSettings>().listen = {":10478"};
  EXPECT_EQ(loaded("web:\n  " + opened + "\n"), expected);
}

}  // namespace
}  // namespace gpumeter::config
