#pragma once

#include <memory>
#include <string>

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

}  // namespace gpumeter
