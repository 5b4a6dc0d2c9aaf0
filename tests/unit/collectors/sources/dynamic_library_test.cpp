#include "collectors/sources/dynamic_library.hpp"

#include <gtest/gtest.h>

#include "tests/fakes/fake_driver.hpp"

namespace gpumeter {
namespace {

using ErrorString = const char* (*)(unsigned);

TEST(DynamicLibrary, GivesFunctionsByTheirExactName) {
  const FakeDriver driver("devices: []", {"nvmlDeviceGetMemoryInfo_v2"});
  const Result<DynamicLibrary> library = DynamicLibrary::open(driver.library());
  ASSERT_TRUE(library);
  const auto error_string = library->symbol<ErrorString>("nvmlErrorString");
  ASSERT_NE(error_string, nullptr);
  EXPECT_STREQ(error_string(0), "The operation was successful");
  EXPECT_EQ(library->symbol<ErrorString>("nvmlErrorStrin"), nullptr);
  EXPECT_EQ(library->symbol<ErrorString>("nvmlDeviceGetMemoryInfo_v2"), nullptr);
  EXPECT_NE(library->symbol<ErrorString>("nvmlDeviceGetMemoryInfo"), nullptr);
}

TEST(DynamicLibrary, OneThatIsNotThereIsSaidInTheLoadersWords) {
  const Result<DynamicLibrary> library = DynamicLibrary::open("libgpumeter-nonexistent.so.1");
  ASSERT_FALSE(library);
  EXPECT_EQ(library.error().message(),
            "libgpumeter-nonexistent.so.1: cannot open shared object file: No such file or directory");
}

TEST(DynamicLibrary, AFileThatIsNoneIsAnErrorWithItsName) {
  const Tree tree({{"libnvidia-ml.so.1", "no library"}});
  const Result<DynamicLibrary> library = DynamicLibrary::open(tree / "libnvidia-ml.so.1");
  ASSERT_FALSE(library);
  EXPECT_EQ(library.error().message(), (tree / "libnvidia-ml.so.1") + ": file too short");
}

}  // namespace
}  // namespace gpumeter
