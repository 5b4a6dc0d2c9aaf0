#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <string>

#include "base/options.hpp"
#include "base/result.hpp"
#include "collectors/api/part.hpp"
#include "exporter/otlp/encoder.hpp"
#include "exporter/text/selection.hpp"

namespace gpumeter::otlp {

enum class Compression : std::uint8_t { gzip, none };
inline constexpr EnumNames<Compression, 2> kCompressionNames = {
    {{Compression::gzip, "gzip"}, {Compression::none, "none"}}};
constexpr const auto& names_of(Compression) noexcept { return kCompressionNames; }

/// `otlp` in the configuration.
struct Settings {
  std::string endpoint = {};  ///< empty: nothing is sent
  Duration interval = std::chrono::minutes(1);
  Duration timeout = std::chrono::seconds(10);
  std::map<std::string, std::string> headers = {};
  Compression compression = Compression::gzip;
  std::string ca_file = {}, cert_file = {}, key_file = {};
  bool semantic_conventions = true;
  PageSelection series = {};
  bool operator==(const Settings&) const = default;
};

/// A variable of the environment; empty: it is not set.
using Variables = std::function<std::string(const std::string& name)>;

/// The settings with OpenTelemetry's variables in place of those that have their default. The Error names the
/// variable whose value is wrong.
Result<Settings> with_variables(Settings settings, const Variables& variables);

/// What identifies the sender: the machine's facts, and what the variables add.
Attributes resource_of(const std::string& host, const std::string& machine_id, const Variables& variables);

/// Sends the store's series to a receiver.
extern const PartEntry kPart;

}  // namespace gpumeter::otlp
