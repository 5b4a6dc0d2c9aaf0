#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <optional>
#include <utility>

#include "base/json/scalars.hpp"
#include "base/program.hpp"
#include "base/text.hpp"
#include "collectors/events/catalogue.hpp"
#include "collectors/events/line.hpp"
#include "collectors/events/log.hpp"
#include "exporter/health/conditions.hpp"
#include "programs/commands/commands.hpp"

namespace gpumeter {
namespace {

using events::Action;
using events::Severity;

std::string_view advice_of(Action action) {
  constexpr std::string_view kAdvice[] = {
      "nothing to do but to watch it",
      "restart the job; the GPU works",
      "let its jobs end, give it no new ones, then look at cooling, power and cables",
      "reset the GPU after its jobs have ended",
      "reboot the machine",
      "replace the card"};
  return kAdvice[static_cast<std::size_t>(action)];
}

std::string_view concern_of(Severity severity) {
  constexpr std::string_view kConcerns[] = {
      "at most the program that caused it; the GPU works",
      "the GPU works, but slower or with less safety than it should",
      "all jobs on the GPU; it must not get new ones before the action"};
  return kConcerns[static_cast<std::size_t>(severity)];
}

template <class Number>
std::string json_of(const std::optional<Number>& number) {
  return number ? std::to_string(*number) : "null";
}

std::string json_of(std::string_view text) { return text.empty() ? "null" : json_quoted(text); }

std::string json_line(std::uint64_t line, const events::Event& event) {
  const events::Verdict verdict = verdict_of(event);
  return "{\"line\":" + std::to_string(line) + ",\"vendor\":" + json_of(event.vendor) +
         ",\"pci\":" + json_of(event.pci) + ",\"kind\":" + json_of(to_string(event.kind)) +
         ",\"code\":" + json_of(event.code) + ",\"subcode\":" + json_of(event.subcode) +
         ",\"link\":" + json_of(event.link) + ",\"severity\":" + json_of(to_string(verdict.severity)) +
         ",\"action\":" + json_of(to_string(verdict.action)) + "}\n";
}

std::string text_line(std::uint64_t line, const events::Event& event) {
  const events::Verdict verdict = verdict_of(event);
  std::string text = "line " + std::to_string(line) + ": " +
                     (event.pci.empty() ? "unknown device" : event.pci) + " " +
                     std::string(to_string(verdict.severity)) + ": " + std::string(to_string(event.kind));
  if (event.code) text += " " + std::to_string(*event.code);
  if (event.subcode) text += "." + std::to_string(*event.subcode);
  if (event.link) text += *event.link < 0 ? ", all links" : ", link " + std::to_string(*event.link);
  text += ": " + std::string(verdict.meaning);
  if (!verdict.hint.empty()) text += " (" + std::string(verdict.hint) + ")";
  return text + "; action: " + std::string(to_string(verdict.action)) + "\n";
}

/// The lines of a stream, of which each is kept up to kLongestLine.
class Explainer {
 public:
  explicit Explainer(bool is_json) : is_json_(is_json) {}

  void add(std::string_view block) {
    while (!block.empty()) {
      const std::size_t end = block.find('\n');
      const std::string_view piece = block.substr(0, end);
      if (end == std::string_view::npos) return keep(piece);
      if (part_.empty()) {
        take(piece);
      } else {
        keep(piece);
        take(std::exchange(part_, {}));
      }
      block.remove_prefix(end + 1);
    }
  }

  void end() {
    if (!part_.empty()) take(std::exchange(part_, {}));
    if (!is_json_ && !has_event_) text_ += "no event in " + std::to_string(line_) + " lines\n";
  }

  std::string text() { return std::exchange(text_, {}); }

 private:
  void keep(std::string_view piece) {
    part_ += piece.substr(0, events::kLongestLine - std::min(part_.size(), events::kLongestLine));
  }

  void take(std::string_view line) {
    ++line_;
    const std::optional<events::Event> event = reader_.take(line);
    if (!event) return;
    has_event_ = true;
    text_ += is_json_ ? json_line(line_, *event) : text_line(line_, *event);
  }

