#pragma once

#include <memory>
#include <string>

#include "daemon/fleet/backoff.hpp"
#include "daemon/fleet/collector_host.hpp"
#include "daemon/fleet/device_directory.hpp"
#include "daemon/lane/lane.hpp"
#include "daemon/log/log.hpp"

namespace gpumeter {

/// State of a device whose call hangs, in the list of devices.
inline constexpr const char* kHangs = "does not answer";

/// One enrolled device: its lane, and what the last look found. Guarded by the fleet that owns it.
class Member {
 public:
  /// `host` and `clock` outlive this object.
  Member(const KnownDevice& device, CollectorHost& host, std::shared_ptr<Lane> lane, const Clock& clock)
      : index_(device.index), uuid_(device.info.uuid), host_(host), lane_(std::move(lane)), clock_(clock) {}

  unsigned index() const noexcept { return index_; }
  const std::string& uuid() const noexcept { return uuid_; }
  CollectorHost& host() const noexcept { return host_; }
  Lane& lane() const noexcept { return *lane_; }
  const std::shared_ptr<Lane>& shared_lane() const noexcept { return lane_; }

  /// Starts the lane's thread if it does not run and its next try is due. A device without a thread has
  /// gpu_up 0, and the reason is in the log and in the list of devices.
  void start_if_due();

  /// Asks the lane how it is. True: is_up() or is_known() changed.
  bool look();
  void log_change(const KnownDevice& device, Log& log) const;

  const Lane::Status& status() const noexcept { return status_; }
  /// Its values are on the page.
  bool is_up() const noexcept { return is_up_; }
  /// Its call hangs, or it waits for a driver that is full of calls that hang.
  bool is_overdue() const noexcept { return is_overdue_; }
  /// It was read once, or does not answer.
  bool is_known() const noexcept { return status_.first_pass_over || is_overdue_; }
  /// For the list of devices: "ok", "starting", or why it is not read.
  std::string state_text() const;
  /// A lane without a thread holds nothing open.
  bool is_released() const;

  bool is_listed = true;  ///< by its collector's last discovery that succeeded

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
