#include <optional>
#include <string>
#include <vector>

#include "base/text.hpp"
#include "collectors/import/formats/formats.hpp"
#include "collectors/import/lines.hpp"

namespace gpumeter::import {
namespace {

constexpr std::string_view kScores[] = {
    "Device Inference Score:", "Device Training Score:", "Device AI Score:"};
constexpr std::string_view kScoreTests[] = {"inference", "training", "ai"};
constexpr std::string_view kLast = "For more information and results, please visit";

/// "1/19. MobileNet-V2": the model; empty if the line is another.
std::string_view model_of(std::string_view text) {
  std::string_view rest = text;
  if (!take_number<unsigned>(rest) || !rest.starts_with('/')) return {};
  rest.remove_prefix(1);
  if (!take_number<unsigned>(rest) || !rest.starts_with(". ")) return {};
  return trimmed(rest.substr(1));
}

class Parser {
 public:
  std::optional<Error> take(const TextLine& line) {
    line_ = line.number;
    const std::string_view text = trimmed(line.text);
    if (after(text, "AI-Benchmark-v")) is_named_ = true;
    if (text.starts_with(kLast)) is_whole_ = true;
    if (const std::string_view model = model_of(text); !model.empty()) model_ = std::string(model);
    for (std::size_t i = 0; i < std::size(kScores); ++i) {
      if (text.starts_with(kScores[i])) return take_score(kScoreTests[i], text.substr(kScores[i].size()));
    }
    // "1.1 - inference | batch=50, size=224x224: 466 \xC2\xB1 16 ms"
    const bool is_test = after(text, " - inference") || after(text, " - training");
    return is_test && !model_.empty() ? take_test(text) : std::nullopt;
  }

  Result<Sheet> end() {
    if (!is_named_) return at_line(line_, "no output of AI-Benchmark");
    if (!is_whole_) return at_line(line_, "the scores or the last line are missing: the file is cut");
    return std::move(sheet_);
  }

 private:
  std::optional<Error> take_score(std::string_view test, std::string_view text) {
    const auto score = measure(trimmed(text));
    if (!score) return at_line(line_, "no score: " + gpumeter::quoted(text));
    // A run of one half prints 0 for the other, and the sum.
    if (*score > 0) sheet_.gpus[0].result(test, "score", *score);
    return std::nullopt;
  }

  std::optional<Error> take_test(std::string_view text) {
    const std::vector<std::string_view> words = words_of(text);
    constexpr std::size_t kWords = 9;
    const bool is_row = words.size() == kWords && words[4].ends_with(':');
    const auto value = is_row ? measure(words[5]) : std::nullopt;
    const Unit* const unit = is_row ? find_unit(words[kWords - 1]) : nullptr;
    if (!value || unit == nullptr) return at_line(line_, "a test of " + model_ + " without its time");
    std::string test = model_;
    for (const std::size_t word : {std::size_t{2}, std::size_t{3}, std::size_t{4}})
      test += ' ' + std::string(words[word]);
    test.pop_back();  // the colon
    sheet_.gpus[0].result(test, unit->base, *value * unit->scale);
    return std::nullopt;
  }

  Sheet sheet_;
  std::size_t line_ = 1;
  std::string model_;
  bool is_named_ = false;
  bool is_whole_ = false;
};

}  // namespace

Result<Sheet> parse_ai_benchmark(std::string_view text, const Context&) { return parse_lines<Parser>(text); }

}  // namespace gpumeter::import
