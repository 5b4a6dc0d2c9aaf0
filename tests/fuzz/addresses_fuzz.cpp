// Addresses that a person writes: of listeners, of `gpumeter check` and of `gpumeter top`. None is resolved
// by a name server.
#include <string>
#include <vector>

#include "exporter/listen/socket.hpp"
#include "programs/client/http.hpp"
#include "tests/fuzz/fuzz.hpp"

namespace gpumeter {
namespace {

/// A listener on a free port of 127.0.0.1.
const std::vector<ListenSocket>& listeners() {
  static const Result<Listening> listening = listen_on("127.0.0.1:0");
  fuzz::expect(bool(listening));
  return listening->sockets;
}

void check_client(const std::string& text) {
  const Result<client::Address> address = client::parse_address(text);
  if (!address) return;
  fuzz::expect(!address->host.empty() && address->url.starts_with("http") && !address->url.ends_with('/'));
}

}  // namespace
}  // namespace gpumeter

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace gpumeter;
  const std::string text(fuzz::text_of(data, size));
  const std::string port = listeners().front().endpoint().text().substr(10);
  fuzz::expect(!is_served(text, {}));
  fuzz::expect(!is_served(text, listeners()) || text.ends_with(port));
  fuzz::expect(is_served("127.0.0.1:" + port, listeners()));
  check_client(text);
  return 0;
}
