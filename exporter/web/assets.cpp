#include "exporter/web/assets.hpp"

#include <charconv>
#include <cstdint>
#include <utility>

#include "exporter/text/format.hpp"

namespace gpumeter {

EncodedText EncodedText::of(std::string text) {
  Result<std::string> compressed = ::gpumeter::gzip(text);
  SharedBytes bytes = compressed ? std::make_shared<const std::string>(*std::move(compressed)) : nullptr;
  return {std::make_shared<const std::string>(std::move(text)), std::move(bytes)};
}

std::string assets::unpacked(std::string_view file) {
  Result<std::string> text = gunzip(file);
  return text ? *std::move(text) : std::string();
}

std::string etag_of(std::string_view bytes) {
  std::uint64_t hash = 0xCBF29CE484222325;  // FNV-1a
  for (const char c : bytes) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001B3;
  char text[16];
  const auto end = std::to_chars(text, text + sizeof text, hash, 16).ptr;
  return "\"" + std::string(text, end) + "\"";
}

bool matches_etag(std::string_view list, std::string_view etag) noexcept {
  while (!list.empty()) {
    std::string_view tag = list.substr(0, list.find(','));
    list.remove_prefix(tag.size() + (tag.size() < list.size() ? 1 : 0));
    while (!tag.empty() && (tag.front() == ' ' || tag.front() == '\t')) tag.remove_prefix(1);
    while (!tag.empty() && (tag.back() == ' ' || tag.back() == '\t')) tag.remove_suffix(1);
    if (tag.starts_with("W/")) tag.remove_prefix(2);
    if (tag == etag || tag == "*") return true;
  }
  return false;
}

Asset::Asset(std::string_view bytes) : text(EncodedText::of(std::string(bytes))), etag(etag_of(bytes)) {}

}  // namespace gpumeter
