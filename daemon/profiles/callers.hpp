#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.hpp"
#include "base/peer_process.hpp"
#include "base/shares.hpp"
#include "collectors/jobs/intake/sockets.hpp"
#include "collectors/profiles/desk.hpp"

namespace gpumeter {

/// The connections of `gpumeter profile` to the daemon (collectors/profiles/asking.hpp). If all places are
/// taken, one of the user with the most makes room. Thread "profiles".
class Callers {
 public:
  using OwnerOf = std::function<std::uint32_t(std::uint32_t uid)>;

  static constexpr std::size_t kMost = 64;
  static constexpr std::size_t kMostOfUser = 16;
  /// The longest time for a client to send its request.
  static constexpr Nanoseconds kPatience = std::chrono::seconds(5);

  /// A complete request of a connection.
  struct Call {
    int number = 0;
    std::string text;
    profiles::Desk::Number request = 0;  ///< not 0: `text` is a line about this request, without its end
  };

  explicit Callers(OwnerOf owner_of) : owner_of_(std::move(owner_of)) {}

  /// Takes the connections that wait. Returns false if no descriptor is left for one; the listener stays
  /// readable then.
  bool accept_from(int listener, Nanoseconds now);
  /// Reads a connection. Returns its request once it is complete, and then the lines about it.
  std::vector<Call> read(int number);
  /// Who connected. Valid until the connection is closed.
  const PeerProcess& process(int number) const { return open_.at(number).process; }
  /// The connection waits for the events of this request from now on.
  void bind_to(int number, profiles::Desk::Number request) { open_.at(number).request = request; }
  /// Sends a line to a connection. Closes it if the line does not fit into the socket's buffer.
  void tell(int number, std::string_view line);
  /// The same, to the connection that waits for this request.
  void tell_about(profiles::Desk::Number request, std::string_view line);
  /// The same, with a descriptor attached. Returns false if no connection waits for the request.
  bool pass_about(profiles::Desk::Number request, std::string_view line, const Descriptor& attached);
  void close(int number);
  void close_about(profiles::Desk::Number request);
  /// Closes connections that send no request. Returns the requests whose clients have left since the last
  /// call.
  std::vector<profiles::Desk::Number> tick(Nanoseconds now);
  /// The descriptors to wait for.
  std::vector<int> numbers() const;

 private:
  struct Open {
    Descriptor descriptor;
    PeerProcess process;
    std::uint32_t payer = 0;
    Nanoseconds since{};
    std::string text;
    profiles::Desk::Number request = 0;  ///< 0: none yet
  };

  static std::vector<Call> lines_of(int number, Open& open);
  bool make_room(std::uint32_t payer);
  void end(int number);

  const OwnerOf owner_of_;
  std::map<int, Open> open_;
  Shares<std::uint32_t> shares_;  ///< of open_
  std::vector<profiles::Desk::Number> left_;
};

}  // namespace gpumeter
