#include "exporter/health/xids.hpp"

#include <string>
#include <vector>

#include "collectors/api/catalog.hpp"

namespace gpumeter::health {
namespace {

using std::chrono::hours;
using std::chrono::minutes;
using enum Severity;

// A failed GPU stays failed for an hour after the event, or until its driver was released for a reset.
constexpr std::chrono::seconds kKeepFailed = hours(1);
constexpr std::chrono::seconds kKeepDegraded = minutes(10);

constexpr Xid fatal(std::string_view code, Action action, std::string_view bucket, std::string_view meaning) {
  return {code, XidClass::immediate, action, bucket, meaning, true, failed};
}
constexpr Xid serious(std::string_view code, Action action, std::string_view bucket,
                      std::string_view meaning) {
  return {code, XidClass::immediate, action, bucket, meaning, true, degraded};
}
/// A program's own fault is no fault of its GPU.
constexpr Xid program(std::string_view code, std::string_view bucket, std::string_view meaning) {
  return {code, XidClass::job, Action::restart_job, bucket, meaning, false};
}
constexpr Xid noise(std::string_view code, std::string_view bucket, std::string_view meaning) {
  return {code, XidClass::noise, Action::none, bucket, meaning, false};
}

// NVIDIA, "Analyzing Xid Errors with the Xid Catalog" (docs.nvidia.com/deploy/xid-errors), columns
// Description and Resolution Bucket (Immediate Action). RESET_GPU: reset. RESTART_BM, RESTART_VM: reboot.
// RESTART_APP: restart_job. The workflows are decided by what they begin with. Codes that the catalogue marks
// as unused on Ampere and later are classed by the list for older GPUs in the same document. The immediate
// codes are also those that AWS's node monitoring agent treats as fatal, except 63, which NVIDIA ignores.
// clang-format off
constexpr Xid kXids[] = {
    program("8", "RESTART_APP", "GPU stopped processing"),
    program("13", "RESTART_APP", "Graphics Engine Exception"),
    program("31", "RESTART_APP", "GPU memory page fault"),
    program("32", "RESTART_APP", "Invalid or corrupted push buffer stream"),
    noise("38", "IGNORE", "Driver firmware error"),
    program("43", "IGNORE", "GPU stopped processing: the program hit a fault of its own"),
    noise("44", "IGNORE", "Graphics Engine fault during context switch"),
    program("45", "WORKFLOW_XID_45", "Preemptive cleanup after the end of a program or another XID"),
    fatal("46", Action::reset, "RESET_GPU", "GPU stopped processing"),
    // Alone: reset. With 63 or 64: drain and reset, which comes to the same.
    fatal("48", Action::reset, "WORKFLOW_XID_48", "Double Bit ECC Error"),
    noise("56", "unused", "Display Engine error"),
    serious("57", Action::reset, "unused", "Error programming the video memory interface"),
    serious("61", Action::reset, "unused", "Internal micro-controller breakpoint"),
    fatal("62", Action::reset, "RESET_GPU", "Internal micro-controller halt"),
    noise("63", "IGNORE", "GPU memory remapping event"),  // row_remap_pending, retired_pages_pending
    fatal("64", Action::reset, "RESET_GPU", "GPU memory remapping failure"),
    program("68", "RESTART_APP", "NVDEC0 Exception"),
    program("69", "RESTART_APP", "Graphics Engine class error"),
    // "A GPU reset or node reboot is needed to clear this error."
    fatal("74", Action::reset, "WORKFLOW_NVLINK_ERR", "NVLINK Error"),
    fatal("79", Action::reboot, "RESTART_BM", "GPU has fallen off the bus"),
    noise("92", "IGNORE", "High single-bit ECC error rate"),  // memory_errors_corrected
    noise("93", "IGNORE", "Non-fatal violation of provisioned InfoROM wear limit"),
    // The fault is the hardware's, but only one program lost its memory: restart it, reset the GPU when convenient.
    {"94", XidClass::job, Action::restart_job, "RESTART_APP", "Contained memory error", true, degraded},
    fatal("95", Action::reset, "RESET_GPU", "Uncontained memory error"),
    fatal("109", Action::reset, "RESET_GPU", "Context Switch Timeout Error"),
    fatal("110", Action::reset, "RESET_GPU", "Security Fault Error"),
    fatal("119", Action::reset, "RESET_GPU", "GSP RPC Timeout"),
    fatal("120", Action::reset, "RESET_GPU", "GSP Error"),
    noise("121", "IGNORE", "C2C Error"),
    serious("122", Action::none, "unused", "SPI PMU RPC Read Failure"),
    serious("123", Action::none, "unused", "SPI PMU RPC Write Failure"),
    fatal("136", Action::reset, "RESET_GPU", "Link Training Failed"),
    program("137", "IGNORE", "NVLink Privilege Error: an illegal access of a program"),
    fatal("140", Action::reset, "RESET_GPU", "ECC Unrecovered Error"),
    serious("142", Action::drain, "CONTACT_SUPPORT", "NVENC3 Error"),
    fatal("143", Action::reset, "RESET_GPU", "GPU Initialization Error"),
    // The message in the kernel log decides between no action and a reset; its decoding table is the catalogue's.
    serious("144", Action::drain, "WORKFLOW_NVLINK5_ERR", "NVLINK: SAW Error"),
    serious("145", Action::drain, "WORKFLOW_NVLINK5_ERR", "NVLINK: RLW Error"),
    serious("146", Action::drain, "WORKFLOW_NVLINK5_ERR", "NVLINK: TLW Error"),
    serious("147", Action::drain, "WORKFLOW_NVLINK5_ERR", "NVLINK: TREX Error"),
    serious("148", Action::drain, "WORKFLOW_NVLINK5_ERR", "NVLINK: NVLPW_CTRL Error"),
    serious("149", Action::drain, "WORKFLOW_NVLINK5_ERR", "NVLINK: NETIR Error"),
    serious("150", Action::drain, "WORKFLOW_NVLINK5_ERR", "NVLINK: MSE Error"),
    fatal("151", Action::reboot, "RESTART_VM", "Key rotation Error"),
    noise("154", "XID_154", "GPU Recovery Action Changed"),  // recovery_action
    serious("155", Action::reset, "RESET_GPU", "NVLINK: SW Defined Error"),
    serious("156", Action::reset, "RESET_GPU", "Resource Retirement Event"),
    fatal("158", Action::reset, "RESET_GPU", "GPU Fatal Timeout"),
    noise("160", "IGNORE", "Channel Retirement Event"),
    serious("other", Action::none, "various", "an XID without a series of its own; the kernel log has its code"),
};
// clang-format on

Condition condition_of(const Xid& xid, const std::string& reason, const std::string& text) {
  const std::chrono::seconds keep = xid.severity == failed ? kKeepFailed : kKeepDegraded;
  const Term term{{&catalog::xid_errors, {"xid", xid.code}}, Compare::above, 0, Over::event, keep, {}, true};
  return {reason, xid.severity, xid.action, "GpuXid", text, std::chrono::seconds(0), {term}};
}

/// The rows and their texts, which the rows refer to.
struct Rows {
  std::vector<std::string> texts;
  std::vector<Condition> rows;

  Rows() {
    texts.reserve(2 * std::size(kXids));
    for (const Xid& xid : kXids) {
      if (!xid.is_finding) continue;
      const std::string& reason = texts.emplace_back("xid_" + std::string(xid.code));
      const std::string& text =
          texts.emplace_back("XID " + std::string(xid.code) + ": " + std::string(xid.meaning));
      rows.push_back(condition_of(xid, reason, text));
    }
  }
};

}  // namespace

std::span<const Xid> xids() noexcept { return kXids; }

std::span<const Condition> xid_conditions() {
  static const Rows rows;
  return rows.rows;
}

}  // namespace gpumeter::health
