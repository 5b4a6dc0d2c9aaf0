#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.hpp"

namespace gpumeter {

/// Selects series by the name of their family and by labels: `gpu_link_*`, `gpu_xid_errors_total{xid="31"}`.
/// `*` in a name or a value is any text, also an empty one. Every label of the pattern must be on the series.
/// `\` makes the next character of a value literal. Immutable. Any thread.
class SeriesPattern {
 public:
  using Pair = std::pair<std::string_view, std::string_view>;  ///< name, value

  /// The error is the correction: "must be ...".
  static Result<SeriesPattern> parse(std::string_view text);

  const std::string& text() const noexcept { return text_; }
  bool operator==(const SeriesPattern& other) const noexcept { return text_ == other.text_; }

  bool matches_name(std::string_view family) const noexcept;
  /// For a series whose family's name matches. `labels` is a range of pairs.
  template <class Labels>
  bool matches_labels(const Labels& labels) const noexcept {
    for (const Label& wanted : labels_) {
      bool is_found = false;
      for (const auto& [name, value] : labels) {
        is_found = is_found || (name == wanted.name && wanted.value.matches(value));
      }
      if (!is_found) return false;
    }
    return true;
  }

 private:
  /// A text with wildcards: the literal parts between the wildcards.
  class Glob {
   public:
    Glob() : parts_(1) {}
    void add(char literal) { parts_.back() += literal; }
    void add_wildcard() { parts_.emplace_back(); }
    bool matches(std::string_view text) const noexcept;

   private:
    std::vector<std::string> parts_;  ///< at least one
  };
  struct Label {
    std::string name;
    Glob value = {};
  };

  static bool take_name(std::string_view& text, Glob& name);
  static bool take_value(std::string_view& text, Glob& value);
  bool take_labels(std::string_view& text);

  std::string text_;  ///< as parsed
  Glob name_;
  std::vector<Label> labels_;
};

}  // namespace gpumeter
