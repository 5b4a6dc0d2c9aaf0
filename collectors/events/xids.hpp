#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/text.hpp"

/// How bad an event is, what helps, and the codes of NVIDIA's XID catalogue.
namespace gpumeter::events {

enum class Severity : std::uint8_t {
  none,      ///< requires no action
  degraded,  ///< works, but slower or with less safety than it should
  failed,    ///< must not get new work before the action was taken
};
inline constexpr EnumNames<Severity, 3> kSeverityNames = {
    {{Severity::none, "none"}, {Severity::degraded, "degraded"}, {Severity::failed, "failed"}}};
constexpr std::string_view to_string(Severity severity) noexcept { return kSeverityNames.of(severity); }

/// The action that helps.
enum class Action : std::uint8_t {
  none,         ///< watch it
  restart_job,  ///< the job on the GPU has failed; the GPU works
  drain,        ///< let its jobs end, give it no new ones, then look at it: cooling, power, cables
  reset,        ///< reset the GPU after its jobs have ended
  reboot,       ///< reboot the machine
  replace,      ///< replace the card or its fan
};
inline constexpr EnumNames<Action, 6> kActionNames = {{{Action::none, "none"},
                                                       {Action::restart_job, "restart_job"},
                                                       {Action::drain, "drain"},
                                                       {Action::reset, "reset"},
                                                       {Action::reboot, "reboot"},
                                                       {Action::replace, "replace"}}};
constexpr std::string_view to_string(Action action) noexcept { return kActionNames.of(action); }

enum class XidClass : std::uint8_t {
  immediate,  ///< the GPU or a part of it does not work until the action was taken
  job,        ///< ends one process; the GPU works. A finding only if it has a severity
  noise,      ///< informative; another condition reports what matters of it
};
inline constexpr EnumNames<XidClass, 3> kXidClassNames = {
    {{XidClass::immediate, "immediate"}, {XidClass::job, "job"}, {XidClass::noise, "noise"}}};

/// A code of NVIDIA's XID catalogue.
struct Xid {
  std::string_view code;  ///< "79", or "other" for all codes without a row
  XidClass kind;
  Action action;
  std::string_view bucket;   ///< the catalogue's resolution bucket (immediate action); empty: it has none
  std::string_view meaning;  ///< "GPU has fallen off the bus"
  Severity severity = Severity::none;
  bool has_series = true;  ///< has a series of its own; the others are counted as "other"
};

namespace xid_rows {

constexpr Xid fatal(std::string_view code, Action action, std::string_view bucket, std::string_view meaning) {
  return {code, XidClass::immediate, action, bucket, meaning, Severity::failed};
}
constexpr Xid serious(std::string_view code, Action action, std::string_view bucket,
                      std::string_view meaning) {
  return {code, XidClass::immediate, action, bucket, meaning, Severity::degraded};
}
/// A program's own fault is no fault of its GPU.
constexpr Xid program(std::string_view code, std::string_view bucket, std::string_view meaning) {
  return {code, XidClass::job, Action::restart_job, bucket, meaning};
}
constexpr Xid noise(std::string_view code, std::string_view bucket, std::string_view meaning) {
  return {code, XidClass::noise, Action::none, bucket, meaning};
}
/// A code that only the kernel's log and events name: its series is "other".
constexpr Xid rare(Xid xid) {
  xid.has_series = false;
  return xid;
}

}  // namespace xid_rows

// NVIDIA, "Analyzing Xid Errors with the Xid Catalog" (docs.nvidia.com/deploy/xid-errors), columns
// Description and Resolution Bucket (Immediate Action). RESET_GPU: reset. RESTART_BM, RESTART_VM: reboot.
// RESTART_APP: restart_job. The workflows are decided by what they begin with. Codes that the catalogue marks
// as unused on Ampere and later are classed by the list for older GPUs in the same document. The immediate
// codes are also those that AWS's node monitoring agent treats as fatal, except 63, which NVIDIA ignores.
// Codes above 172 are in nverror.h of NVIDIA's open kernel modules and in no catalogue.
// clang-format off
inline constexpr auto kXids = [] {
  using namespace xid_rows;
  return std::to_array<Xid>({
    program("8", "RESTART_APP", "GPU stopped processing"),
    rare(program("11", "RESTART_APP", "Invalid or corrupted push buffer stream")),
    program("13", "RESTART_APP", "Graphics Engine Exception"),
    rare(noise("14", "IGNORE", "Fake error, unused")),
    rare(program("25", "RESTART_APP", "Invalid or illegal push buffer stream")),
    program("31", "RESTART_APP", "GPU memory page fault"),
    program("32", "RESTART_APP", "Invalid or corrupted push buffer stream"),
    rare(noise("37", "IGNORE", "Driver firmware error")),
    noise("38", "IGNORE", "Driver firmware error"),
    rare(program("39", "RESTART_APP", "Copy Engine Exception")),
    rare(program("40", "RESTART_APP", "Copy Engine Exception")),
    rare(program("41", "RESTART_APP", "Copy Engine Exception")),
    program("43", "IGNORE", "GPU stopped processing: the program hit a fault of its own"),
    noise("44", "IGNORE", "Graphics Engine fault during context switch"),
    program("45", "WORKFLOW_XID_45", "Preemptive cleanup after the end of a program or another XID"),
    fatal("46", Action::reset, "RESET_GPU", "GPU stopped processing"),
    // Alone: reset. With 63 or 64: drain and reset, which comes to the same.
    fatal("48", Action::reset, "WORKFLOW_XID_48", "Double Bit ECC Error"),
    rare(serious("54", Action::drain, "CHECK_MECHANICALS", "Auxiliary power is not connected to the GPU board")),
    noise("56", "unused", "Display Engine error"),
    serious("57", Action::reset, "unused", "Error programming the video memory interface"),
    rare(program("60", "RESTART_APP", "Video processor exception")),
    serious("61", Action::reset, "unused", "Internal micro-controller breakpoint"),
    fatal("62", Action::reset, "RESET_GPU", "Internal micro-controller halt"),
    noise("63", "IGNORE", "GPU memory remapping event"),  // row_remap_pending, retired_pages_pending
    fatal("64", Action::reset, "RESET_GPU", "GPU memory remapping failure"),
    rare(noise("66", "IGNORE", "Illegal access by driver")),
    rare(noise("67", "IGNORE", "Illegal access by driver")),
    program("68", "RESTART_APP", "NVDEC0 Exception"),
    program("69", "RESTART_APP", "Graphics Engine class error"),
    rare(program("70", "RESTART_APP", "CE3: Unknown Error")),
    rare(program("71", "RESTART_APP", "CE4: Unknown Error")),
    rare(program("72", "RESTART_APP", "CE5: Unknown Error")),
    // "A GPU reset or node reboot is needed to clear this error."
    fatal("74", Action::reset, "WORKFLOW_NVLINK_ERR", "NVLINK Error"),
    rare(program("75", "RESTART_APP", "CE6: Unknown Error")),
    rare(program("76", "RESTART_APP", "CE7: Unknown Error")),
    rare(program("77", "RESTART_APP", "CE8: Unknown Error")),
    rare(serious("78", Action::none, "UPDATE_SWFW", "vGPU Start Error: the versions of host and guest do not match")),
    fatal("79", Action::reboot, "RESTART_BM", "GPU has fallen off the bus"),
    rare(program("80", "RESTART_APP", "Corrupted data sent to GPU")),
    rare(program("82", "RESTART_APP", "NVJPG0 Error")),
    rare(program("83", "RESTART_APP", "NVDEC1 Error")),
    rare(program("84", "RESTART_APP", "NVDEC2 Error")),
    rare(program("85", "RESTART_APP", "CE9: Unknown Error")),
    rare(program("86", "RESTART_APP", "OFA Exception")),
    rare(program("88", "RESTART_APP", "NVDEC3 Error")),
    rare(program("89", "RESTART_APP", "NVDEC4 Error")),
    noise("92", "IGNORE", "High single-bit ECC error rate"),  // memory_errors_corrected
    noise("93", "IGNORE", "Non-fatal violation of provisioned InfoROM wear limit"),
    // The fault is the hardware's, but only one program lost its memory: restart it, reset the GPU when convenient.
    {"94", XidClass::job, Action::restart_job, "RESTART_APP", "Contained memory error", Severity::degraded},
    fatal("95", Action::reset, "RESET_GPU", "Uncontained memory error"),
    rare(program("96", "RESTART_APP", "NVDEC5 Error")),
    rare(program("97", "RESTART_APP", "NVDEC6 Error")),
    rare(program("98", "RESTART_APP", "NVDEC7 Error")),
    rare(program("99", "RESTART_APP", "NVJPG1 Error")),
    rare(program("100", "RESTART_APP", "NVJPG2 Error")),
    rare(program("101", "RESTART_APP", "NVJPG3 Error")),
    rare(program("102", "RESTART_APP", "NVJPG4 Error")),
    rare(program("103", "RESTART_APP", "NVJPG5 Error")),
    rare(program("104", "RESTART_APP", "NVJPG6 Error")),
    rare(program("105", "RESTART_APP", "NVJPG7 Error")),
    rare(noise("106", "IGNORE", "SMBPBI Test Message")),
    rare(noise("107", "IGNORE", "SMBPBI Test Message Silent")),
    rare(noise("108", "IGNORE", "NVLink remote translation error")),
    fatal("109", Action::reset, "RESET_GPU", "Context Switch Timeout Error"),
    fatal("110", Action::reset, "RESET_GPU", "Security Fault Error"),
    fatal("119", Action::reset, "RESET_GPU", "GSP RPC Timeout"),
    fatal("120", Action::reset, "RESET_GPU", "GSP Error"),
    noise("121", "IGNORE", "C2C Error"),
    serious("122", Action::none, "unused", "SPI PMU RPC Read Failure"),
    serious("123", Action::none, "unused", "SPI PMU RPC Write Failure"),
    rare(program("126", "RESTART_APP", "CE10: Unknown Error")),
    rare(program("127", "RESTART_APP", "CE11: Unknown Error")),
    rare(program("128", "RESTART_APP", "CE12: Unknown Error")),
    rare(program("129", "RESTART_APP", "CE13: Unknown Error")),
    rare(program("130", "RESTART_APP", "CE14: Unknown Error")),
    rare(program("131", "RESTART_APP", "CE15: Unknown Error")),
    rare(program("132", "RESTART_APP", "CE16: Unknown Error")),
    rare(program("133", "RESTART_APP", "CE17: Unknown Error")),
    rare(program("134", "RESTART_APP", "CE18: Unknown Error")),
    rare(program("135", "RESTART_APP", "CE19: Unknown Error")),
    fatal("136", Action::reset, "RESET_GPU", "Link Training Failed"),
    program("137", "IGNORE", "NVLink Privilege Error: an illegal access of a program"),
    rare(program("139", "RESTART_APP", "OFA1 Error")),
    fatal("140", Action::reset, "RESET_GPU", "ECC Unrecovered Error"),
    rare(noise("141", "IGNORE", "CUDA Fast Path Error")),
    serious("142", Action::drain, "CONTACT_SUPPORT", "NVENC3 Error"),
    fatal("143", Action::reset, "RESET_GPU", "GPU Initialization Error"),
    // The message in the kernel's log decides between no action and a reset (kNvlinkRules), so the code alone
    // asks for nothing. All rules of 147 and 148 ignore, the one of 150 resets.
    serious("144", Action::none, "WORKFLOW_NVLINK5_ERR", "NVLINK: SAW Error"),
    serious("145", Action::none, "WORKFLOW_NVLINK5_ERR", "NVLINK: RLW Error"),
    serious("146", Action::none, "WORKFLOW_NVLINK5_ERR", "NVLINK: TLW Error"),
    noise("147", "WORKFLOW_NVLINK5_ERR", "NVLINK: TREX Error"),
    noise("148", "WORKFLOW_NVLINK5_ERR", "NVLINK: NVLPW_CTRL Error"),
    serious("149", Action::none, "WORKFLOW_NVLINK5_ERR", "NVLINK: NETIR Error"),
    fatal("150", Action::reset, "WORKFLOW_NVLINK5_ERR", "NVLINK: MSE Error"),
    fatal("151", Action::reboot, "RESTART_VM", "Key rotation Error"),
    rare(noise("152", "IGNORE", "DLA SMMU Error")),
    rare(noise("153", "IGNORE", "DLA timeout Error")),
    noise("154", "XID_154", "GPU Recovery Action Changed"),  // recovery_action
    serious("155", Action::reset, "RESET_GPU", "NVLINK: SW Defined Error"),
    serious("156", Action::reset, "RESET_GPU", "Resource Retirement Event"),
    rare(noise("157", "IGNORE", "Resource Retirement Failure")),  // memory_unrepairable
    fatal("158", Action::reset, "RESET_GPU", "GPU Fatal Timeout"),
    rare(serious("159", Action::reset, "CHECK_UVM", "CHI Non-Data Error")),
    noise("160", "IGNORE", "Channel Retirement Event"),
    rare(noise("161", "IGNORE", "Channel Retirement Failure")),
    rare(noise("162", "", "Power Smoothing HW Circuitry capability reengaged")),
    rare(serious("163", Action::none, "", "Power Smoothing HW Circuitry capability disengaged")),
    rare(serious("164", Action::none, "", "Power Smoothing HW Circuitry low lifetime reached")),
    rare(serious("165", Action::none, "", "Power Smoothing HW Circuitry lifetime exhausted")),
    rare(serious("166", Action::none, "", "NVLink traffic before the link was configured for encryption")),
    rare(serious("167", Action::none, "", "PCIe fatal timeout")),
    rare(serious("168", Action::none, "", "Reduced memory capacity: errors in the write protected region")),
    rare(serious("169", Action::none, "", "Internal micro-controller halt (SEC2)")),
    rare(serious("170", Action::none, "", "NVLink interrupt in confidential computing mode")),
    // These two tell where the error of a 48 was; the 48 asks for the reset.
    rare(serious("171", Action::none, "", "Uncorrectable DRAM error: details of a 48")),
    rare(serious("172", Action::none, "", "Uncorrectable SRAM error: details of a 48; replace the GPU if the SRAM threshold is exceeded")),
    rare(serious("173", Action::none, "", "Fatal failure of the C2C link")),
    rare(serious("175", Action::none, "", "GPU memory subsystem timeout")),
    rare(serious("176", Action::none, "", "Correctable PCIe errors above their limit")),
    rare(serious("177", Action::reset, "", "A memory bank waits for a reset to be remapped")),
    rare(serious("179", Action::none, "", "Contained error of the C2C link")),
    rare(serious("185", Action::none, "", "Spare hardware has replaced a part of the GPU")),
    serious("other", Action::none, "various", "an XID without a series of its own; the kernel log has its code"),
  });
}();
// clang-format on

/// The row of a code, or that of "other".
const Xid& xid_of(std::uint64_t code) noexcept;

namespace xid_rows {

inline constexpr std::size_t kPlaces =
    static_cast<std::size_t>(std::ranges::count(kXids, true, &Xid::has_series));
struct Names {
  std::string_view names[kPlaces];
};
inline constexpr Names kNames = [] {
  Names all;
  std::size_t place = 0;
  for (const Xid& xid : kXids) {
    if (xid.has_series) all.names[place++] = xid.code;
  }
  return all;
}();

}  // namespace xid_rows

/// The codes that have a series from the start, by number, and "other". All other codes count as "other".
inline constexpr const auto& kXidNames = xid_rows::kNames.names;

}  // namespace gpumeter::events
