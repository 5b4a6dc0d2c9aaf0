#pragma once

#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "collectors/attribution/names/user_names.hpp"
#include "collectors/jobs/intake/process_identities.hpp"
#include "collectors/jobs/wire/refusal.hpp"

namespace gpumeter::jobs {

/// Who was let in.
struct Guest {
  SenderId id;
  std::string user;
  std::shared_ptr<const SenderFacts> facts;

  /// Valid as long as this object.
  Sender sender() const noexcept { return {id, user, facts.get()}; }
};

/// Lets in those that the config does, each as the process that it is. One thread.
class Gate {
 public:
  Gate(std::string procfs, UserNames& names) : identities_(std::move(procfs)), names_(names) {}

  /// Names or uids; empty: everybody.
  void let_in(std::vector<std::string> users) { users_ = std::move(users); }

  /// `sent` is when the kernel took the message, as `now` on CLOCK_BOOTTIME.
  std::variant<Guest, Refusal> admit(const Credentials& who, Nanoseconds sent, Nanoseconds now);

  std::string name_of(std::uint32_t uid) { return names_.of(uid); }
  const ProcessIdentities& identities() const noexcept { return identities_; }
  void tick(Nanoseconds now) { identities_.tick(now); }

 private:
  bool is_invited(std::uint32_t uid, const std::string& name) const;

  ProcessIdentities identities_;
  UserNames& names_;
  std::vector<std::string> users_;
};

}  // namespace gpumeter::jobs
