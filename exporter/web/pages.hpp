#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "collectors/api/device_status.hpp"
#include "exporter/text/format.hpp"

namespace gpumeter {

/// Bytes that any number of answers share. Immutable.
using SharedBytes = std::shared_ptr<const std::string>;

/// A text in both encodings.
struct EncodedText {
  SharedBytes identity;
  SharedBytes gzip;  ///< null if the compression failed

  /// Compresses the text.
  static EncodedText of(std::string text);

  bool has(Encoding encoding) const noexcept { return encoding == Encoding::identity || gzip != nullptr; }
  const SharedBytes& in(Encoding encoding) const noexcept {
    return encoding == Encoding::gzip ? gzip : identity;
  }
};

/// The files of exporter/web/assets and the page at /runbooks, as the build embeds them.
namespace assets {
extern const std::string_view kPage;  ///< page.html

// Packed by gzip, which makes the program 50 kB smaller.
extern const std::string_view kStyle;     ///< page.css
extern const std::string_view kScript;    ///< the files of script/, one after the other
extern const std::string_view kRunbooks;  ///< docs/runbooks.md as HTML, by runbooks.py

/// The text of a packed file; empty if there is no memory for it.
std::string unpacked(std::string_view file);
}  // namespace assets

/// A file that browsers keep and revalidate.
struct Asset {
  explicit Asset(std::string_view bytes);

  EncodedText text;
  std::string etag;  ///< a quoted hash of the bytes
};

/// The value of an ETag header for these bytes.
std::string etag_of(std::string_view bytes);

/// True if a header If-None-Match names this tag, or is `*`. Weak tags compare as strong ones (RFC
/// 9110, 13.1.2).
bool matches_etag(std::string_view if_none_match, std::string_view etag) noexcept;

/// The page at `/`: assets/page.html with the devices, the GPUs that no collector reads, links and build
/// information. Its script replaces the list of devices by live values; without a script the list stays.
/// Loads nothing from other servers.
std::string status_page(std::span<const DeviceStatus> devices, std::span<const UnreadDevice> unread,
                        std::string_view telemetry_path, const BuildFacts& build);

}  // namespace gpumeter
