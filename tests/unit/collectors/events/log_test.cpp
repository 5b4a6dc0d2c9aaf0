#include "collectors/events/log.hpp"

#include <gtest/gtest.h>

#include <string>

namespace gpumeter::events {
namespace {

const std::string kText = "NVRM: Xid (PCI:0000:3d:00): 79, GPU has fallen off the bus.";

bool is_event(const std::string& line) {
  const std::optional<Event> event = LogReader().take(line);
  return event && event->code == 79U && event->pci == "0000:3d:00.0";
}

TEST(LogReader, ReadsTheFormatsOfDmesg) {
  for (const char* const head :
       {"", "[  123.456789] ", "[123456.789012] ", "[Tue Jan  1 00:00:00 2026] ",
        "kern  :err   : ", "kern  :warn  : [  123.456789] ", "kern  :err   : [Tue Nov 24 17:00:00 2026] ",
        "kern  :err   : 2025-01-25T10:34:54,859532+00:00 ", "<4>[  123.456789] ", "<3>",
        "2026-11-24T17:00:00,123456+00:00 ", "[Nov24 17:00] ", "[  +0.000012] ", "[  123.456789][ T1234] ",
        "> [  312.5] ", "[...] ", "[\xE2\x80\xA6] ", "\x1b[32m[  123.456789] \x1b[0m\x1b[31m",
        "192.168.1.9: kern: warning: [2026-04-22T21:27:51.291660856Z]: "})
    EXPECT_TRUE(is_event(head + kText)) << head;
}

TEST(LogReader, ReadsTheFormatsOfTheJournalAndOfSyslog) {
  for (const char* const head : {"Nov 24 17:00:00 node kernel: ",
                                 "Nov  4 17:00:00 node kernel: ",
                                 "Nov 24 17:00:00.123456 node kernel: ",
                                 "2026-11-24T17:00:00+0000 node kernel: ",
                                 "2026-11-24T17:00:00.123456+00:00 node kernel: ",
                                 "[12345.678901] node kernel: ",
                                 "Tue 2026-11-24 17:00:00 UTC node kernel: ",
                                 "Tue 2026-11-24 17:00:00.123456 CEST node kernel: ",
                                 "1763999999.123456 node kernel: ",
                                 "[12345.678901 <    0.100000>] node kernel: ",
                                 "Nov 24 17:00:00 node kernel: [  123.456789] ",
                                 "Nov 24 17:00:00 kernel: [37932.0] ",
                                 "<4>Nov 24 17:00:00 node kernel: ",
                                 "<4>1 2026-11-24T17:00:00.000Z node kernel - - - ",
                                 "<0>1 - node kernel - - [a b=\"c\"] ",
                                 "/var/log/kern.log:Nov 24 17:00:00 node kernel: ",
                                 "/var/log/kern.log.1:77:Nov 24 17:00:00 node kernel: ",
                                 "kernel: ",
                                 "jan. 29 20:50:17 node kernel: ",
                                 "Okt 06 17:59:27 node kernel: ",
                                 "\xD1\x84\xD0\xB5\xD0\xB2 12 00:48:02 kernel: ",
                                 "22:39:31 kernel: ",
                                 "[   23.586975] kernel: ",
                                 "Nov 24 17:00:00 node kern.warn kernel: [ 1.2] ",
                                 "node kernel: ",
                                 "[Sun Dec  1 14:54:40 2024] node kernel: "})
    EXPECT_TRUE(is_event(head + kText)) << head;
}

TEST(LogReader, ReadsRecordsAndJson) {
  for (const char* const head : {"3,1234,5678901,-;", "4,1,2,c,caller=T12;", "0,1,2,-;"})
    EXPECT_TRUE(is_event(head + kText)) << head;
  EXPECT_TRUE(is_event("{\"_TRANSPORT\":\"kernel\",\"MESSAGE\":\"" + kText +
                       "\",\"SYSLOG_FACILITY\":\"0\",\"SYSLOG_IDENTIFIER\":\"kernel\"}"));
  EXPECT_TRUE(
      is_event("\x1e{ \"MESSAGE\" : \"" + kText + "\", \"PRIORITY\" : \"4\", \"_TRANSPORT\" : \"kernel\" }"));
  EXPECT_TRUE(is_event("{\"log\":\"[  12.3] " + kText +
                       "\\n\",\"stream\":\"stdout\",\"time\":\"2026-11-24T17:00:00Z\"}"));
  EXPECT_TRUE(
      is_event("{\"labels\":{\"a\":[1,\"}\"]},\"message\":\"Nov 24 17:00:00 node kernel: " + kText + "\"}"));
  EXPECT_TRUE(is_event("2026-11-24T17:00:00.000000000Z stderr F [  12.3] " + kText));
  EXPECT_TRUE(is_event("2026-11-24T17:00:00Z " + kText));
  std::string bytes;
  for (const char c : kText) bytes += (bytes.empty() ? "" : ",") + std::to_string(static_cast<int>(c));
  EXPECT_TRUE(is_event("{\"MESSAGE\":[" + bytes + "],\"_TRANSPORT\":\"kernel\"}"));
}

TEST(LogReader, WhatUserSpaceWroteIsNone) {
  for (const char* const head :
       {"Nov 24 17:00:00 node myapp[123]: ", "Nov 24 17:00:00 node myapp: ",
        "Nov 24 17:00:00 node kernel[123]: ", "12,9,1,-;", "14,1,2,-;", "user  :notice: [  123.456789] ",
        "daemon:err   : ", "<12>[  123.456789] ", "<13>Nov 24 17:00:00 node root: ",
        "[12345.678901] node app[7]: ", "<13>1 2026-11-24T17:00:00.000Z node app - - - ",
        "<4>1 2026-11-24T17:00:00.000Z node app 7 - - ", "2026-11-24T17:00:00+00:00 node app[1]: ",
        "Nov 24 17:00:00 node user.notice app: ", "myapp[123]: ", "usb 1-1: Product: ", "audit: type=1400 ",
        "Nov 24 17:00:00 node kernel: usb 1-1: Manufacturer: ", "Nov 24 17:00:00 node app[1]: kernel: "})
    EXPECT_FALSE(LogReader().take(head + kText)) << head;
  EXPECT_FALSE(LogReader().take("{\"_TRANSPORT\":\"stdout\",\"MESSAGE\":\"" + kText + "\"}"));
  EXPECT_FALSE(LogReader().take("{\"_TRANSPORT\":\"syslog\",\"SYSLOG_IDENTIFIER\":\"kernel\",\"MESSAGE\":\"" +
                                kText + "\"}"));
  EXPECT_FALSE(LogReader().take("{\"_TRANSPORT\":\"kernel\",\"SYSLOG_FACILITY\":\"1\",\"MESSAGE\":\"" +
                                kText + "\"}"));
  EXPECT_FALSE(LogReader().take("{\"MESSAGE\":\"" + kText + "\"}"));
  EXPECT_FALSE(LogReader().take("{\"ident\":\"app\",\"message\":\"" + kText + "\"}"));
  EXPECT_FALSE(LogReader().take("{\"message\":\"Nov 24 17:00:00 node app: " + kText + "\"}"));
}

TEST(LogReader, ALineThatContinuesAMessageOfUserSpaceIsNone) {
  LogReader reader;
  EXPECT_FALSE(reader.take("Nov 24 17:00:00 node app[1]: hello"));
  EXPECT_FALSE(reader.take("                             " + kText));
  EXPECT_FALSE(reader.take("Nov 24 17:00:00 node kernel: hello"));
  EXPECT_TRUE(reader.take("                             " + kText));
}

TEST(LogReader, ALineEndOfWindowsIsNoText) { EXPECT_TRUE(is_event(kText + "\r")); }

TEST(LogReader, AMessageOfSeveralLinesHasItsDevice) {
  LogReader reader;
  EXPECT_FALSE(reader.take("[ 1843.308145] NVRM: The NVIDIA GPU 0000:b3:00.0"));
  EXPECT_FALSE(reader.take("               NVRM: (PCI ID: 10de:26b5) installed in this system has"));
  const auto event =
      reader.take("               NVRM: fallen off the bus and is not responding to commands.");
  ASSERT_TRUE(event);
  EXPECT_EQ(event->kind, Kind::off_bus);
  EXPECT_EQ(event->pci, "0000:b3:00.0");
  const auto escaped = reader.take(
      "NVRM: The NVIDIA GPU 0000:b4:00.0\\x0aNVRM: (PCI ID: 10de:26b5) installed in this system "
      "has\\x0aNVRM: fallen off the bus and is not responding to commands.");
  ASSERT_TRUE(escaped);
  EXPECT_EQ(escaped->pci, "0000:b4:00.0");
}

TEST(LogReader, TheDriversRepetitionOfA79IsNone) {
  LogReader reader;
  EXPECT_TRUE(reader.take("[1084456.074562] " + kText));
  EXPECT_FALSE(reader.take("[1084456.074566] NVRM: GPU 0000:3d:00.0: GPU has fallen off the bus."));
  EXPECT_TRUE(reader.take("[1084456.074567] NVRM: GPU 0000:3d:00.0: GPU has fallen off the bus."));
  EXPECT_TRUE(reader.take("[1084456.074568] " + kText));
  EXPECT_TRUE(reader.take("[1084556.074566] NVRM: GPU 0000:3d:00.0: GPU has fallen off the bus."));
  EXPECT_TRUE(reader.take(kText));
  EXPECT_TRUE(reader.take("NVRM: GPU 0000:3d:00.0: GPU has fallen off the bus."));
}

}  // namespace
}  // namespace gpumeter::events
