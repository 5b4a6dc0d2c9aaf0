#include "collectors/import/xml.hpp"

#include <algorithm>
#include <optional>

#include "base/text.hpp"
#include "collectors/import/lines.hpp"

namespace gpumeter::import {
namespace {

constexpr int kMostLevels = 64;

bool is_name(char c) noexcept {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-' ||
         c == '.' || c == ':';
}

std::string decoded(std::string_view raw) {
  constexpr std::pair<std::string_view, char> kEntities[] = {
      {"&amp;", '&'}, {"&lt;", '<'}, {"&gt;", '>'}, {"&quot;", '"'}, {"&apos;", '\''}};
  std::string text;
  while (!raw.empty()) {
    const auto* const entity =
        std::ranges::find_if(kEntities, [&](const auto& each) { return raw.starts_with(each.first); });
    const bool is_entity = entity != std::end(kEntities);
    text += is_entity ? entity->second : raw.front();
    raw.remove_prefix(is_entity ? entity->first.size() : 1);
  }
  return text;
}

class Parser {
 public:
  explicit Parser(std::string_view text) : rest_(text) {}

  Result<Element> document() {
    skip_outside();
    Element root;
    if (!element(root, 0)) return error();
    skip_outside();
    if (!rest_.empty()) return at_line(line_, "text follows the XML document");
    return root;
  }

 private:
  Error error() const {
    return at_line(line_, rest_.empty() ? "the XML document ends here: the file is cut" : "no XML");
  }
  void skip(std::size_t count) {
    const std::string_view passed = rest_.substr(0, count);
    line_ += static_cast<std::size_t>(std::ranges::count(passed, '\n'));
    rest_.remove_prefix(passed.size());
  }
  void skip_blanks() { skip(std::min(rest_.find_first_not_of(" \t\r\n"), rest_.size())); }
  bool take(std::string_view token) {
    if (!rest_.starts_with(token)) return false;
    skip(token.size());
    return true;
  }
  bool skip_until(std::string_view end) {
    const std::size_t at = rest_.find(end);
    skip(at == std::string_view::npos ? rest_.size() : at + end.size());
    return at != std::string_view::npos;
  }
  /// Blanks, declarations and comments.
  void skip_outside() {
    skip_blanks();
    while (rest_.starts_with("<?") || rest_.starts_with("<!--")) {
      skip_until(rest_.starts_with("<?") ? "?>" : "-->");
      skip_blanks();
    }
  }
  std::string name() {
    const auto end = std::ranges::find_if_not(rest_, is_name);
    std::string name(rest_.begin(), end);
    skip(name.size());
    return name;
  }

  bool element(Element& out, int level) {
    out.line = line_;
    if (level >= kMostLevels || !take("<")) return false;
    out.name = name();
    if (out.name.empty() || !attributes(out)) return false;
    if (take("/>")) return true;
    return take(">") && content(out, level);
  }

  bool attributes(Element& out) {
    skip_blanks();
    while (!rest_.empty() && is_name(rest_.front())) {
      auto& [key, value] = out.attributes.emplace_back(name(), "");
      if (!take("=\"")) return false;
      const std::size_t end = rest_.find('"');
      if (end == std::string_view::npos) {
        skip(rest_.size());
        return false;
      }
      value = decoded(rest_.substr(0, end));
      skip(end + 1);
      skip_blanks();
    }
    return true;
  }

  bool content(Element& out, int level) {
    while (true) {
      const std::size_t end = std::min(rest_.find('<'), rest_.size());
      out.text += decoded(rest_.substr(0, end));
      skip(end);
      if (rest_.empty()) return false;
      if (take("</")) return name() == out.name && take(">");
      if (rest_.starts_with("<!--")) {
        if (!skip_until("-->")) return false;
      } else if (!element(out.children.emplace_back(), level + 1)) {
        return false;
      }
    }
  }

  std::string_view rest_;
  std::size_t line_ = 1;
};

}  // namespace

std::string_view Element::attribute(std::string_view key) const noexcept {
  const auto found =
      std::ranges::find(attributes, key, [](const auto& each) { return std::string_view(each.first); });
  return found == attributes.end() ? std::string_view() : std::string_view(found->second);
}

Result<Element> parse_xml(std::string_view text) { return Parser(text).document(); }

}  // namespace gpumeter::import
