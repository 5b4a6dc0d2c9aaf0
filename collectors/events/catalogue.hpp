#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/text.hpp"
#include "collectors/events/xids.hpp"

/// The catalogue of events: everything that drivers write into the kernel's log about a GPU, a switch, a link
/// or a network adapter, with its meaning, its severity and the action that helps. XIDs are in xids.hpp.
namespace gpumeter::events {

enum class Kind : std::uint8_t {
  xid,           ///< an error of NVIDIA's driver, by code
  sxid,          ///< an error of an NVSwitch, by code
  off_bus,       ///< the device no longer answers on the PCI bus
  reset,         ///< the device or an engine was reset, or could not be
  ring_timeout,  ///< a job hangs on an engine
  page_fault,    ///< a program used an address that is not its own
  ras,           ///< an error that the hardware's own checks found
  aer,           ///< an error of PCI Express
  link_flap,     ///< a network link went down or came up
  init_failed,   ///< the driver could not start the device
  firmware,      ///< a controller in the device does not answer
  driver_error,  ///< the driver gave up
  nic_error,     ///< a network adapter reports a fault of its own
};
inline constexpr EnumNames<Kind, 13> kKindNames = {{{Kind::xid, "xid"},
                                                    {Kind::sxid, "sxid"},
                                                    {Kind::off_bus, "off_bus"},
                                                    {Kind::reset, "reset"},
                                                    {Kind::ring_timeout, "ring_timeout"},
                                                    {Kind::page_fault, "page_fault"},
                                                    {Kind::ras, "ras"},
                                                    {Kind::aer, "aer"},
                                                    {Kind::link_flap, "link_flap"},
                                                    {Kind::init_failed, "init_failed"},
                                                    {Kind::firmware, "firmware"},
                                                    {Kind::driver_error, "driver_error"},
                                                    {Kind::nic_error, "nic_error"}}};
constexpr std::string_view to_string(Kind kind) noexcept { return kKindNames.of(kind); }

/// What a message says about a reset.
enum class Step : std::uint8_t {
  none,    ///< nothing, or that the whole device was reset, or could not be
  begins,  ///< the reset has failed unless another message reports its success within a minute
  part,    ///< an engine was reset, or a job was ended: no proof that the device is as new
};

/// A message without a code: how it begins, and what it means.
struct Message {
  /// The driver that writes it: "amdgpu"; "gpu" is each driver of a GPU, and "port" also the bridges and the
  /// adapters. Messages of the first rows that match count.
  std::string_view driver;
  /// The message after the driver's name, the address and "[drm]". `*` stands for any text, `#` for a number.
  std::string_view text;
  Kind kind;
  Severity severity;
  Action action;
  std::string_view meaning;
  Step step = Step::none;
};
std::span<const Message> messages() noexcept;

/// The value of the label `event` that counts the message: that of its kind, but resets that failed, those of
/// single engines, and devices that wait for a reset have values of their own.
std::string_view event_of(const Message& message) noexcept;

/// The message that the text begins with; null: it is no event. `numbers` receives the values of `#`, as
/// many as it has room for, and shrinks to them.
const Message* find_message(std::string_view driver, std::string_view text,
                            std::span<std::uint64_t>& numbers) noexcept;

/// What NVIDIA's decode table ("XID 144-150 Decode" of the XID catalogue) resolves.
enum class Resolution : std::uint8_t {
  ignore,
  follow,  ///< the job ends; an XID 154 says whether more is needed
  reset,
};
inline constexpr EnumNames<Resolution, 3> kResolutionNames = {
    {{Resolution::ignore, "IGNORE"}, {Resolution::follow, "XID_154_EVAL"}, {Resolution::reset, "RESET_GPU"}}};

/// A row of that table, for all links of NVLink 5.
struct NvlinkRule {
  unsigned xid;
  std::string_view unit;  ///< also with "/NAME" or "_PIPE0" behind it
  std::uint32_t status;   ///< bits of errorstatus; 0: any
  Resolution resolution;
  std::uint64_t subcodes = 0;  ///< bit N: sub-code N; 0: any
  bool is_exact = false;       ///< `status` is the whole value
  std::string_view hint = {};  ///< where to look next
};
std::span<const NvlinkRule> nvlink_rules() noexcept;
/// "NETIR_LINK_EVT, sub-code 2, 4, 10, any status: RESET_GPU (look at the link's signal)".
std::string to_text(const NvlinkRule& rule);

/// A code of NVSwitches, in a class of its own.
struct Sxid {
  unsigned first, last;  ///< codes
  Severity severity;     ///< at most, whatever the line says
  Action action;
  std::string_view meaning;
};
std::span<const Sxid> sxids() noexcept;
/// The row of a code; null: the line's own word decides.
const Sxid* sxid_of(unsigned code) noexcept;

/// The value of an XID 154: nvmlDeviceGpuRecoveryAction_t.
struct RecoveryAction {
  Severity severity;
  Action action;
  std::string_view meaning;
};
const RecoveryAction& recovery_action_of(std::uint64_t value) noexcept;

/// The whole catalogue; docs/events.md is this text.
std::string catalogue_markdown();

}  // namespace gpumeter::events
