// The header Authorization, and a user's hash in the web configuration.
#include <string>

#include "exporter/access/access.hpp"
#include "tests/fuzz/fuzz.hpp"

namespace gpumeter {
namespace {

std::string base64(std::string_view bytes) {
  constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  for (std::size_t at = 0; at < bytes.size(); at += 3) {
    const std::string_view three = bytes.substr(at, 3);
    unsigned bits = 0;
    for (std::size_t i = 0; i < 3; ++i)
      bits = bits << 8 | (i < three.size() ? static_cast<unsigned char>(three[i]) : 0U);
    for (std::size_t i = 0; i < 4; ++i)
      text += i <= three.size() ? kDigits[bits >> (18 - 6 * i) & 0x3f] : '=';
  }
  return text;
}

}  // namespace
}  // namespace gpumeter

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace gpumeter;
  const std::string_view text = fuzz::text_of(data, size);
  if (const auto found = parse_basic_credentials(text)) {
    // Only one text means these credentials, apart from the blanks and the case of the scheme.
    fuzz::expect(text.ends_with(' ' + base64(found->user + ':' + found->password)));
    fuzz::expect(found->user.find(':') == std::string::npos &&
                 found->password.find('\0') == std::string::npos);
  }
  // Whatever a client sends after the scheme arrives as it was sent, if it has a colon and no control
  // character.
  const auto again = parse_basic_credentials("Basic " + base64(text));
  bool is_valid = text.find(':') != std::string_view::npos;
  for (const char c : text) is_valid = is_valid && static_cast<unsigned char>(c) >= 0x20 && c != 0x7f;
  fuzz::expect(again.has_value() == is_valid);
  if (again) fuzz::expect(again->user + ':' + again->password == text);
  const Result<unsigned> cost = bcrypt_cost(text);
  fuzz::expect(!cost || (*cost >= 4 && *cost <= 31 && text.size() == 60));
  return 0;
}
