#include "collectors/amd/gpu_metrics_layout.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <map>
#include <sstream>
#include <string>

namespace gpumeter::amd {
namespace {

/// The kernel's structs as a compiler laid them out: struct, field, offset, size, type, one a line.
std::ifstream offsets_file() {
  const char* const captures = std::getenv("GPUMETER_CAPTURES");  // NOLINT(concurrency-mt-unsafe): one thread
  const std::string folder = captures != nullptr ? captures : GPUMETER_TESTS_DIR "/../../shared/captures";
  return std::ifstream(folder + "/../reference/gpu_metrics_offsets.tsv");
}

struct Place {
  std::size_t offset = 0, size = 0;
  auto operator<=>(const Place&) const = default;
};
using Struct = std::map<std::string, Place>;

/// Struct -> field -> place; the struct's own size as field "TOTAL".
std::map<std::string, Struct> read_offsets(std::istream& file) {
  std::map<std::string, Struct> structs;
  for (std::string text; std::getline(file, text);) {
    std::istringstream line(text);
    std::string name, field;
    Place place;
    line >> name >> field >> place.offset >> place.size;
    const bool is_data = field != "common_header" && !field.starts_with("padding");
    if (is_data) structs[name][field] = place;
  }
  return structs;
}

Struct as_struct(const BlobLayout& layout) {
  Struct result{{"TOTAL", {layout.size, 0}}};
  for (std::size_t i = 0; i < kBlobFieldCount; ++i) {
    const BlobPlace& place = layout.places[i];
    const auto size = static_cast<std::size_t>(place.width) * place.count;
    if (size != 0) result[std::string(kBlobFields[i])] = {place.offset, size};
  }
  return result;
}

TEST(BlobLayouts, AreWhatACompilerMakesOfTheKernelsStructs) {
  std::ifstream file = offsets_file();
  if (!file) GTEST_SKIP() << "no gpu_metrics_offsets.tsv beside the captures";
  const std::map<std::string, Struct> structs = read_offsets(file);
  for (const BlobLayout& layout : blob_layouts()) {
    EXPECT_EQ(as_struct(layout), structs.at(std::string(layout.name))) << layout.name;
  }
}

TEST(BlobLayouts, NoFieldReachesBeyondItsStruct) {
  for (const BlobLayout& layout : blob_layouts()) {
    for (const BlobPlace& place : layout.places)
      EXPECT_LE(place.offset + place.width * place.count, layout.size);
  }
}

TEST(BlobField, IsItsPlaceInTheList) {
  EXPECT_EQ(kBlobFields[blob_field("voltage_soc")], "voltage_soc");
  EXPECT_EQ(blob_field("voltage_of_nothing"), kBlobFieldCount);
}

}  // namespace
}  // namespace gpumeter::amd
