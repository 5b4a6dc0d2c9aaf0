#include "daemon/web/generation.hpp"

#include <utility>

#include "base/result.hpp"
#include "config/web/load.hpp"
#include "exporter/tls/context.hpp"

namespace gpumeter {
namespace {

Result<std::shared_ptr<const TlsContext>> make_tls(const WebSettings& settings) {
  if (!settings.tls) return std::shared_ptr<const TlsContext>();
  return TlsContext::make(*settings.tls);
}

}  // namespace

WebAttempt load_generation(const std::string& file, const std::shared_ptr<const WebGeneration>& old) {
  WebAttempt attempt;
  config::web::Loaded loaded = config::web::load_file(file, &attempt.files);
  if (auto* problems = std::get_if<std::vector<options::Problem>>(&loaded)) {
    attempt.problems = std::move(*problems);
    return attempt;
  }
  auto& [settings, notes] = std::get<config::web::LoadedWeb>(loaded);
  attempt.notes = std::move(notes);
  if (old != nullptr && old->settings == settings) {
    attempt.generation = old;
    return attempt;
  }
  Result<std::shared_ptr<const TlsContext>> tls = make_tls(settings);
  if (tls) {
    if (*tls != nullptr)
      attempt.notes.insert(attempt.notes.end(), (*tls)->warnings().begin(), (*tls)->warnings().end());
    attempt.generation =
        std::make_shared<const WebGeneration>(WebGeneration{std::move(settings), *std::move(tls)});
  } else {
    attempt.problems.push_back({file, 0, "tls_server_config", tls.error().message()});
  }
  return attempt;
}

}  // namespace gpumeter
