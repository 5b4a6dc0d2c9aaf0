#include "exporter/web/runbooks_page.hpp"

#include <algorithm>
#include <utility>

#include "exporter/web/html.hpp"

namespace gpumeter {
namespace {

constexpr std::string_view kHead =
    "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
    "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
    "<meta name=\"color-scheme\" content=\"light dark\">\n<title>Runbooks - gpumeter</title>\n"
    "<link rel=\"icon\" href=\"data:,\">\n<link rel=\"stylesheet\" href=\"gpumeter.css\">\n</head>\n"
    "<body>\n<main class=\"prose\">\n<p><a href=\"./\">All GPUs</a></p>\n";
constexpr std::string_view kTail = "</main>\n</body>\n</html>\n";

std::string in_lower_case(std::string_view text) {
  std::string lower(text);
  std::ranges::transform(lower, lower.begin(),
                         [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
  return lower;
}

std::string element(std::string_view name, std::string_view content) {
  return '<' + std::string(name) + '>' + std::string(content) + "</" + std::string(name) + '>';
}

/// Text between two marks, or nothing if the closing mark is missing.
std::string_view between(std::string_view text, std::string_view mark) {
  const std::size_t end = text.find(mark, mark.size());
  return end == std::string_view::npos ? std::string_view() : text.substr(mark.size(), end - mark.size());
}

std::string inline_html(std::string_view text);

/// Appends a link that begins `text`, and returns its length; 0 if none begins there. Only sections of the
/// page are links: the other documents are not served.
std::size_t append_link(std::string& out, std::string_view text) {
  const std::size_t middle = text.find("](");
  const std::size_t end = text.find(')', middle == std::string_view::npos ? 0 : middle);
  if (!text.starts_with('[') || middle == std::string_view::npos || end == std::string_view::npos) return 0;
  const std::string label = inline_html(text.substr(1, middle - 1));
  const std::string_view address = text.substr(middle + 2, end - middle - 2);
  out += address.starts_with('#') ? "<a href=\"" + escaped_html(address) + "\">" + label + "</a>" : label;
  return end + 1;
}

/// Code, emphasis and links of one line.
std::string inline_html(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    std::size_t used = 0;
    if (const auto code = between(text, "`"); text.starts_with('`') && !code.empty()) {
      out += element("code", escaped_html(code));
      used = code.size() + 2;
    } else if (const auto strong = between(text, "**"); text.starts_with("**") && !strong.empty()) {
      out += element("strong", inline_html(strong));
      used = strong.size() + 4;
    } else {
      used = append_link(out, text);
    }
    if (used == 0) {
      out += escaped_html(text.substr(0, 1));
      used = 1;
    }
    text.remove_prefix(used);
  }
  return out;
}

std::string table_row(std::string_view line, std::string_view cell) {
  std::string out;
  line.remove_prefix(1);
  for (std::size_t end = line.find('|'); end != std::string_view::npos; end = line.find('|')) {
    std::string_view text = line.substr(0, end);
    while (text.starts_with(' ')) text.remove_prefix(1);
    while (text.ends_with(' ')) text.remove_suffix(1);
    out += element(cell, inline_html(text));
    line.remove_prefix(end + 1);
  }
  return element("tr", out) + '\n';
}

/// Collects the lines of paragraphs, lists and tables, and writes each block at its end.
class Blocks {
 public:
  void line(std::string_view text) {
    if (text.starts_with('|')) {
      row(text);
    } else if (text.starts_with("- ")) {
      flush_text();
      enter("ul");
      text_ = text.substr(2);
    } else if (text.empty()) {
      flush_text();
      if (open_ == "table") enter("");
    } else if (text.starts_with('#')) {
      heading(text);
    } else if (text_.empty()) {
      enter("");
      text_ = text;
    } else {
      text_ += ' ' + std::string(text.substr(std::min(text.find_first_not_of(' '), text.size())));
    }
  }

  std::string take() {
    flush_text();
    enter("");
    return std::move(out_);
  }

 private:
  /// Ends the list or table that is open and begins this one, unless it is the same.
  void enter(std::string_view name) {
    if (open_ == name) return;
    if (!open_.empty()) out_ += "</" + std::string(open_) + ">\n";
    if (!name.empty()) out_ += '<' + std::string(name) + ">\n";
    open_ = name;
  }

  void flush_text() {
    if (!text_.empty()) out_ += element(open_ == "ul" ? "li" : "p", inline_html(text_)) + '\n';
    text_.clear();
  }

  void heading(std::string_view text) {
    flush_text();
    enter("");
    const std::size_t level = std::min(text.find(' '), text.size() - 1);
    const std::string_view title = text.substr(level + 1);
    const std::string name = "h" + std::to_string(level);
    out_ += '<' + name + " id=\"" + escaped_html(in_lower_case(title)) + "\">" + inline_html(title) + "</" +
            name + ">\n";
  }

  void row(std::string_view line) {
    flush_text();
    if (line.starts_with("|-")) return;  // the line below a table's head
    const bool is_head = open_ != "table";
    enter("table");
    out_ += table_row(line, is_head ? "th" : "td");
  }

  std::string out_;
  std::string text_;            // of the paragraph or item under way
  std::string_view open_ = {};  // "ul", "table" or none
};

}  // namespace

std::string runbooks_page(std::string_view markdown) {
  Blocks blocks;
  while (!markdown.empty()) {
    const std::size_t end = std::min(markdown.find('\n'), markdown.size());
    blocks.line(markdown.substr(0, end));
    markdown.remove_prefix(std::min(end + 1, markdown.size()));
  }
  return std::string(kHead) + blocks.take() + std::string(kTail);
}

}  // namespace gpumeter
