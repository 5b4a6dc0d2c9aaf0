// The two headers with which a scraper negotiates the format.
#include "exporter/http/negotiation.hpp"
#include "tests/fuzz/fuzz.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace gpumeter;
  const std::string_view header = fuzz::text_of(data, size);
  double last = 1e300;
  for (const AcceptRange& range : parse_accept(header)) {
    fuzz::expect(range.quality <= last);
    last = range.quality;
    for (const char* const name : {"q", "version", "escaping"}) range.parameter(name);
  }
  const NegotiatedFormat format = negotiate_format(header);
  fuzz::expect(
      format.content_type.starts_with(format.format == Format::text ? "text/plain" : "application/"));
  negotiate_encoding(header);
  return 0;
}