  const bool is_json_;
  events::LogReader reader_;
  std::string part_, text_;
  std::uint64_t line_ = 0;
  bool has_event_ = false;
};

/// What was read is printed before the next read, so that a log can be followed.
Result<Done> explain_log(bool is_json) {
  Explainer explainer(is_json);
  std::vector<char> block(std::size_t{256} << 10);
  while (true) {
    const ssize_t size = read(STDIN_FILENO, block.data(), block.size());
    if (size < 0 && errno == EINTR) continue;
    if (size < 0) return Error(std::string("standard input: ") + std::strerror(errno));
    if (size == 0) explainer.end();
    explainer.add({block.data(), static_cast<std::size_t>(size)});
    const std::string text = explainer.text();
    if (!text.empty() && print(text) != 0) return Error("standard output does not accept the events");
    if (size == 0) return Done{};
  }
}

/// What a word of the command line stands for.
struct Explained {
  std::string title;
  Severity severity;
  Action action;
  std::string more;  ///< lines
};

std::string to_text(const Explained& it) {
  return it.title + "\n  severity: " + std::string(to_string(it.severity)) +
         "\n  concerns: " + std::string(concern_of(it.severity)) +
         "\n  action: " + std::string(to_string(it.action)) + " (" + std::string(advice_of(it.action)) +
         ")\n" + it.more;
}

std::string to_json(const Explained& it) {
  return "{\"title\":" + json_quoted(it.title) + ",\"severity\":" + json_of(to_string(it.severity)) +
         ",\"action\":" + json_of(to_string(it.action)) + ",\"advice\":" + json_quoted(advice_of(it.action)) +
         "}\n";
}

std::string nvlink_rules_of(unsigned code) {
  std::string text;
  for (const events::NvlinkRule& rule : events::nvlink_rules()) {
    if (rule.xid != code) continue;
    text += "    " + events::to_text(rule) + "\n";
  }
  return text.empty() ? text : "  by the unit, the sub-code and the status in its message:\n" + text;
}

Explained explain_xid(unsigned code) {
  const events::Xid& xid = events::xid_of(code);
  std::string more =
      xid.bucket.empty() ? "" : "  NVIDIA's resolution bucket: " + std::string(xid.bucket) + "\n";
  if (xid.kind == events::XidClass::job) more += "  the XID ends one process\n";
  if (code == 154) more += "  the new action in its message decides\n";
  if (code == 94) more += "  a message with \"RST: Yes\" asks for a reset\n";
  return {"XID " + std::to_string(code) + ": " + std::string(xid.meaning), xid.severity, xid.action,
          more + nvlink_rules_of(code)};
}

Explained explain_sxid(unsigned code) {
  const events::Event event{.kind = events::Kind::sxid, .code = code, .grade = events::Grade::fatal};
  const events::Verdict verdict = verdict_of(event);
  return {"SXID " + std::to_string(code) + " of an NVSwitch: " + std::string(verdict.meaning),
          verdict.severity, verdict.action,
          "  if its line says Fatal; Non-fatal and Correctable lines require no action\n"};
}

/// The text of a condition, without the values of a finding.
std::string general(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    out += take_until(text, '{');
    if (text.empty()) return out;
    const std::string_view name = take_until(text, '}');
    out += name == "of" ? "M" : name == "percent" ? "P %" : name == "link" ? "link N" : "N";
  }
  return out;
}

std::vector<Explained> explain_reason(std::string_view reason) {
  std::vector<Explained> all;
  for (const health::Condition& each : health::all_conditions()) {
    if (each.reason != reason) continue;
    all.push_back(
        {std::string(each.reason) + ": " + general(each.text), each.severity, each.action,
         "  test: " + test_text(each) + "\n  runbook: docs/runbooks.md#" + runbook_of(each) + "\n"});
  }
  return all;
}

Result<std::vector<Explained>> explained(const std::string& kind, const std::string& word) {
  if (kind == "reason") {
    std::vector<Explained> all = explain_reason(word);
    if (all.empty())
      return Error("no condition has the reason " + gpumeter::quoted(word) +
                   "; docs/conditions.md lists them");
    return all;
  }
  const auto code = parse_number<unsigned>(word);
  if (!code) return Error(kind + " requires a number, not " + gpumeter::quoted(word));
  return std::vector<Explained>{kind == "xid" ? explain_xid(*code) : explain_sxid(*code)};
}

}  // namespace

Result<Done> explain(const ExplainOptions& options) {
  if (options.kind.empty()) return explain_log(options.json);
  const Result<std::vector<Explained>> all = explained(options.kind, options.word);
  if (!all) return all.error();
  std::string text;
  for (const Explained& each : *all) text += options.json ? to_json(each) : to_text(each);
  if (print(text) != 0) return Error("standard output does not accept the text");
  return Done{};
}

}  // namespace gpumeter
