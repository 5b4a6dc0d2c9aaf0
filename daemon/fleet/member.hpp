#pragma once

#include <memory>
#include <string>

#include "base/log.hpp"
#include "daemon/fleet/backoff.hpp"
#include "daemon/fleet/collector_host.hpp"
#include "daemon/fleet/device_directory.hpp"
#include "daemon/lane/lane.hpp"

namespace gpumeter {

/// The state of a device whose call hangs, in the list of devices.
inline constexpr const char* kHangs = "does not answer";

/// One enrolled device: its lane and the result of the last look(). Guarded by the fleet that owns it.
class Member {
 public:
  /// `host` and `clock` must outlive this object.
  Member(const KnownDevice& device, CollectorHost& host, std::shared_ptr<Lane> lane, const Clock& clock)
      : index_(device.index), uuid_(device.info.uuid), host_(host), lane_(std::move(lane)), clock_(clock) {}

  unsigned index() const noexcept { return index_; }
  const std::string& uuid() const noexcept { return uuid_; }
  CollectorHost& host() const noexcept { return host_; }
  Lane& lane() const noexcept { return *lane_; }
  const std::shared_ptr<Lane>& shared_lane() const noexcept { return lane_; }

  /// Starts the lane's thread if it does not run and its next attempt is due. A device without a thread has
  /// gpu_up 0. The log and the list of devices give the reason.
  void start_if_due();

  /// Reads the lane's status. Returns true if is_up() or is_known() changed.
  bool look();
  void log_change(const KnownDevice& device, Log& log) const;

  const Lane::Status& status() const noexcept { return status_; }
  /// True if the page has the device's values.
  bool is_up() const noexcept { return is_up_; }
  /// True if the device's call hangs, or if it waits for a driver that is full of hanging calls.
  bool is_overdue() const noexcept { return is_overdue_; }
  /// True if the device was read once or does not answer.
  bool is_known() const noexcept { return status_.first_pass_over || is_overdue_; }
  /// Returns the state for the list of devices: "ok", "starting", or the reason why the device is not read.
  std::string state_text() const;
  /// True if the lane is released. A lane without a thread holds nothing open.
  bool is_released() const;

  bool is_listed = true;  ///< in its collector's last successful discovery

 private:
  const unsigned index_;
  const std::string uuid_;
  CollectorHost& host_;
  const std::shared_ptr<Lane> lane_;
  const Clock& clock_;
  Lane::Status status_;
  bool is_started_ = false;
  bool is_up_ = false;
  bool was_up_ = false;  ///< before the last change
  bool is_overdue_ = false;
  Backoff thread_{kLongestThreadWait};
};

}  // namespace gpumeter
