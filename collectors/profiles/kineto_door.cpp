#include "collectors/profiles/kineto_door.hpp"

#include <algorithm>
#include <optional>
#include <utility>

namespace gpumeter::profiles {

std::string KinetoDoor::hear(const Peer& peer, const kineto::Message& message, Nanoseconds now,
                             Nanoseconds unix) {
  Known* const process = known(peer);
  if (process == nullptr) return {};
  process->heard = now;
  return message.kind == kineto::Message::Kind::request ? advance(*process, message.is_free, now, unix) : "";
}

KinetoDoor::Known* KinetoDoor::known(const Peer& peer) {
  const auto at = known_.find(peer.pid);
  if (at != known_.end()) {
    const Peer& before = at->second.peer;
    if (before.uid == peer.uid && before.address == peer.address) return &at->second;
    forget(at, "another program took the place of the process");
  }
  const std::uint32_t payer = payer_of(peer.uid, owner_of_(peer.uid));
  if (!make_room(payer)) return nullptr;
  shares_.add(payer);
  Known& added = known_[peer.pid];
  added.peer = peer;
  added.payer = payer;
  return &added;
}

// If all places are taken, a process of the user with the most processes leaves: the one that is silent the
// longest. So one user cannot keep the others out.
bool KinetoDoor::make_room(std::uint32_t payer) {
  if (shares_.of(payer) >= kMostOfUser) return false;
  if (known_.size() < kMost) return true;
  const std::optional<std::uint32_t> crowd = shares_.yields_to(payer);
  if (!crowd) return false;
  auto oldest = known_.end();
  for (auto at = known_.begin(); at != known_.end(); ++at) {
    if (at->second.payer != *crowd) continue;
    if (oldest == known_.end() || at->second.heard < oldest->second.heard) oldest = at;
  }
  forget(oldest, "too many processes poll");
  return true;
}

// A process that does not turn busy although its trace must last longer has rejected the order. Its first
// poll may have been sent before the order arrived.
std::string KinetoDoor::advance(Known& known, bool is_free, Nanoseconds now, Nanoseconds unix) {
  if (known.stage == Stage::asked && is_free) {
    known.stage = Stage::taken;
    known.taken = now;
    known.was_busy = false;
    known.idle_polls = 0;
    return kineto::text_of(known.order, unix);
  }
  if (known.stage != Stage::taken) return {};
  known.was_busy = known.was_busy || !is_free;
  if (!is_free) return {};
  constexpr int kRejected = 2;
  constexpr Nanoseconds kWrite = std::chrono::seconds(1);
  const bool should_be_busy = now - known.taken < kineto::least_time(known.order.extent) + kWrite;
  const bool is_unseen = !should_be_busy && known.idle_polls == 0;  // the polls are too rare to see the trace
  if (known.was_busy || is_unseen) {
    known.stage = Stage::done;
  } else if (++known.idle_polls >= kRejected) {
    fail(known, "the process did not begin the trace; its log says why");
  }
  return {};
}

void KinetoDoor::fail(Known& known, std::string why) {
  if (known.stage != Stage::asked && known.stage != Stage::taken) return;
  known.stage = Stage::failed;
  known.why = std::move(why);
}

void KinetoDoor::unsent(int pid) {
  const auto at = known_.find(pid);
  if (at != known_.end() && at->second.stage == Stage::taken) at->second.stage = Stage::asked;
}

void KinetoDoor::tick(Nanoseconds now) {
  for (auto at = known_.begin(); at != known_.end();) {
    const auto next = std::next(at);
    if (now - at->second.heard >= kForgotten) forget(at, "the process no longer polls");
    at = next;
  }
}

void KinetoDoor::gone(int pid) {
  if (const auto at = known_.find(pid); at != known_.end()) forget(at, "the process has ended");
}

void KinetoDoor::forget(std::map<int, Known>::iterator at, const std::string& why) {
  fail(at->second, why);
  if (at->second.stage == Stage::failed) lost_[at->first] = at->second.why;
  shares_.remove(at->second.payer);
  known_.erase(at);
}

std::vector<Process> KinetoDoor::processes() const {
  std::vector<Process> processes;
  for (const auto& [pid, known] : known_) processes.push_back({pid, known.peer.uid});
  return processes;
}

Result<Done> KinetoDoor::ask(int pid, const Order& order, Nanoseconds) {
  const auto at = known_.find(pid);
  if (at == known_.end()) return Error("it no longer asks for profiles");
  if (at->second.stage != Stage::none) return Error("another request for it is under way");
  at->second.stage = Stage::asked;
  at->second.order = order;
  return Done{};
}

Progress KinetoDoor::progress(int pid) const {
  if (const auto lost = lost_.find(pid); lost != lost_.end()) return {Stage::failed, lost->second};
  const auto at = known_.find(pid);
  return at == known_.end() ? Progress{} : Progress{at->second.stage, at->second.why};
}

void KinetoDoor::release(int pid) {
  lost_.erase(pid);
  const auto at = known_.find(pid);
  if (at == known_.end()) return;
  at->second.stage = Stage::none;
  at->second.why.clear();
}

std::string KinetoDoor::file_of(const Order& order, int, int inner_pid) const {
  return kineto::file_of(order.path, inner_pid);
}

}  // namespace gpumeter::profiles
