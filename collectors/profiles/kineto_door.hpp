#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/shares.hpp"
#include "collectors/profiles/door.hpp"
#include "collectors/profiles/kineto_wire.hpp"

namespace gpumeter::profiles {

/// A sender as the kernel identifies it.
struct Peer {
  int pid = 0;  ///< in the daemon's pid namespace
  std::uint32_t uid = 0;
  std::string address;  ///< of its socket; Kineto's contains a random number, so it identifies the process
};

/// The processes that poll by Kineto's protocol, and their orders. A process is forgotten 60 s after its last
/// poll, as in dynolog. It gets its order as the answer to a poll. Later polls show when its trace begins and
/// ends: the process is not free in between. A trace of steps that is shorter than the interval of the polls,
/// 5 s by default, may never be seen and counts as done.
class KinetoDoor final : public Door {
 public:
  static constexpr Nanoseconds kForgotten = std::chrono::seconds(60);
  static constexpr std::size_t kMost = 8192;
  static constexpr std::size_t kMostOfUser = 1024;  ///< more ranks and loaders than one machine runs

  using OwnerOf = std::function<std::uint32_t(std::uint32_t uid)>;
  explicit KinetoDoor(OwnerOf owner_of = [](std::uint32_t uid) { return uid; })
      : owner_of_(std::move(owner_of)) {}

  /// Takes a message. Returns the order to send, in Kineto's words; empty: none. If a quota is full, the
  /// process stays unknown. `now`: CLOCK_MONOTONIC; `unix`: CLOCK_REALTIME.
  std::string hear(const Peer& peer, const kineto::Message& message, Nanoseconds now, Nanoseconds unix);
  /// The order that hear() returned could not be sent; the next poll gets it.
  void unsent(int pid);
  /// Forgets processes that are silent. Call about once a second.
  void tick(Nanoseconds now);
  /// The process has ended.
  void gone(int pid);
  std::size_t size() const noexcept { return known_.size(); }

  std::vector<Process> processes() const override;
  Result<Done> ask(int pid, const Order& order, Nanoseconds now) override;
  Progress progress(int pid) const override;
  void release(int pid) override;
  /// /tmp/x.json becomes /tmp/x_123.json.
  std::string file_of(const Order& order, int pid, int inner_pid) const override;
  std::string_view begins() const noexcept override { return "PyTorch asks for orders every 5 s"; }

 private:
  struct Known {
    Peer peer;
    std::uint32_t payer = 0;
    Nanoseconds heard{};
    Stage stage = Stage::none;
    std::string why;
    Order order;
    Nanoseconds taken{};
    bool was_busy = false;  ///< since it took the order
    int idle_polls = 0;     ///< since then, before it was busy
  };

  Known* known(const Peer& peer);
  bool make_room(std::uint32_t payer);
  static std::string advance(Known& known, bool is_free, Nanoseconds now, Nanoseconds unix);
  static void fail(Known& known, std::string why);
  void forget(std::map<int, Known>::iterator at, const std::string& why);

  const OwnerOf owner_of_;
  std::map<int, Known> known_;       ///< by pid
  Shares<std::uint32_t> shares_;     ///< of known_
  std::map<int, std::string> lost_;  ///< why the orders of forgotten processes failed, until release()
};

}  // namespace gpumeter::profiles
