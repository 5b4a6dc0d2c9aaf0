// A web configuration file gives either settings or problems, and each problem names its file.
#include "config/web.hpp"
#include "exporter/access/access.hpp"
#include "tests/fuzz/fuzz.hpp"

namespace gpumeter::config::web {
namespace {

void check(const WebSettings& settings) {
  for (const auto& [user, hash] : settings.users) {
    const Result<unsigned> cost = bcrypt_cost(hash);
    fuzz::expect(cost && *cost <= kMaxBcryptCost);
  }
  for (const auto& [name, value] : settings.headers) {
    fuzz::expect(!name.empty() && (name + value).find_first_of("\r\n") == std::string::npos);
  }
  if (!settings.tls) return;
  fuzz::expect(!settings.tls->certificate.empty() && !settings.tls->key.empty());
  fuzz::expect(settings.tls->min_version <= settings.tls->max_version);
}

}  // namespace
}  // namespace gpumeter::config::web

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace gpumeter;
  const std::string_view text = fuzz::text_of(data, size);
  config::web::parse_go_duration(text);
  const config::web::Loaded loaded = config::web::load_text(text, "/nonexistent/web.yml");
  if (loaded.problems.empty()) config::web::check(loaded.settings);
  for (const options::Problem& problem : loaded.problems) {
    fuzz::expect(!problem.text.empty() && to_string(problem).starts_with("/nonexistent/web.yml"));
  }
  return 0;
}
