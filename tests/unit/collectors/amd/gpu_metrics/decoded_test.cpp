#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "collectors/amd/gpu_metrics/blob.hpp"

namespace gpumeter::amd {
namespace {

using nlohmann::json;

std::string captures() {
  const char* const told = std::getenv("GPUMETER_CAPTURES");  // NOLINT(concurrency-mt-unsafe): one thread
  return told != nullptr ? told : GPUMETER_TESTS_DIR "/../../shared/captures";
}

/// "lact/tests/snapshots/amd/phoenix/card1/device/gpu_metrics" is in amd/phoenix. "mangohud/gpu_metrics" is
/// in amd-blobs, by its version.
std::string path_of(const std::string& key, const std::string& version) {
  const std::string snapshots = "lact/tests/snapshots/";
  if (key.starts_with(snapshots)) return captures() + "/" + key.substr(snapshots.size());
  return captures() + "/amd-blobs/mangohud-" + version.substr(version.find('v')) + ".bin";
}

GpuMetricsBlob blob_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  const std::string bytes((std::istreambuf_iterator<char>(file)), {});
  GpuMetricsBlob blob;
  EXPECT_EQ(blob.parse(bytes), ReadStatus::ok) << path;
  return blob;
}

std::optional<std::uint64_t> number(const json& value) {
  return value.is_null() ? std::nullopt : std::optional(value.get<std::uint64_t>());
}

int compare(const GpuMetricsBlob& blob, const std::string& name, const json& told) {
  const std::size_t field = blob_field(name);
  if (name.starts_with("padding")) return 0;
  EXPECT_LT(field, kBlobFieldCount) << name;
  if (field == kBlobFieldCount) return 0;
  const json elements = told.is_array() ? told : json::array({told});
  for (std::size_t i = 0; i < elements.size(); ++i) {
    EXPECT_EQ(blob.raw(field, i), number(elements[i])) << name << " " << i;
  }
  return static_cast<int>(elements.size());
}

TEST(GpuMetricsBlob, ReadsEveryValueOfTheCaptures) {
  std::ifstream file(captures() + "/amd-blobs/decoded.json");
  if (!file) GTEST_SKIP() << "no amd-blobs/decoded.json among the captures";
  const json decoded = json::parse(file);
  int compared = 0;
  for (const auto& [key, table] : decoded.items()) {
    const GpuMetricsBlob blob = blob_of(path_of(key, table.at("version").get<std::string>()));
    for (const auto& [name, told] : table.at("fields").items()) compared += compare(blob, name, told);
  }
  EXPECT_GT(compared, 0);
}

TEST(GpuMetricsBlob, RefusesTheInvalidCapture) {
  std::ifstream file(captures() + "/amd-blobs/mangohud-invalid.bin", std::ios::binary);
  if (!file) GTEST_SKIP() << "no mangohud-invalid.bin among the captures";
  const std::string bytes((std::istreambuf_iterator<char>(file)), {});
  GpuMetricsBlob blob;
  EXPECT_EQ(blob.parse(bytes), ReadStatus::failed);
}

}  // namespace
}  // namespace gpumeter::amd
