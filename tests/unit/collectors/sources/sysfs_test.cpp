#include "collectors/sources/sysfs.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cerrno>
#include <filesystem>
#include <string>
#include <utility>

#include "tests/fakes/tree.hpp"

namespace gpumeter::sysfs {
namespace {

using namespace std::string_literals;

TEST(ParseInteger, TakesWhatDriversWrite) {
  EXPECT_EQ(parse_integer("42\n"), 42);
  EXPECT_EQ(parse_integer("42"), 42);
  EXPECT_EQ(parse_integer("-273150\n"), -273150);
  EXPECT_EQ(parse_integer("17163091968\n"), 17163091968);
  EXPECT_EQ(parse_integer("999999999999999999\n"), 999999999999999999);
  EXPECT_EQ(parse_integer("9223372036854775807\n"), 9223372036854775807);
  EXPECT_EQ(parse_integer("0x73bf\n"), 0x73bf);
  EXPECT_EQ(parse_integer(" 7 \n"), 7);
  EXPECT_EQ(parse_integer("36000000\n"s + std::string(4000, '\0')), 36000000);
}

TEST(ParseInteger, RefusesTheRest) {
  for (const std::string text : {"", "\n", "\0\0", "16.0 GT/s PCIe", "12 13", "x", "0x", "0x-1", "--1", "1e3",
                                 "99999999999999999999"}) {
    EXPECT_EQ(parse_integer(text), std::nullopt) << text;
  }
}

TEST(StatusOf, TellsWhyAReadFailed) {
  const std::pair<int, ReadStatus> kExpected[] = {
      {ENODEV, ReadStatus::gone},         {ENOENT, ReadStatus::gone},
      {EACCES, ReadStatus::denied},       {EPERM, ReadStatus::denied},
      {ETIMEDOUT, ReadStatus::timeout},   {EOPNOTSUPP, ReadStatus::unsupported},
      {ENODATA, ReadStatus::unsupported}, {EINVAL, ReadStatus::unsupported},
      {EIO, ReadStatus::failed},          {EBUSY, ReadStatus::failed}};
  for (const auto& [error, status] : kExpected) EXPECT_EQ(status_of(error), status) << error;
}

TEST(File, IsReadAnewEachTime) {
  const Tree tree = make_tree({{"temp1_input", "42000\n"}});
  const File file(tree / "temp1_input");
  EXPECT_EQ(file.read_integer().value, 42000);
  tree.write("temp1_input", "43000\n");
  EXPECT_EQ(file.read_integer().value, 43000);
}

TEST(File, EmptyIsUnsupportedAndGarbageFailed) {
  const Tree tree = make_tree({{"empty", ""}, {"padding", std::string(4096, '\0')}, {"garbage", "N/A\n"}});
  EXPECT_EQ(File(tree / "empty").read_integer().status, ReadStatus::unsupported);
  EXPECT_EQ(File(tree / "padding").read_integer().status, ReadStatus::unsupported);
  EXPECT_EQ(File(tree / "garbage").read_integer().status, ReadStatus::failed);
}

TEST(File, AMissingOneIsGoneAndAFolderIsNoText) {
  const Tree tree = make_tree({{"folder/file", "1"}});
  EXPECT_EQ(File(tree / "nothing").status(), ReadStatus::gone);
  EXPECT_EQ(File(tree / "nothing").read_integer().status, ReadStatus::gone);
  EXPECT_EQ(File(tree / "folder").read_integer().status, ReadStatus::failed);  // EISDIR
}

TEST(File, MovesWithItsDescriptor) {
  const Tree tree = make_tree({{"a", "1"}, {"b", "2"}});
  File file(tree / "a");
  File other = std::move(file);
  EXPECT_EQ(other.read_integer().value, 1);
  other = File(tree / "b");
  EXPECT_EQ(other.read_integer().value, 2);
}

TEST(ReadText, EndsAtTheFirstNul) {
  const Tree tree = make_tree({{"vbios_version", "113-D4121EXT-CO1\n"s + std::string(4079, '\0')}});
  EXPECT_EQ(read_text(tree / "vbios_version"), "113-D4121EXT-CO1");
  EXPECT_EQ(read_text(tree / "nothing"), "");
}

TEST(LinkName, IsTheTargetsLastComponent) {
  const Tree tree = make_tree({{"driver", "-> ../../bus/pci/drivers/amdgpu"}, {"file", "x"}});
  EXPECT_EQ(link_name(tree / "driver"), "amdgpu");
  EXPECT_EQ(link_name(tree / "file"), "");
}

TEST(List, CountsNumbersAsNumbers) {
  const Tree tree = make_tree({{"hwmon10/name", ""}, {"hwmon2/name", ""}, {"hwmon/name", ""}, {"card0", ""}});
  EXPECT_EQ(list(tree.path()), (std::vector<std::string>{"card0", "hwmon", "hwmon2", "hwmon10"}));
  EXPECT_EQ(list(tree / "nothing"), std::vector<std::string>{});
}

}  // namespace
}  // namespace gpumeter::sysfs
