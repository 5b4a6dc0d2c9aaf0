#include "collectors/amd/gpu_metrics/layout.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <string>

namespace gpumeter::amd {
namespace {

/// The kernel's structs as a compiler laid them out, one field a line: struct, field, offset, size, type.
std::ifstream offsets_file() {
  const char* const captures = std::getenv("GPUMETER_CAPTURES");  // NOLINT(concurrency-mt-unsafe): one thread
  const std::string folder = captures != nullptr ? captures : GPUMETER_TESTS_DIR "/../../shared/captures";
  return std::ifstream(folder + "/../reference/gpu_metrics_offsets.tsv");
}

struct Place {
  std::size_t offset = 0, size = 0, stride = 0, instances = 1;
  auto operator<=>(const Place&) const = default;
};
using Struct = std::map<std::string, Place>;

struct Member : Place {
  std::string type;
};

/// Struct -> members by name; the struct's own size as member "TOTAL".
std::map<std::string, std::map<std::string, Member>> read_offsets(std::istream& file) {
  std::map<std::string, std::map<std::string, Member>> structs;
  for (std::string text; std::getline(file, text);) {
    std::istringstream line(text);
    std::string name, field;
    Member member;
    line >> name >> field >> member.offset >> member.size >> std::ws;
    std::getline(line, member.type);
    const bool is_data = field != "common_header" && !field.starts_with("padding");
    if (is_data) structs[name][field] = member;
  }
  return structs;
}

/// The members of one struct, including those of nested structs: "struct NAME[NUM_XCP]".
Struct flat(const std::map<std::string, std::map<std::string, Member>>& structs, const std::string& name) {
  Struct result;
  for (const auto& [field, member] : structs.at(name)) {
    if (!member.type.starts_with("struct ")) {
      result[field] = member;
      continue;
    }
    const std::string inner = member.type.substr(7, member.type.find('[') - 7);
    const std::size_t stride = structs.at(inner).at("TOTAL").offset;
    for (const auto& [inner_field, place] : structs.at(inner)) {
      if (inner_field == "TOTAL") continue;
      result[inner_field] = {member.offset + place.offset, place.size, stride, member.size / stride};
    }
  }
  return result;
}

Struct as_struct(const BlobLayout& layout) {
  Struct result{{"TOTAL", {layout.size, 0}}};
  for (std::size_t i = 0; i < kBlobFieldCount; ++i) {
    const BlobPlace& place = layout.places[i];
    const auto size = static_cast<std::size_t>(place.width) * place.count;
    if (size != 0)
      result[std::string(fields::kAll[i].name)] = {place.offset, size, place.stride, place.instances};
  }
  return result;
}

TEST(BlobLayouts, AreWhatACompilerMakesOfTheKernelsStructs) {
  std::ifstream file = offsets_file();
  if (!file) GTEST_SKIP() << "no gpu_metrics_offsets.tsv beside the captures";
  const auto structs = read_offsets(file);
  std::set<std::string> missing;
  for (const auto& [name, members] : structs) {
    if (name.starts_with("gpu_metrics_v")) missing.insert(name);
  }
  for (const BlobLayout& layout : blob_layouts()) {
    const std::string name(layout.name);
    EXPECT_EQ(as_struct(layout), flat(structs, name)) << name;
    EXPECT_EQ(name, "gpu_metrics_v" + std::to_string(layout.format) + "_" + std::to_string(layout.content));
    missing.erase(name);
  }
  EXPECT_EQ(missing, std::set<std::string>());
}

TEST(BlobLayouts, NoFieldReachesBeyondItsStruct) {
  for (const BlobLayout& layout : blob_layouts()) {
    for (const BlobPlace& place : layout.places) {
      const int last_instance = place.offset + (place.instances - 1) * place.stride;
      EXPECT_LE(last_instance + place.width * place.count, layout.size);
    }
  }
}

TEST(BlobField, IsItsPlaceInTheList) {
  EXPECT_EQ(fields::kAll[blob_field("voltage_soc")].name, "voltage_soc");
  EXPECT_EQ(blob_field("voltage_of_nothing"), kBlobFieldCount);
}

}  // namespace
}  // namespace gpumeter::amd
