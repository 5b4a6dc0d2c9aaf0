#include <gtest/gtest.h>

#include "collectors/sources/file_cache.hpp"
#include "tests/fakes/tree.hpp"

namespace gpumeter {
namespace {

TEST(TextCacheTest, KeepsWhatAPassHasReadOfTheLastFile) {
  const Tree tree = make_tree({{"a", "old\n"}, {"b", "other\n"}});
  TextCache cache;
  const int a = *cache.open(tree / "a");
  const int b = *cache.open(tree / "b");
  EXPECT_EQ(cache.open(tree / "a"), a);
  EXPECT_EQ(cache.read(a).text, "old");
  tree.write("a", "new\n");
  EXPECT_EQ(cache.read(a).text, "old");
  EXPECT_EQ(cache.read(b).text, "other");
  EXPECT_EQ(cache.read(a).text, "new");
  tree.write("a", "next\n");
  cache.begin_pass();
  EXPECT_EQ(cache.read(a).text, "next");
}

TEST(TextCacheTest, AFileThatIsNotThereHasNoHandle) {
  TextCache cache;
  EXPECT_EQ(cache.open("/nowhere/at/all"), std::nullopt);
}

TEST(TextCacheTest, AFolderIsNoText) {
  const Tree tree = make_tree({{"folder/file", ""}});
  TextCache cache;
  const TextCache::Text text = cache.read(*cache.open(tree / "folder"));
  EXPECT_EQ(text.text, "");
  EXPECT_EQ(text.status, ReadStatus::failed);
}

}  // namespace
}  // namespace gpumeter
