// All bytes that a server sends to the client of gRPC, in pieces whose size the first byte chooses: the call
// ends with an outcome, or goes on, and keeps no message beyond its limit.
#include <algorithm>
#include <string>

#include "collectors/grpc/call.hpp"
#include "tests/fuzz/fuzz.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace gpumeter;
  if (size == 0) return 0;
  constexpr std::size_t kMostBytes = 4096;
  const bool is_stream = (*data & 0x80U) != 0;
  grpc::Request request{.method = "/v1.PodResourcesLister/List", .message = {}};
  request.most_bytes = kMostBytes;
  request.most_messages = is_stream ? 0 : 1;
  grpc::Stream call(std::move(request));
  std::string_view bytes = fuzz::text_of(data + 1, size - 1);
  const std::size_t piece = (*data & 0x7FU) + std::size_t{1};
  std::size_t messages = 0;
  while (!bytes.empty() && !call.has_ended()) {
    call.take_output();
    call.feed(bytes.substr(0, piece));
    bytes.remove_prefix(std::min(piece, bytes.size()));
    for (auto message = call.take_message(); message; message = call.take_message()) {
      fuzz::expect(message->size() <= kMostBytes);
      ++messages;
    }
  }
  call.take_output();
  fuzz::expect(is_stream || messages <= 1);
  fuzz::expect(call.has_ended() || call.outcome().failure == grpc::Failure::none);
  return 0;
}
