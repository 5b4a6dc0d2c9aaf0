// All bytes of a connection to a running server: its request line, its headers, and whatever follows. The
// server answers with HTTP or closes the connection, and answers the next client.
#include <poll.h>
#include <sys/socket.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/descriptor.hpp"
#include "base/text.hpp"
#include "exporter/http/server.hpp"
#include "exporter/listen/socket.hpp"
#include "tests/fuzz/fuzz.hpp"
#include "tests/fuzz/small_daemon.hpp"

namespace gpumeter {
namespace {

class Server {
 public:
  std::string answer_to(std::string_view bytes) const {
    const Endpoint& endpoint = server_->endpoints().front();
    const Descriptor connection(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const linger reset{1, 0};  // no port waits for late packets
    setsockopt(connection.number(), SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
    const auto* const address = reinterpret_cast<const sockaddr*>(&endpoint.address);
    fuzz::expect(connect(connection.number(), address, endpoint.length) == 0);
    [[maybe_unused]] const ssize_t sent = send(connection.number(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    shutdown(connection.number(), SHUT_WR);
    return received(connection);
  }

 private:
  // The watchdog's work, meanwhile: it ends a connection whose request stays incomplete.
  std::string received(const Descriptor& connection) const {
    std::string text;
    std::vector<char> piece(65536);
    for (ssize_t got = 1; got > 0;) {
      pollfd readable{connection.number(), POLLIN, 0};
      while (poll(&readable, 1, 200) == 0) server_->look();
      got = recv(connection.number(), piece.data(), piece.size(), 0);
      if (got > 0) text.append(piece.data(), static_cast<std::size_t>(got));
    }
    return text;
  }

  static std::unique_ptr<HttpServer> started(Routes& routes) {
    Result<Listening> listening = listen_on("127.0.0.1:0");
    fuzz::expect(bool(listening));
    return *HttpServer::start(std::move(listening->sockets), routes, 1);
  }

  fuzz::SmallDaemon daemon_;
  std::unique_ptr<HttpServer> server_ = started(daemon_.routes());
};

}  // namespace
}  // namespace gpumeter

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace gpumeter;
  static const Server server;
  const std::string answer = server.answer_to(fuzz::text_of(data, size));
  if (answer.empty()) return 0;
  fuzz::expect(answer.starts_with("HTTP/1."));
  // 100: the client asked for "100 Continue", which precedes the answer.
  const std::size_t blank = answer.find(' ');
  const unsigned status = parse_number<unsigned>(answer.substr(blank + 1, 3)).value_or(0);
  fuzz::expect(status >= 100 && status < 600);
  return 0;
}
