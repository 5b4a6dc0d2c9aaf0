#include "base/resident.hpp"

#include <gtest/gtest.h>

#include <fstream>
#include <string>

namespace gpumeter {
namespace {

/// Resident pages of files (statm's third field, proc(5)).
long mapped_pages() {
  std::ifstream file("/proc/self/statm");
  long size = 0, resident = 0, shared = 0;
  file >> size >> resident >> shared;
  return shared;
}

/// A relocated table: its pointers are in a segment that the dynamic linker wrote.
const char* const kWords[] = {"one", "two"};

TEST(UnmapCode, TheProgramGoesOnWithLessMemory) {
  const long before = mapped_pages();
  unmap_code();
  EXPECT_LT(mapped_pages(), before);
  const char* const* volatile words = kWords;
  EXPECT_EQ(std::string(words[1]), "two");
}

}  // namespace
}  // namespace gpumeter
