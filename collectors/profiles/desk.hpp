#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "collectors/profiles/door.hpp"
#include "collectors/profiles/ledger.hpp"

namespace gpumeter::profiles {

/// One process of a request.
struct Member {
  Door* door = nullptr;
  int pid = 0;        ///< in the daemon's pid namespace
  int inner_pid = 0;  ///< in the process's own, as in the name of its file
};

/// The file that the process writes for an order.
std::string file_of(const Order& order, const Member& member);

/// A request for a profile of one run or process.
struct Request {
  RunName run;
  std::string trigger;  ///< "request", or the name of a condition
  std::string reason;   ///< for the log
  Order order;
  std::vector<Member> members;  ///< at least one
};

/// What became of a request.
struct Outcome {
  Status status = Status::done;
  std::string error;  ///< unless `done`
  Nanoseconds took{};
};

/// The requests under way. Thread "profiles". Times are CLOCK_MONOTONIC.
class Desk {
 public:
  using Number = std::uint64_t;

  /// A change of one request: a line for the client that asked, and the outcome when it is over.
  struct Event {
    Number number = 0;
    std::string line;  ///< "taken PID", "done PID FILE", "failed PID REASON"; empty with an outcome
    std::optional<Outcome> outcome;
    Request request;  ///< with an outcome
  };

  /// The longest wait for a process to take an order. Kineto polls every 5 s unless its own configuration
  /// says otherwise.
  static constexpr Nanoseconds kTake = std::chrono::seconds(60);
  /// The longest time from then to the end of the trace, in addition to its duration. Kineto's first use of
  /// CUPTI takes seconds, and it may write hundreds of MB.
  static constexpr Nanoseconds kWrite = std::chrono::minutes(2);
  /// The same for a trace of steps, whose duration is not known.
  static constexpr Nanoseconds kSteps = std::chrono::minutes(15);
  /// The longest wait for a client to find the file of a trace. It looks for 2 s, for one of up to 8 after
  /// the other.
  static constexpr Nanoseconds kSee = std::chrono::seconds(30);

  /// Gives the orders. Returns an Error if one of the processes has an order already, or is unknown.
  Result<Number> open(Request request, Nanoseconds now);
  /// Returns what changed since the last call. Call it several times a second while busy().
  std::vector<Event> tick(Nanoseconds now);
  /// The client found the file of a trace that is done; with an error, it did not, and the request fails. A
  /// request of a user ends only then, because a process does not report that it could not write its file.
  /// Returns false if the request does not wait for this.
  bool seen(Number number, int pid, const std::string& error);
  /// The client has left: withdraws orders that no process has taken yet. A trace counts without its file.
  void abandon(Number number);

  bool busy() const noexcept { return !open_.empty(); }
  std::size_t size() const noexcept { return open_.size(); }
  /// True if a condition's request is under way.
  bool has_automatic() const noexcept;
  /// The processes that have an order, of all requests or of one.
  std::vector<int> pids(std::optional<Number> number = {}) const;
  /// The process has its order from this request.
  bool has(Number number, int pid) const;

 private:
  struct Place {
    Member member;
    Stage stage = Stage::asked;  ///< as last reported
    Nanoseconds since{};         ///< of that stage
    bool is_unseen = false;      ///< the client looks for the file
  };
  struct Open {
    Number number = 0;
    Request request;
    Nanoseconds began{};
    std::vector<Place> places;
    std::string error;
    bool is_late = false;
    bool has_client = false;
  };

  static void look(Open& open, Place& place, Nanoseconds now, std::vector<Event>& events);
  static bool is_over(const Open& open) noexcept;
  static Event closed(Open& open, Nanoseconds now);

  Number last_ = 0;
  std::vector<Open> open_;
};

/// The trigger of a request of a user, as a label.
inline constexpr const char* kByRequest = "request";

}  // namespace gpumeter::profiles
