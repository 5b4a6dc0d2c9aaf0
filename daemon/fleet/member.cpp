#include "daemon/fleet/member.hpp"

namespace gpumeter {

void Member::start_if_due() {
  if (is_started_ || !thread_.is_due(clock_.monotonic())) return;
  is_started_ = static_cast<bool>(lane_->start());
  if (!is_started_) thread_.failed(clock_.monotonic());
}

bool Member::look() {
  was_up_ = is_up_;
  const bool was_known = is_known();
  status_ = lane_->status();
  const bool is_late = status_.overdue_at && clock_.monotonic() > *status_.overdue_at;
  is_overdue_ = is_late || (status_.at_gate && host_.gate()->is_stuck());
  is_up_ = status_.state == Lane::State::reading && !is_overdue_;
  if (is_overdue_) lane_->hide();
  return is_up_ != was_up_ || is_known() != was_known;
}

void Member::log_change(const KnownDevice& device, Log& log) const {
  const Log::Fields fields = {{"gpu", std::to_string(index_)},
                              {"uuid", uuid_},
                              {"vendor", device.info.vendor},
                              {"collector", host_.name()},
                              {"why", status_.trouble}};
  if (is_up_) return log.info("device is read", fields);
  if (status_.state == Lane::State::released) return log.info("device released", fields);
  if (is_overdue_ && status_.at_gate) {
    return log.error("device is not read: calls of other devices hang in its driver", fields);
  }
  if (is_overdue_)
    return log.error("device does not answer; it is not read until its driver call returns", fields);
  log.error(was_up_ ? "device lost" : "device cannot be read", fields);
}

std::string Member::state_text() const {
  if (is_overdue_) return status_.at_gate ? "its driver does not answer" : kHangs;
  if (status_.state == Lane::State::starting) return "starting";
  if (status_.state == Lane::State::reading) return "ok";
  if (status_.state == Lane::State::released) return "released";
  return status_.trouble.empty() ? "lost" : status_.trouble;
}

bool Member::is_released() const { return !is_started_ || lane_->status().state == Lane::State::released; }

}  // namespace gpumeter
