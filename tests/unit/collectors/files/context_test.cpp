#include "collectors/files/context.hpp"

#include <gtest/gtest.h>

#include "tests/fakes/tree.hpp"

namespace gpumeter::files {
namespace {

TEST(FileCache, ReadsAFileOnceAPass) {
  const Tree tree = make_tree({{"used", "1"}});
  FileCache cache;
  const int used = cache.open(tree / "used").value();
  EXPECT_EQ(cache.open(tree / "used"), used);
  EXPECT_EQ(cache.read(used).value, 1);
  tree.write("used", "2");
  EXPECT_EQ(cache.read(used).value, 1);
  cache.begin_pass();
  EXPECT_EQ(cache.read(used).value, 2);
}

TEST(FileCache, KeepsAConstantOnceItHasIt) {
  const Tree tree = make_tree({{"total", ""}});
  FileCache cache;
  const int total = cache.open_constant(tree / "total").value();
  EXPECT_EQ(cache.read(total).status, ReadStatus::unsupported);
  for (const char* const text : {"8", "9"}) {
    tree.write("total", text);
    cache.begin_pass();
    EXPECT_EQ(cache.read(total).value, 8);
  }
}

TEST(FileCache, HasNoHandleForWhatIsNotThere) {
  const Tree tree = make_tree({});
  FileCache cache;
  EXPECT_EQ(cache.open(tree / "nothing"), std::nullopt);
  EXPECT_EQ(cache.open_constant(tree / "nothing"), std::nullopt);
  EXPECT_FALSE(cache.lost());
}

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
}  // namespace gpumeter::files
