#include "daemon/web/file_stamps.hpp"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>

namespace gpumeter {
namespace {

namespace fs = std::filesystem;

TEST(FileStamps, ChangeWithContentTargetAndExistence) {
  char name[] = "/tmp/gpumeter-web-XXXXXX";
  ASSERT_NE(mkdtemp(name), nullptr);
  const fs::path folder = name;
  const fs::path file = folder / "file";
  const fs::path link = folder / "link";
  const auto stamps = [&] { return stamps_of({file, link}); };
  EXPECT_EQ(stamps(), std::vector<FileStamp>(2));
  std::ofstream(file) << "a";
  std::ofstream(folder / "other") << "b";
  fs::create_symlink("file", link);
  const auto first = stamps();
  EXPECT_EQ(first[0], first[1]);
  EXPECT_EQ(first, stamps());
  fs::remove(link);  // as an atomic exchange of certificates does
  fs::create_symlink("other", link);
  const auto second = stamps();
  EXPECT_EQ(second[0], first[0]);
  EXPECT_NE(second[1], first[1]);
  fs::rename(folder / "other", file);
  EXPECT_NE(stamps()[0], first[0]);
  fs::remove_all(folder);
}

}  // namespace
}  // namespace gpumeter
