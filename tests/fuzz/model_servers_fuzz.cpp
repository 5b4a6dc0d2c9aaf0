// A model server's metrics page, and the kernel's answer about listening sockets.
#include <cmath>
#include <span>
#include <vector>

#include "collectors/sources/tcp.hpp"
#include "programs/servers/reading.hpp"
#include "tests/fuzz/fuzz.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace gpumeter;
  std::vector<tcp::Listener> listeners;
  static_cast<void>(tcp::take_listeners(std::as_bytes(std::span(data, size)), listeners));
  const auto reading = servers::read_page(fuzz::text_of(data, size));
  if (!reading) return 0;
  for (const auto& figure : {reading->input_tokens, reading->output_tokens, reading->requests,
                             reading->running, reading->waiting, reading->cache_ratio}) {
    fuzz::expect(!figure || (std::isfinite(*figure) && *figure >= 0));
  }
  if (!reading->first_token) return 0;
  fuzz::expect(reading->first_token->buckets.size() <= servers::kMostBuckets);
  double last = 0;
  for (const auto& [bound, count] : reading->first_token->buckets) {
    fuzz::expect(std::isfinite(bound) && count >= last && count <= reading->first_token->count);
    last = count;
  }
  return 0;
}
