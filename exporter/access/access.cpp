#include "exporter/access/access.hpp"

#include <utility>

#include "exporter/access/credentials.hpp"

namespace gpumeter {

using Verdict = Admission::Verdict;

WebAccess::WebAccess(const Clock& clock, std::shared_ptr<const WebGeneration> first)
    : current_(std::move(first)), limiter_(clock, current_->settings.rate_limit), logins_(clock) {}

std::shared_ptr<const WebGeneration> WebAccess::current() const {
  const MutexLock lock(mutex_);
  return current_;
}

void WebAccess::replace(std::shared_ptr<const WebGeneration> wanted) {
  logins_.retain(wanted->settings.users);
  const MutexLock lock(mutex_);
  current_ = std::move(wanted);
}

Admission WebAccess::admit(const Visitor& visitor, const Pausing& pausing) {
  if (!visitor.is_resumed && !limiter_.admit()) return {Verdict::rate_limited, nullptr};
  Admission admission{Verdict::admitted, current()};
  admission.verdict = login(admission.generation->settings, visitor, pausing);
  // If the new generation needs no login, login() has not taken the result of the check.
  if (visitor.is_resumed && admission.verdict != Verdict::waits) logins_.forget(visitor.request);
  return admission;
}

Admission WebAccess::admit_unseen() {
  if (!limiter_.admit()) return {Verdict::rate_limited, nullptr};
  return {Verdict::admitted, current()};
}

Verdict WebAccess::login(const WebSettings& settings, const Visitor& visitor, const Pausing& pausing) {
  if (settings.users.empty()) return Verdict::admitted;
  if (!visitor.authorization) return Verdict::unauthorized;
  const auto credentials = parse_basic_credentials(*visitor.authorization);
  if (!credentials) return Verdict::unauthorized;
  switch (logins_.check(settings.users, *credentials, {visitor.request, visitor.peer}, pausing)) {
    case Logins::Verdict::good:
      return Verdict::admitted;
    case Logins::Verdict::waits:
      return Verdict::waits;
    case Logins::Verdict::too_many:
      return Verdict::too_many;
    case Logins::Verdict::bad:
      break;
  }
  return Verdict::unauthorized;
}

}  // namespace gpumeter
