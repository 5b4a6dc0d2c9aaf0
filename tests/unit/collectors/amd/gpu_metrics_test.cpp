#include "collectors/amd/gpu_metrics.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <initializer_list>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>

#include "tests/fakes/amd_card.hpp"
#include "tests/fakes/places.hpp"
#include "tests/fakes/tree.hpp"

namespace gpumeter::amd {
namespace {

/// The kernel's structs as a compiler laid them out, one field a line: struct, field, offset, size, type.
std::ifstream offsets_file() {
  return std::ifstream(places::in_captures("../reference/gpu_metrics_offsets.tsv"));
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

using Fake = FakeAttributes;

constexpr unsigned kHotspot = 0, kPower = 3, kEnergy = 7, kCounter = 9, kXgmiRead = 29, kClock = 33;

GpuMetricsBlob parsed(const FakeAttributes& fake) {
  GpuMetricsBlob blob;
  blob.parse(fake.bytes());
  return blob;
}

TEST(Attributes, AreFoundWhereverTheyLie) {
  const GpuMetricsBlob blob = parsed(Fake()
                                         .add(kPower, Fake::u16, {640}, 3)
                                         .add(kHotspot, Fake::u16, {71}, 2)
                                         .add(kClock, Fake::u16, {0xffff, 2100, 2090}, 1)
                                         .add(kEnergy, Fake::u64, {65536 * 7}));
  EXPECT_EQ(blob.status(), ReadStatus::ok);
  EXPECT_EQ(blob.value(blob_field("curr_socket_power")).value, 640);
  EXPECT_EQ(blob.value(blob_field("temperature_hotspot")).value, 71);
  EXPECT_EQ(blob.value(blob_field("current_gfxclk")).value, 2100e6);
  EXPECT_EQ(blob.value(blob_field("current_gfxclk"), 2).value, 2090e6);
  EXPECT_EQ(blob.value(blob_field("energy_accumulator")).value, 7);
  EXPECT_FALSE(blob.has(blob_field("temperature_mem")));
}

TEST(Attributes, AnyIntegerTypeAndCountWillDo) {
  constexpr std::size_t kField = blob_field("accumulation_counter");
  for (const Fake::Type type : {Fake::u8, Fake::u16, Fake::s16, Fake::u32, Fake::s32, Fake::u64, Fake::s64}) {
    EXPECT_EQ(parsed(Fake().add(kCounter, type, {77})).value(kField).value, 77) << int{type};
  }
  EXPECT_EQ(parsed(Fake().add(kXgmiRead, Fake::u64, {5})).sum(blob_field("xgmi_read_data_acc")).value,
            5 * 1024);
  EXPECT_EQ(parsed(Fake().add(kHotspot, Fake::s16, {0xfff6})).value(blob_field("temperature_hotspot")).value,
            -10);
  EXPECT_EQ(parsed(Fake().add(kHotspot, Fake::s16, {0xffff})).value(blob_field("temperature_hotspot")).status,
            ReadStatus::unsupported);
}

TEST(Attributes, WhatIsNotKnownIsSkipped) {
  const GpuMetricsBlob blob = parsed(Fake()
                                         .add(1000, Fake::u32, {1, 2, 3})
                                         .add(kHotspot, Fake::u16, {71}, 200)  // a unit of a later format
                                         .add(kPower, Fake::u16, {640}));
  EXPECT_EQ(blob.value(blob_field("curr_socket_power")).value, 640);
  EXPECT_FALSE(blob.has(blob_field("temperature_hotspot")));
}

TEST(Attributes, ContradictionsAreRefused) {
  EXPECT_EQ(parsed(Fake().add(kPower, Fake::u16, {640}).announce(2)).status(), ReadStatus::failed);
  EXPECT_EQ(parsed(Fake().add(kPower, Fake::u16, {640}).announce(0xffffffff)).status(), ReadStatus::failed);
  EXPECT_EQ(parsed(Fake().add(kPower, Fake::u16, {})).status(), ReadStatus::failed);
  EXPECT_EQ(parsed(Fake().add(kPower, static_cast<Fake::Type>(8), {640})).status(), ReadStatus::failed);
}

TEST(Attributes, EveryBeginningIsRefused) {
  const std::string whole = Fake().add(kPower, Fake::u16, {640}).add(kClock, Fake::u16, {1, 2, 3}).bytes();
  for (std::size_t size = 0; size < whole.size(); ++size) {
    std::string part = whole.substr(0, size);
    if (size >= 2) put_number(part, 0, 2, size);
    GpuMetricsBlob blob;
    EXPECT_NE(blob.parse(part), ReadStatus::ok) << size;
    EXPECT_FALSE(blob.has(blob_field("curr_socket_power"))) << size;
  }
}

constexpr std::size_t kEdge = blob_field("temperature_edge");
constexpr std::size_t kThrottle = blob_field("indep_throttle_status");

GpuMetricsBlob parsed(const std::string& bytes) {
  GpuMetricsBlob blob;
  blob.parse(bytes);
  return blob;
}

double value_of(const FakeBlob& fake, std::string_view field, std::size_t element = 0) {
  const Sample sample = parsed(fake.bytes()).value(blob_field(field), element);
  EXPECT_EQ(sample.status, ReadStatus::ok) << field;
  return sample.value;
}

TEST(GpuMetricsBlob, GivesBaseUnits) {
  EXPECT_DOUBLE_EQ(value_of(FakeBlob().set("temperature_edge", 56), "temperature_edge"), 56);
  EXPECT_DOUBLE_EQ(value_of(FakeBlob().set("average_gfx_activity", 3), "average_gfx_activity"), 0.03);
  EXPECT_DOUBLE_EQ(value_of(FakeBlob().set("average_socket_power", 36), "average_socket_power"), 36);
  EXPECT_DOUBLE_EQ(value_of(FakeBlob().set("current_socclk", 800), "current_socclk"), 800e6);
  EXPECT_DOUBLE_EQ(value_of(FakeBlob().set("voltage_mem", 1356), "voltage_mem"), 1.356);
  EXPECT_DOUBLE_EQ(value_of(FakeBlob().set("current_fan_speed", 868), "current_fan_speed"), 868);
  EXPECT_DOUBLE_EQ(value_of(FakeBlob().set("pcie_link_speed", 160), "pcie_link_speed"), 16e9);
  EXPECT_DOUBLE_EQ(value_of(FakeBlob().set("firmware_timestamp", 150), "firmware_timestamp"), 1.5e-6);
  EXPECT_DOUBLE_EQ(value_of(FakeBlob().set("temperature_hbm", 41, 3), "temperature_hbm", 3), 41);
}

TEST(GpuMetricsBlob, UnitsAreThoseOfTheVersion) {
  EXPECT_DOUBLE_EQ(value_of(FakeBlob(2, 1).set("temperature_soc", 2737), "temperature_soc"), 27.37);
  EXPECT_DOUBLE_EQ(value_of(FakeBlob(2, 1).set("average_soc_power", 743), "average_soc_power"), 0.743);
  EXPECT_DOUBLE_EQ(value_of(FakeBlob(2, 4).set("average_gfx_voltage", 814), "average_gfx_voltage"), 0.814);
  EXPECT_DOUBLE_EQ(value_of(FakeBlob(3, 0).set("average_apu_power", 98390), "average_apu_power"), 98.39);
  EXPECT_DOUBLE_EQ(value_of(FakeBlob(3, 0).set("average_fclk_frequency", 800), "average_fclk_frequency"),
                   800e6);
  EXPECT_DOUBLE_EQ(value_of(FakeBlob(1, 4).set("energy_accumulator", 1 << 17), "energy_accumulator"), 2);
  EXPECT_DOUBLE_EQ(value_of(FakeBlob(1, 8).set("mem_max_bandwidth", 5300), "mem_max_bandwidth"), 5.3e12);
}

TEST(GpuMetricsBlob, WhatDependsOnChipOrFirmwareIsNotRead) {
  for (const auto& [format, field] :
       {std::pair(2, "average_socket_power"), std::pair(2, "average_gfx_activity"),
        std::pair(1, "energy_accumulator")}) {
    const GpuMetricsBlob blob = parsed(FakeBlob(format, 3).set(field, 100).bytes());
    EXPECT_FALSE(blob.has(blob_field(field))) << field;
    EXPECT_EQ(blob.value(blob_field(field)).status, ReadStatus::unsupported) << field;
    EXPECT_EQ(blob.raw(blob_field(field)), 100) << field;
  }
}

TEST(GpuMetricsBlob, ALittleOverFullIsFull) {
  EXPECT_EQ(value_of(FakeBlob().set("average_gfx_activity", 101), "average_gfx_activity"), 1);
  EXPECT_EQ(value_of(FakeBlob().set("average_gfx_activity", 201), "average_gfx_activity"), 2.01);
}

TEST(GpuMetricsBlob, ArraysAreReadByElementAsASumAndByTheFirstThatIsThere) {
  const GpuMetricsBlob blob = parsed(FakeBlob(1, 4)
                                         .set("current_gfxclk", 2100, 2)
                                         .set("current_gfxclk", 900, 3)
                                         .set("xgmi_read_data_acc", 3, 0)
                                         .set("xgmi_read_data_acc", 4, 7)
                                         .bytes());
  EXPECT_EQ(blob.value(blob_field("current_gfxclk")).value, 2100e6);
  EXPECT_EQ(blob.value(blob_field("current_gfxclk"), 3).value, 900e6);
  EXPECT_EQ(blob.value(blob_field("current_gfxclk"), 0).status, ReadStatus::unsupported);
  EXPECT_EQ(blob.sum(blob_field("xgmi_read_data_acc")).value, 7 * 1024);
  EXPECT_EQ(blob.sum(blob_field("xgmi_write_data_acc")).status, ReadStatus::unsupported);
}

TEST(GpuMetricsBlob, StatesAreCounted) {
  constexpr std::size_t kStatus = blob_field("xgmi_link_status");
  FakeBlob fake(1, 7);
  EXPECT_EQ(parsed(fake.bytes()).count_of(kStatus, 0b11).status, ReadStatus::unsupported);
  fake.set("xgmi_link_status", 1, 0).set("xgmi_link_status", 0, 1).set("xgmi_link_status", 2, 2);
  EXPECT_EQ(parsed(fake.bytes()).count_of(kStatus, 0b11).value, 2);
  EXPECT_EQ(parsed(fake.bytes()).count_of(kStatus, 0b10).value, 1);
}

TEST(GpuMetricsBlob, PartitionsHaveFieldsOfTheirOwn) {
  const GpuMetricsBlob blob =
      parsed(FakeBlob(1, 8).set("vcn_busy", 30, 1, 0).set("vcn_busy", 80, 3, 7).bytes());
  constexpr std::size_t kBusy = blob_field("vcn_busy");
  EXPECT_EQ(blob.value(kBusy, 1, 0).value, 0.3);
  EXPECT_EQ(blob.value(kBusy, 3, 7).value, 0.8);
  EXPECT_EQ(blob.value(kBusy, 3, 6).status, ReadStatus::unsupported);
  EXPECT_EQ(blob.value(kBusy, 3, 8).status, ReadStatus::unsupported);
}

TEST(GpuMetricsBlob, AllOnesIsAbsentElementByElement) {
  const GpuMetricsBlob blob = parsed(FakeBlob().set("temperature_hbm", 41, 1).bytes());
  constexpr std::size_t kHbm = blob_field("temperature_hbm");
  EXPECT_EQ(blob.value(kHbm, 0).status, ReadStatus::unsupported);
  EXPECT_EQ(blob.value(kHbm, 1).value, 41);
  EXPECT_EQ(blob.value(kHbm, 4).status, ReadStatus::unsupported);  // there are four
  EXPECT_EQ(blob.flags(kThrottle).any_of(1).status, ReadStatus::unsupported);
  for (std::size_t field = 0; field < kBlobFieldCount; ++field) {
    const ReadStatus expected = field == kHbm ? ReadStatus::ok : ReadStatus::unsupported;
    EXPECT_EQ(blob.value(field).status, expected) << fields::kAll[field].name;
  }
}

TEST(GpuMetricsBlob, ZeroIsAbsentForTemperaturesAndVoltagesOnly) {
  for (const char* const field : {"temperature_vrgfx", "voltage_gfx"}) {
    const GpuMetricsBlob blob = parsed(FakeBlob().set(field, 0).bytes());
    EXPECT_EQ(blob.value(blob_field(field)).status, ReadStatus::unsupported) << field;
  }
  for (const char* const field : {"average_gfx_activity", "current_fan_speed", "current_vclk0"}) {
    EXPECT_EQ(value_of(FakeBlob().set(field, 0), field), 0) << field;
  }
}

TEST(GpuMetricsBlob, FlagsAreAskedByMask) {
  const GpuMetricsBlob none = parsed(FakeBlob().set("indep_throttle_status", 0).bytes());
  EXPECT_EQ(none.flags(kThrottle).any_of(~0ULL).status, ReadStatus::ok);
  EXPECT_EQ(none.flags(kThrottle).any_of(~0ULL).value, 0);
  const GpuMetricsBlob hotspot = parsed(FakeBlob().set("indep_throttle_status", 1ULL << 36).bytes());
  EXPECT_EQ(hotspot.flags(kThrottle).any_of(1ULL << 36 | 1).value, 1);
  EXPECT_EQ(hotspot.flags(kThrottle).any_of(1ULL << 35 | 1).value, 0);
}

TEST(GpuMetricsBlob, PaddingBehindTheStructureIsNotRead) {
  const GpuMetricsBlob blob =
      parsed(FakeBlob().set("temperature_edge", 56).bytes() + std::string(4096 - 120, '\0'));
  EXPECT_EQ(blob.value(kEdge).value, 56);
}

TEST(GpuMetricsBlob, RefusesWhatItDoesNotKnow) {
  std::string other = FakeBlob().bytes();
  other[3] = 10;  // a later format
  GpuMetricsBlob blob;
  EXPECT_EQ(blob.parse(other), ReadStatus::unsupported);
  EXPECT_FALSE(blob.has(kEdge));
  EXPECT_EQ(blob.value(kEdge).status, ReadStatus::unsupported);
  EXPECT_EQ(blob.flags(kThrottle).any_of(1).status, ReadStatus::unsupported);
}

TEST(GpuMetricsBlob, RefusesWhatIsTooShort) {
  const std::string good = FakeBlob().set("temperature_edge", 56).bytes();
  GpuMetricsBlob blob;
  EXPECT_EQ(blob.parse({}), ReadStatus::unsupported);
  EXPECT_EQ(blob.parse(std::string_view(good).substr(0, 3)), ReadStatus::failed);
  EXPECT_EQ(blob.parse(std::string_view(good).substr(0, 119)), ReadStatus::failed);
  std::string lies = good;
  lies[0] = 119;  // a structure_size below that of v1.3
  EXPECT_EQ(blob.parse(lies), ReadStatus::failed);
  EXPECT_EQ(blob.parse(std::string(151, '\0')), ReadStatus::failed);
  EXPECT_EQ(blob.value(kEdge).status, ReadStatus::failed);
}

TEST(GpuMetricsBlob, ReadsNoMoreThanTheFileHasAndNoMoreThanThereIsRoomFor) {
  const Tree tree = make_tree({{"gpu_metrics", FakeBlob(1, 8).set("temperature_hotspot", 71).bytes()}});
  GpuMetricsBlob blob;
  EXPECT_EQ(blob.read(sysfs::File(tree / "gpu_metrics")), ReadStatus::ok);
  EXPECT_EQ(blob.value(blob_field("temperature_hotspot")).value, 71);
  tree.write("gpu_metrics", FakeBlob(1, 8).bytes().substr(0, 3871));
  EXPECT_EQ(blob.read(sysfs::File(tree / "gpu_metrics")), ReadStatus::failed);
  std::string huge = FakeAttributes().bytes();
  huge.resize(GpuMetricsBlob::kMaxSize + 1);
  put_number(huge, 0, 2, huge.size());
  tree.write("gpu_metrics", huge);
  EXPECT_EQ(blob.read(sysfs::File(tree / "gpu_metrics")), ReadStatus::failed);
}

TEST(GpuMetricsBlob, LooksAtTheHeaderAtEachRead) {
  const Tree tree = make_tree({{"gpu_metrics", FakeBlob().set("temperature_edge", 56).bytes()}});
  const sysfs::File file(tree / "gpu_metrics");
  GpuMetricsBlob blob;
  EXPECT_EQ(blob.read(file), ReadStatus::ok);
  EXPECT_EQ(blob.value(kEdge).value, 56);
  tree.write("gpu_metrics", "");
  EXPECT_EQ(blob.read(file), ReadStatus::unsupported);
  EXPECT_EQ(blob.value(kEdge).status, ReadStatus::unsupported);
  EXPECT_EQ(blob.read(sysfs::File(tree / "nothing")), ReadStatus::gone);
}

using nlohmann::json;

/// "lact/tests/snapshots/amd/phoenix/card1/device/gpu_metrics" is in amd/phoenix. "mangohud/gpu_metrics" is
/// in amd-blobs, by its version.
std::string path_of(const std::string& key, const std::string& version) {
  const std::string snapshots = "lact/tests/snapshots/";
  if (key.starts_with(snapshots)) return places::in_captures(key.substr(snapshots.size()));
  return places::in_captures("amd-blobs/mangohud-" + version.substr(version.find('v')) + ".bin");
}

GpuMetricsBlob blob_in(const std::string& path) {
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
  std::ifstream file(places::in_captures("amd-blobs/decoded.json"));
  if (!file) GTEST_SKIP() << "no amd-blobs/decoded.json among the captures";
  const json decoded = json::parse(file);
  int compared = 0;
  for (const auto& [key, table] : decoded.items()) {
    const GpuMetricsBlob blob = blob_in(path_of(key, table.at("version").get<std::string>()));
    for (const auto& [name, told] : table.at("fields").items()) compared += compare(blob, name, told);
  }
  EXPECT_GT(compared, 0);
}

TEST(GpuMetricsBlob, RefusesTheInvalidCapture) {
  std::ifstream file(places::in_captures("amd-blobs/mangohud-invalid.bin"), std::ios::binary);
  if (!file) GTEST_SKIP() << "no mangohud-invalid.bin among the captures";
  const std::string bytes((std::istreambuf_iterator<char>(file)), {});
  GpuMetricsBlob blob;
  EXPECT_EQ(blob.parse(bytes), ReadStatus::failed);
}

constexpr std::size_t kPpt = blob_field("ppt_residency_acc");
constexpr std::size_t kSocket = blob_field("socket_thm_residency_acc");
constexpr std::size_t kHbm = blob_field("hbm_thm_residency_acc");
constexpr std::size_t kActivity = blob_field("gfx_activity_acc");
constexpr std::uint64_t kSecond = 100'000'000;  // of 10 ns

struct Counts {
  std::uint64_t time, cycles, ppt = 0, socket = 0, hbm = 0, activity = 0;
};

GpuMetricsBlob blob_of(const Counts& counts) {
  const std::string bytes = FakeBlob(1, 6)
                                .set("firmware_timestamp", counts.time)
                                .set("accumulation_counter", counts.cycles)
                                .set("ppt_residency_acc", counts.ppt)
                                .set("socket_thm_residency_acc", counts.socket)
                                .set("hbm_thm_residency_acc", counts.hbm)
                                .set("gfx_activity_acc", counts.activity)
                                .bytes();
  GpuMetricsBlob blob;
  blob.parse(bytes);
  return blob;
}

Residency counting(std::initializer_list<std::size_t> fields) {
  Residency::Counters counters;
  std::transform(fields.begin(), fields.end(), counters.begin(),
                 [](std::size_t field) { return Residency::Counter{field}; });
  return Residency(counters);
}

TEST(Residency, IsTheShareOfTheFirmwaresCyclesTimesItsTime) {
  Residency residency = counting({kPpt});
  EXPECT_EQ(residency.advance(blob_of({5 * kSecond, 1000, 700})).value, 0);
  EXPECT_EQ(residency.advance(blob_of({7 * kSecond, 3000, 1200})).value, 0.5);  // 500 of 2000 cycles in 2 s
  EXPECT_EQ(residency.advance(blob_of({7 * kSecond, 3000, 1200})).value, 0.5);  // the same table again
  EXPECT_EQ(residency.advance(blob_of({8 * kSecond, 4000, 2200})).value, 1.5);
}

TEST(Residency, OfSeveralTheOneThatGrewMostCounts) {
  Residency residency = counting({kSocket, kHbm});
  residency.advance(blob_of({1 * kSecond, 0}));
  EXPECT_EQ(residency.advance(blob_of({2 * kSecond, 1000, 0, 250, 500})).value, 0.5);
  EXPECT_EQ(residency.advance(blob_of({3 * kSecond, 2000, 0, 1250, 500})).value, 1.5);
}

TEST(Residency, CountersOf32BitsWrap) {
  Residency residency = counting({kPpt});
  residency.advance(blob_of({1 * kSecond, 0xffffff00, 0xfffffff0}));
  EXPECT_EQ(residency.advance(blob_of({2 * kSecond, 0x100, 0xf0})).value, 0.5);
}

TEST(Residency, AFirmwareThatStartedAnewAddsNothing) {
  Residency residency = counting({kPpt});
  residency.advance(blob_of({9 * kSecond, 9000, 500}));
  EXPECT_EQ(residency.advance(blob_of({1 * kSecond, 1000, 800})).value, 0);  // the firmware's clock went back
  EXPECT_EQ(residency.advance(blob_of({2 * kSecond, 2000, 1300})).value, 0.5);
  EXPECT_EQ(residency.advance(blob_of({3 * kSecond, 2100, 1600})).value, 0.5);  // more than all cycles
}

// The cases that AMD's RDC is tested with (rocm-systems, MemCurBandwidthTest), whose cycles are milliseconds.
TEST(Residency, AnActivityIsPercentOfEachCycle) {
  Residency residency = counting({kActivity});
  residency.advance(blob_of({.time = 0 * kSecond, .cycles = 0, .activity = 0}));
  EXPECT_EQ(residency.advance(blob_of({.time = 1 * kSecond, .cycles = 1000, .activity = 1000})).value, 0.01);
  residency = counting({kActivity});
  residency.advance(blob_of({.time = kSecond / 2, .cycles = 500, .activity = 100000}));
  EXPECT_EQ(residency.advance(blob_of({.time = 5 * kSecond / 2, .cycles = 2500, .activity = 140000})).value,
            0.4);
  EXPECT_EQ(residency.advance(blob_of({.time = 5 * kSecond / 2, .cycles = 2500, .activity = 149999})).value,
            0.4);
  EXPECT_EQ(residency.advance(blob_of({.time = 6 * kSecond / 2, .cycles = 3000, .activity = 100})).value,
            0.4);
}

TEST(Residency, AnActivityMayOvershootAndDoesNotCountBeyondTheTime) {
  Residency residency = counting({kActivity});
  residency.advance(blob_of({.time = 1 * kSecond, .cycles = 1000, .activity = 0xffff0000}));
  EXPECT_EQ(residency.advance(blob_of({.time = 2 * kSecond, .cycles = 2000, .activity = 0xffff0000 + 101000}))
                .value,
            1);
}

TEST(GpuMetricsBlob, DiesAreThoseThatTheChipHas) {
  constexpr std::size_t kLow = blob_field("gfx_low_utilization_acc");
  GpuMetricsBlob blob;
  blob.parse(
      FakeBlob(1, 8).set("gfx_low_utilization_acc", 7, 0, 0).set("gfx_low_utilization_acc", 9, 0, 3).bytes());
  EXPECT_EQ(blob.of_die(kLow, 0), 7);
  EXPECT_EQ(blob.of_die(kLow, 1), 9);
  EXPECT_EQ(blob.of_die(kLow, 2), std::nullopt);
  EXPECT_EQ(blob.of_die(blob_field("gfx_below_host_limit_acc"), 0), std::nullopt);  // of 1.7
}

TEST(Residency, WithoutAllOfItThereIsNone) {
  Residency residency = counting({kPpt});
  GpuMetricsBlob blob;
  EXPECT_EQ(residency.advance(blob).status, ReadStatus::unsupported);
  blob.parse(FakeBlob(1, 6).set("ppt_residency_acc", 1).bytes());
  EXPECT_EQ(residency.advance(blob).status, ReadStatus::unsupported);
  blob.parse(FakeBlob(1, 5).bytes());
  EXPECT_EQ(residency.advance(blob).status, ReadStatus::unsupported);
}

}  // namespace
namespace {

TEST(Chip, IsToldByItsDevice) {
  EXPECT_EQ(chip_of(0x740f), Chip::mi200);
  EXPECT_EQ(chip_of(0x73bf), Chip::navi2x);
  EXPECT_EQ(chip_of(0x743f), Chip::navi2x);
  EXPECT_EQ(chip_of(0x163f), Chip::van_gogh);
  EXPECT_EQ(chip_of(0x731f), Chip::other);  // Navi 10
  EXPECT_EQ(chip_of(0x74a1), Chip::other);  // MI300X
}

TEST(Chip, BitsAreAskedInItsOwnOrder) {
  EXPECT_EQ(chip_throttle_mask(Chip::van_gogh, 0x60), 0x6U);  // FPPT and SPPT; a capture has both words
  EXPECT_EQ(chip_throttle_mask(Chip::navi2x, std::uint64_t{1} << 36), 0x4U);
  EXPECT_EQ(chip_throttle_mask(Chip::mi200, mask_of_cause("power")), 0x3U);
  EXPECT_EQ(chip_throttle_mask(Chip::mi200, mask_of_cause("reliability")), 0U);
  EXPECT_EQ(chip_throttle_mask(Chip::other, ~std::uint64_t{0}), 0U);
}

TEST(Chip, EveryBitHasOneMeaningWithAName) {
  std::uint64_t named = 0;
  for (const std::string_view cause : kThrottleCauses) named |= mask_of_cause(cause);
  for (const Chip chip : {Chip::mi200, Chip::navi2x, Chip::van_gogh}) {
    std::set<int> own, independent;
    for (const ChipThrottleBit& bit : throttle_bits(chip)) {
      EXPECT_TRUE(own.insert(bit.chip).second) << int{bit.chip};
      EXPECT_TRUE(independent.insert(bit.independent).second) << int{bit.independent};
      EXPECT_NE(named >> bit.independent & 1, 0U) << int{bit.independent};
    }
  }
}

TEST(Throttle, CausesAreTheirRangesOfBits) {
  EXPECT_EQ(mask_of_cause("power"), 0x00000000000000ffU);
  EXPECT_EQ(mask_of_cause("current"), 0x0000000000ff0000U);
  EXPECT_EQ(mask_of_cause("thermal"), 0x00003fff00000000U);
  EXPECT_EQ(mask_of_cause("hardware"), 0x0000c00000000000U);  // prochot
  EXPECT_EQ(mask_of_cause("reliability"), 0x0300000000000000U);
}

TEST(Throttle, EveryReasonHasAnExportedCauseAndABitOfItsOwn) {
  std::set<int> bits;
  std::set<std::string_view> words;
  std::uint64_t causes = 0;
  for (const std::string_view cause : kThrottleCauses) causes |= mask_of_cause(cause);
  for (const ThrottleReason& reason : kThrottleReasons) {
    EXPECT_TRUE(bits.insert(reason.bit).second) << reason.reason;
    EXPECT_TRUE(words.insert(reason.reason).second) << reason.reason;
    EXPECT_NE(causes & mask_of(reason), 0U) << reason.reason;
  }
}

}  // namespace
}  // namespace gpumeter::amd
