#include "exporter/health/report.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <utility>

namespace gpumeter::health {
namespace {

std::string number_text(double value) {
  std::array<char, 32> text{};
  const double rounded = std::round(value * 10) / 10;
  return {text.data(), std::to_chars(text.data(), text.data() + text.size(), rounded).ptr};
}

void replace(std::string& text, std::string_view what, const std::string& with) {
  if (const std::size_t at = text.find(what); at != std::string::npos) text.replace(at, what.size(), with);
}

}  // namespace

Finding finding_of(const Condition& condition, double value, double of, Nanoseconds since) {
  Finding finding{std::string(condition.reason),
                  condition.severity,
                  condition.action,
                  std::string(condition.text),
                  value,
                  since,
                  std::string(condition.alert),
                  runbook_of(condition)};
  replace(finding.text, "{value}", number_text(value));
  replace(finding.text, "{percent}", number_text(100 * value) + " %");
  replace(finding.text, "{of}", number_text(of));
  return finding;
}

State state_of(const std::vector<Finding>& findings) {
  State worst = State::ok;
  for (const Finding& finding : findings) {
    worst = std::max(worst, finding.severity == Severity::failed ? State::failed : State::degraded);
  }
  return worst;
}

}  // namespace gpumeter::health
