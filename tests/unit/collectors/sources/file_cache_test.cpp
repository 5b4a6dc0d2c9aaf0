#include "collectors/sources/file_cache.hpp"

#include <gtest/gtest.h>

#include "tests/fakes/tree.hpp"

namespace gpumeter {
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

}  // namespace
}  // namespace gpumeter
