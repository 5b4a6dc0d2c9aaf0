#include "collectors/events/line.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <string>
#include <vector>

namespace gpumeter::events {
namespace {

Event read(std::string_view text) {
  const std::optional<Event> event = parse(text);
  EXPECT_TRUE(event) << text;
  return event.value_or(Event{});
}

std::string verdict(std::string_view text) {
  const Verdict verdict = verdict_of(read(text));
  return std::string(to_string(verdict.severity)) + " " + std::string(to_string(verdict.action));
}

std::vector<std::uint64_t> numbers(const Event& event) {
  return {event.numbers.begin(), event.numbers.begin() + static_cast<std::ptrdiff_t>(event.number_count)};
}

TEST(XidLine, HasItsDeviceCodeAndProcess) {
  const Event event =
      read("NVRM: Xid (PCI:0000:B5:00): 31, pid=4242, name=python3.10, Ch 00000008, intr 00000000.");
  EXPECT_EQ(event.kind, Kind::xid);
  EXPECT_EQ(event.vendor, "nvidia");
  EXPECT_EQ(event.pci, "0000:b5:00.0");
  EXPECT_EQ(event.code, 31U);
  EXPECT_EQ(event.pid, 4242U);
  EXPECT_EQ(event.process, "python3.10");
  EXPECT_FALSE(event.subcode || event.link || event.gpu_instance);
}

TEST(XidLine, AnUnknownProcessIsNone) {
  const Event event =
      read("NVRM: Xid (PCI:0000:05:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus.");
  EXPECT_FALSE(event.pid);
  EXPECT_EQ(event.process, "");
}

TEST(XidLine, HasTheInstancesOfMig) {
  const Event event = read("NVRM: Xid (PCI:0000:01:00 GPU-I:05 GPU-CI:00): 31, pid=1, name=a, Ch 1");
  EXPECT_EQ(event.gpu_instance, 5U);
  EXPECT_EQ(event.compute_instance, 0U);
}

TEST(XidLine, ReadsTheAddressesOfAllDrivers) {
  EXPECT_EQ(read("NVRM: Xid (0000:03:00): 14, Channel 00000001").pci, "0000:03:00.0");
  EXPECT_EQ(read("NVRM: Xid (03:00): 13, 0003").pci, "0000:03:00.0");
  EXPECT_EQ(read("NVRM: Xid (PCI:00000001:00:00): 46").pci, "0001:00:00.0");
  EXPECT_EQ(read("NVRM: Xid (PCI:10000:01:00.0): 46").pci, "10000:01:00.0");
}

TEST(XidLine, WhatIsNoXidIsNone) {
  for (const char* const text :
       {"", "NVRM:", "NVRM: Xid : 32, pid=2", "NVRM: Xid (PCI:0000:66:00): abc, pid=1",
        "NVRM: Xid (PCI:...): 145, x", "NVRM: GPU at PCI:0000:66:00: GPU-1",
        "NVRM: GPU Board Serial Number: 79", "NVRM: Xid (PCI:0000:66:00): 79x",
        "NVRM: Xid (PCI:0000:66:00): 0", "usb 1-1: Product: NVRM: Xid (PCI:0000:66:00): 79",
        "Xid (PCI:0000:66:00): 79", "NVRM: loading NVIDIA UNIX Open Kernel Module for x86_64  570.158.01"})
    EXPECT_FALSE(parse(text)) << text;
}

TEST(XidLine, ANameCannotMakeAnotherEvent) {
  const Event event = read("NVRM: Xid (PCI:0000:01:00): 31, pid=7, name=x, y), 79, GPU, Ch 00000008, intr 0");
  EXPECT_EQ(event.code, 31U);
  EXPECT_EQ(event.process, "x");
}

TEST(XidLine, HasTheNumbersOfItsCode) {
  EXPECT_EQ(numbers(read("NVRM: Xid (PCI:0000:b5:00): 13, Graphics SM Warp Exception on (GPC 1, TPC 3, SM "
                         "0): Out Of Range")),
            (std::vector<std::uint64_t>{1, 3, 0}));
  const Event link = read(
      "NVRM: Xid (PCI:0003:00:00): 74, pid='<unknown>', name=<unknown>, NVLink: fatal error detected "
      "on link 14(0x0, 0x0, 0x10000, 0x0, 0x0, 0x0, 0x0)");
  EXPECT_EQ(link.link, 14);
  EXPECT_EQ(numbers(link), (std::vector<std::uint64_t>{0, 0, 0x10000, 0, 0, 0, 0}));
  EXPECT_EQ(
      read("NVRM: Xid (PCI:0000:dc:00): 45, pid=1, name=python3, Ch 00000001 caused by previous Xid 149")
          .cause,
      149U);
  EXPECT_EQ(
      numbers(
          read("NVRM: Xid (PCI:0000:9b:00): 119, pid=1, name=nvidia-smi, Timeout after 6s of waiting for RPC "
               "response from GPU4 GSP! Expected function 103 (GSP_RM_ALLOC) (0x0 0x0).")),
      (std::vector<std::uint64_t>{103}));
}

TEST(XidLine, OfNvlink5HasUnitSubcodeAndLink) {
  const Event event = read(
      "NVRM: Xid (PCI:0018:01:00): 149, NETIR_LINK_EVT  Fatal   XC0 i0 Link 09 (0x025525c6 0x00000000 "
      "0x00000000 0x00000000 0x00000000 0x00000000)");
  EXPECT_EQ(event.unit, "NETIR_LINK_EVT");
  EXPECT_EQ(event.subcode, 37U);
  EXPECT_EQ(event.link, 9);
  EXPECT_EQ(event.grade, Grade::fatal);
  EXPECT_EQ(read("NVRM: Xid (PCI:0019:01:00): 149, NETIR Fatal XC0 i0 Link -1 (0x000fe406 0x0)").link, -1);
  EXPECT_EQ(read("NVRM: Xid (PCI:0018:01:00): 145, pid=1, name=a,b, RLW_RXPIPE Nonfatal XC0 i0 Link 13 "
                 "(0x0409a0c2 0x8)")
                .unit,
            "RLW_RXPIPE");
  EXPECT_FALSE(read("NVRM: Xid (PCI:0000:01:00): 149, NETIR Fatal").subcode);
}

TEST(Verdict, OfNvlink5FollowsTheDecodeTable) {
  const auto of = [](const char* text) {
    return verdict("NVRM: Xid (PCI:0000:01:00): " + std::string(text));
  };
  EXPECT_EQ(of("144, SAW_MVB Nonfatal XC0 i0 Link 0 (0x00000001 0x00000008 0x0)"), "none none");
  EXPECT_EQ(of("144, SAW_MVB Fatal XC0 i0 Link 00 (0x00000001 0x00000002 0x0)"), "failed reset");
  EXPECT_EQ(of("145, RLW_REMAP Nonfatal XC1 i0 Link 10 (0x00000082 0x00000040 0x0)"), "failed reset");
  EXPECT_EQ(of("145, RLW_REMAP Nonfatal XC1 i0 Link 10 (0x00000082 0x00000001 0x0)"), "none restart_job");
  EXPECT_EQ(of("145, RLW_REMAP Nonfatal XC1 i0 Link 10 (0x00000082 0x00000141 0x0)"), "failed reset");
  EXPECT_EQ(of("145, RLW_SRC_TRACK Nonfatal XC1 i0 Link 12 (0x040988e2 0x00000008 0x0)"), "none restart_job");
  EXPECT_EQ(of("145, RLW_CTRL Nonfatal XC0 i0 Link 00 (0x00000003 0x80000000 0x0)"), "none none");
  EXPECT_EQ(of("146, TLW_RX/TLW_RX_PIPE1 Fatal XC0 i0 Link 00 (0x0000000b 0x00000004 0x0)"), "failed reset");
  EXPECT_EQ(of("146, TLW_TX_PIPE0 Nonfatal XC0 i0 Link 00 (0x0000000c 0x00000001 0x0)"), "none none");
  EXPECT_EQ(of("149, NETIR_BER_EVENT Nonfatal XC0 i0 Link 03 (0x00086226 0x00000001 0x0)"), "none none");
  EXPECT_EQ(of("149, NETIR Fatal XC0 i0 Link -1 (0x000fe406 0x0)"), "failed reset");
  EXPECT_EQ(of("149, NETIR_MFDE_EVENT Fatal XC0 i0 Link 00 (0x00000014 0x00000001 0x0)"), "failed reset");
  EXPECT_EQ(of("149, NETIR_MFDE_EVENT Nonfatal XC0 i0 Link 00 (0x00000014 0x00000003 0x0)"), "none none");
  EXPECT_EQ(of("149, NETIR_LINK_EVT Fatal XC0 i0 Link 00 (0x025001c6 0x0)"), "failed reset");
  // 38: NVIDIA ignores it although the line says fatal.
  EXPECT_EQ(of("149, NETIR_LINK_EVT Fatal XC0 i0 Link 00 (0x026001c6 0x0)"), "degraded none");
  // No rule.
  EXPECT_EQ(of("149, NETIR_NEW Fatal XC0 i0 Link 00 (0x026001c6 0x0)"), "failed reset");
  EXPECT_EQ(of("149, NETIR_NEW Nonfatal XC0 i0 Link 00 (0x026001c6 0x0)"), "none none");
  EXPECT_EQ(of("149"), "degraded none");
  EXPECT_EQ(of("150, MSE_WATCHDOG Fatal XC0 i0 Link 00 (0x00000000 0x0)"), "failed reset");
}

TEST(Verdict, OfSomeXidsIsInTheirMessage) {
  const auto of = [](const char* text) {
    return verdict("NVRM: Xid (PCI:0000:01:00): " + std::string(text));
  };
  EXPECT_EQ(of("94, pid=1, name=a, Contained: SM (0x1). RST: No, D-RST: No"), "degraded restart_job");
  EXPECT_EQ(of("94, Contained: SM (0x1). RST: Yes, D-RST: No"), "failed reset");
  EXPECT_EQ(of("95, pid=7062, Uncontained: LTC TAG (0x2, 0x1). RST: Yes, D-RST: No"), "failed reset");
  EXPECT_EQ(of("154, GPU recovery action changed from 0x0 (None) to 0x1 (GPU Reset Required)"),
            "failed reset");
  EXPECT_EQ(of("154, GPU recovery action changed from 0x0 (None) to 0x2 (OS Reboot)"), "failed reboot");
  EXPECT_EQ(of("154, GPU recovery action changed from 0x0 (None) to 0x4 (Drain and Reset)"), "failed reset");
  EXPECT_EQ(of("154, GPU recovery action changed from 0x1 (GPU Reset Required) to 0x0 (None)"), "none none");
  EXPECT_EQ(of("154, GPU recovery action changed from 0x1 (x) to 0xff (New)"), "degraded none");
  EXPECT_EQ(of("154 ("), "none none");
  EXPECT_EQ(of("74, NVLink: fatal error detected on link 2(0x10000, 0x0, 0x0, 0x0, 0x0, 0x0, 0x0)"),
            "failed reset");
  EXPECT_EQ(of("74, NVLink: fatal error detected on link 2(0x40800000, 0x0, 0x0, 0x0, 0x0, 0x0, 0x0)"),
            "none none");
  EXPECT_EQ(of("74, NVLink: fatal error detected on link 2(0x1, 0x0, 0x1, 0x0, 0x0, 0x0, 0x0)"),
            "failed reset");
  EXPECT_EQ(of("999, new"), "degraded none");
}

TEST(SxidLine, IsJudgedByItsWordAndItsClass) {
  const auto of = [](const char* text) {
    return verdict("nvidia-nvswitch3: SXid (PCI:0000:05:00.0): " + std::string(text));
  };
  EXPECT_EQ(of("12028, Non-fatal, Link 32 egress non-posted PRIV error (First)"), "none none");
  EXPECT_EQ(of("20034, Fatal, Link 30 LTSSM Fault Up"), "failed reset");
  EXPECT_EQ(of("12020, Fatal, Link 30 egress sequence ID error"), "failed reboot");
  EXPECT_EQ(of("22013, Fatal, Link 30 Minion Link DLREQ interrupt"), "none none");
  EXPECT_EQ(of("29999, Fatal, Link 30 new"), "failed reset");
  const Event event = read("nvidia-nvswitch0: SXid (PCI:0000:c3:00.0): 20034, Fatal, Link 30 LTSSM Fault Up");
  EXPECT_EQ(event.kind, Kind::sxid);
  EXPECT_EQ(event.pci, "0000:c3:00.0");
  EXPECT_EQ(event.code, 20034U);
  EXPECT_EQ(event.link, 30);
}

TEST(SxidLine, DetailsAreNoEvent) {
  for (const char* const rest :
       {"26006, SOE HALT data[0] = 0x               0",
        "22013, Severity 0 Engine instance 44 Sub-engine instance 00", "12028, Data {0x000001c0}"})
    EXPECT_FALSE(parse("nvidia-nvswitch3: SXid (PCI:0000:04:00.0): " + std::string(rest))) << rest;
}

TEST(MessageLine, IsFoundBehindAllItsHeads) {
  for (const char* const text :
       {"amdgpu 0000:08:00.0: amdgpu: ring gfx_0.0.0 timeout, signaled seq=42, emitted seq=44",
        "amdgpu 0000:08:00.0: ring gfx_0.0.0 timeout, signaled seq=42, emitted seq=44",
        "amdgpu 0000:08:00.0: [drm] *ERROR* ring gfx_0.0.0 timeout, signaled seq=42",
        "amdgpu 0000:08:00.0: [drm:amdgpu_job_timedout [amdgpu]] *ERROR* ring gfx_0.0.0 timeout"}) {
    const Event event = read(text);
    EXPECT_EQ(event.kind, Kind::ring_timeout) << text;
    EXPECT_EQ(event.vendor, "amd");
    EXPECT_EQ(event.pci, "0000:08:00.0");
  }
  const Event old = read(
      "[drm:amdgpu_job_timedout [amdgpu]] *ERROR* ring gfx_0.0.0 timeout, signaled seq=5, emitted seq=7");
  EXPECT_EQ(old.vendor, "amd");
  EXPECT_EQ(old.pci, "");
  EXPECT_EQ(
      read("[drm:amdgpu_job_timedout] *ERROR* ring gfx timeout, last signaled seq=5, last emitted seq=7")
          .vendor,
      "amd");
  EXPECT_EQ(read("[drm] GPU HANG: ecode 9:0:0xfffffffe, reason: Hang on render ring, action: reset").vendor,
            "intel");
}

TEST(MessageLine, OfAPortHasTheDeviceThatItReports) {
  EXPECT_EQ(read("pcieport 0000:00:1d.0: AER: Multiple Corrected error received: 0000:03:00.0").pci,
            "0000:03:00.0");
  EXPECT_EQ(read("pcieport 0000:00:1d.0: AER: Corrected error received: id=00e8").pci, "0000:00:1d.0");
  EXPECT_EQ(read("pcieport 0000:00:03.1: AER: Correctable error message received from 0000:00:00.0").pci,
            "0000:00:03.1");
  EXPECT_FALSE(parse(
      "nvme 0000:03:00.0: AER: PCIe Bus Error: severity=Corrected, type=Physical Layer, (Receiver ID)"));
}

TEST(MessageLine, OfSeveralLinesIsOneEvent) {
  const Event event = read(
      "NVRM: The NVIDIA GPU 0000:b3:00.0\nNVRM: (PCI ID: 10de:26b5) installed in this system has\n"
      "NVRM: fallen off the bus and is not responding to commands.");
  EXPECT_EQ(event.kind, Kind::off_bus);
  EXPECT_EQ(event.pci, "0000:b3:00.0");
  EXPECT_EQ(read("NVRM: GPU 18:00.0: GPU has fallen off the bus.").pci, "0000:18:00.0");
  EXPECT_EQ(read("NVRM: The NVIDIA GPU 0000:b3:00.0\nNVRM: Xid (PCI:0000:b3:00): 79, GPU has fallen").kind,
            Kind::xid);
}

TEST(MessageLine, ACountOfZeroIsNoEvent) {
  EXPECT_FALSE(
      parse("amdgpu 0000:03:00.0: amdgpu: socket: 0, die: 0, 0 new uncorrectable hardware errors detected in "
            "umc block"));
  // A card that sleeps.
  EXPECT_FALSE(parse("amdgpu 0000:0b:00.0: 1048560 uncorrectable hardware errors detected in umc block"));
  EXPECT_EQ(verdict("amdgpu 0000:03:00.0: amdgpu: {7}socket: 0, die: 0, 2 new uncorrectable hardware errors "
                    "detected in umc block"),
            "failed reset");
  EXPECT_EQ(verdict("amdgpu 0000:03:00.0: amdgpu: socket: 4, die: 0, 3 correctable hardware errors detected "
                    "in total in gfx "
                    "block, no user action is needed."),
            "none none");
}

TEST(Catalogue, EachMessageIsFoundByItsOwnPattern) {
  for (const Message& message : messages()) {
    std::string text;
    for (const char c : message.text) text += c == '#' ? "1" : c == '*' ? "x " : std::string(1, c);
    const std::string_view driver =
        message.driver == "gpu" || message.driver == "port" ? "amdgpu" : message.driver;
    std::uint64_t found[kMostNumbers];
    std::span<std::uint64_t> numbers(found);
    const Message* const first = find_message(driver, text, numbers);
    ASSERT_NE(first, nullptr) << message.text;
    EXPECT_EQ(first->kind, message.kind) << message.text << " is hidden by " << first->text;
    EXPECT_EQ(first->action, message.action) << message.text << " is hidden by " << first->text;
  }
}

TEST(Catalogue, AHarmlessRowAsksForNothing) {
  for (const Message& message : messages()) {
    const bool is_strong = message.action > Action::restart_job;
    EXPECT_TRUE(!is_strong || message.severity == Severity::failed) << message.text;
  }
  for (const Sxid& sxid : sxids())
    EXPECT_EQ(sxid.severity == Severity::failed, sxid.action != Action::none) << sxid.first;
}

TEST(Line, OfAnyLengthIsBounded) {
  const std::string text = "NVRM: Xid (PCI:0000:01:00): 31, pid=1, name=" + std::string(1 << 20, 'a');
  const Event event = read(text);
  EXPECT_LE(event.text.size(), kLongestText);
  EXPECT_LE(event.process.size(), 64U);
}

}  // namespace
}  // namespace gpumeter::events
