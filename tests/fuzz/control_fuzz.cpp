// The bytes that a client sends to the control socket of a running server, and ends with: the answer is one
// line, or none if the request is none.
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <string>
#include <thread>
#include <utility>

#include "daemon/control/server.hpp"
#include "tests/fuzz/folder.hpp"
#include "tests/fuzz/fuzz.hpp"

namespace gpumeter {
namespace {

/// A server that forgets no device whose uuid contains an x.
class Server {
 public:
  Server() {
    fuzz::expect(bool(server_.start()));
    while (!connected()) std::this_thread::yield();
  }
  ~Server() { fuzz::expect(server_.stop(clock_.monotonic() + std::chrono::seconds(10))); }
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  Descriptor connected() const {
    Result<Descriptor> opened = control::open_socket();
    const sockaddr_un address = *control::address_in(folder_.path());
    const auto* const any = reinterpret_cast<const sockaddr*>(&address);
    return connect(opened->number(), any, sizeof address) == 0 ? *std::move(opened) : Descriptor();
  }

 private:
  static Result<Done> forget(const std::string& uuid) {
    fuzz::expect(uuid.size() < control::kMostBytes && uuid.find('\n') == std::string::npos);
    if (uuid.find('x') == std::string::npos) return Done{};
    return Error("no device has this uuid");
  }

  const fuzz::Folder folder_;
  const SystemClock clock_;
  Log log_{clock_, {LogLevel::error, LogFormat::logfmt}};
  ControlServer server_{folder_.path(), clock_, log_, forget};
};

std::string exchange_with(const Server& server, std::string_view bytes) {
  const Descriptor connection = server.connected();
  fuzz::expect(bool(connection));
  // The server may have ended the connection already.
  [[maybe_unused]] const ssize_t sent = send(connection.number(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
  shutdown(connection.number(), SHUT_WR);
  std::string answer;
  char piece[256];
  for (ssize_t got = 0; (got = recv(connection.number(), piece, sizeof piece, 0)) > 0;) {
    answer.append(piece, static_cast<std::size_t>(got));
  }
  return answer;
}

std::string expected(std::string_view bytes) {
  const std::size_t end = bytes.find('\n');
  if (end == std::string_view::npos || end >= control::kMostBytes) return "";
  const std::string_view line = bytes.substr(0, end);
  if (!line.starts_with("forget ")) return "error unknown request\n";
  return line.substr(7).find('x') == std::string_view::npos ? "ok\n" : "error no device has this uuid\n";
}

}  // namespace
}  // namespace gpumeter

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace gpumeter;
  static const Server server;
  const std::string_view bytes = fuzz::text_of(data, size);
  fuzz::expect(exchange_with(server, bytes) == expected(bytes));
  return 0;
}
