#include "exporter/web/encoded.hpp"

#include <utility>

#include "exporter/text/format.hpp"

namespace gpumeter {

EncodedText EncodedText::of(std::string text) {
  Result<std::string> compressed = ::gpumeter::gzip(text);
  SharedBytes bytes = compressed ? std::make_shared<const std::string>(*std::move(compressed)) : nullptr;
  return {std::make_shared<const std::string>(std::move(text)), std::move(bytes)};
}

}  // namespace gpumeter
