#include "config/yaml.hpp"

#include <gtest/gtest.h>

namespace gpumeter::config {
namespace {

/// The tree in one line: `key@line=value`. Texts that were quoted have quotes.
std::string shown(const Node& node) {
  std::string text = node.key.empty() ? "" : node.key + "@" + std::to_string(node.line) + "=";
  const bool map = node.kind == Node::Kind::map;
  if (node.kind == Node::Kind::null) return text + "null";
  if (node.kind == Node::Kind::scalar) return text + (node.quoted ? "'" + node.text + "'" : node.text);
  text += map ? '{' : '[';
  for (const Node& child : node.children) text += shown(child) + " ";
  return text + (map ? '}' : ']');
}

std::string tree(const std::string& yaml) {
  const auto parsed = parse_yaml(yaml);
  if (const auto* error = std::get_if<SyntaxError>(&parsed)) {
    return std::to_string(error->line) + ": " + error->text;
  }
  return shown(std::get<Node>(parsed));
}

TEST(YamlTree, KeepsLinesQuotesAndBothOfTwoEqualKeys) {
  EXPECT_EQ(tree("a: 1\nb: \"1\"\nc: [yes, 'no']\na:\n  d: ~\n"),
            "{a@1=1 b@2='1' c@3=[yes 'no' ] a@4={d@5=null } }");
  EXPECT_EQ(tree("---\r\na: |\r\n  text\r\n..."), "{a@2='text\n' }");
}

TEST(YamlTree, TakesNothingForNull) {
  EXPECT_EQ(tree(""), "null");
  EXPECT_EQ(tree("# only a comment\n"), "null");
  EXPECT_EQ(tree("a:\nb: null\nc: 'null'\n"), "{a@1=null b@2=null c@3='null' }");
}

TEST(YamlTree, LeavesAMergeKeyAnOrdinaryKey) { EXPECT_EQ(tree("<<: {a: 1}"), "{<<@1={a@1=1 } }"); }

TEST(YamlTree, RefusesWhatAConfigurationDoesNotNeed) {
  EXPECT_EQ(tree("a: &x 1\nb: 2"), "1: an anchor (&name) is not accepted; write the value out");
  EXPECT_EQ(tree("a: 1\nb: !!str 2"), "2: a tag (tag:yaml.org,2002:str) is not accepted");
  EXPECT_EQ(tree("a: 1\n---\nb: 2"),
            "3: content after the end of the document; the file must have one document");
  EXPECT_EQ(tree("[a, b]: 1"), "1: a key must be plain text");
  EXPECT_EQ(tree("a: 1\n~: 1"), "2: a key must be plain text");
}

TEST(YamlTree, SaysWhereItIsNotYaml) {
  EXPECT_EQ(tree("a: 1\n  b: 2"),
            "2: not valid YAML: illegal map value; check the indentation, colons and quotes");
  EXPECT_EQ(tree("a:\n\tb: 1"), "2: a tab in the indentation; YAML requires spaces");
  EXPECT_EQ(tree("a: \"x"),
            "1: not valid YAML: illegal EOF in scalar; check the indentation, colons and quotes");
}

TEST(YamlTree, TakesTabsThatAreNoIndentation) {
  EXPECT_EQ(tree("a: 1\t# c\n\t# d\n\t\nb:\t2"), "{a@1=1 b@4=2 }");
}

TEST(YamlTree, RefusesWhatIsNotText) {
  EXPECT_EQ(tree("a: 1\n\x04"), "2: a byte that is not text; the file must be UTF-8");
  EXPECT_EQ(tree("\xff\xfe"), "1: a byte that is not text; the file must be UTF-8");
  EXPECT_EQ(tree(std::string("a\0b", 3)), "1: a byte that is not text; the file must be UTF-8");
}

TEST(YamlTree, HasBounds) {
  std::string deep;
  for (int i = 0; i < 20; ++i) deep += "- ";
  EXPECT_EQ(tree(deep + "x"), "1: nested deeper than 16 levels");
  std::string many;
  for (int i = 0; i < 20'001; ++i) many += "- 1\n";
  EXPECT_EQ(tree(many), "20000: more than 20000 values");
  EXPECT_EQ(tree(std::string((1 << 20) + 1, ' ')), "0: larger than 1 MiB");
}

// The classic alias bomb: nine lists of nine aliases each, ten deep.
TEST(YamlTree, IsNoPlaceForAnAliasBomb) {
  EXPECT_EQ(tree("a: &a [x, x]\nb: &b [*a, *a]\nc: [*b, *b]\n"),
            "1: an anchor (&name) is not accepted; write the value out");
}

}  // namespace
}  // namespace gpumeter::config
