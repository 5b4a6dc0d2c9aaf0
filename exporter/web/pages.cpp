#include "exporter/web/pages.hpp"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <initializer_list>
#include <iterator>
#include <utility>

#include "base/text.hpp"

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
    std::string_view tag = trimmed(take_until(list, ','));
    if (tag.starts_with("W/")) tag.remove_prefix(2);
    if (tag == etag || tag == "*") return true;
  }
  return false;
}

Asset::Asset(std::string_view bytes) : text(EncodedText::of(std::string(bytes))), etag(etag_of(bytes)) {}

namespace {

/// The text with the characters replaced that HTML reads as markup, in elements and in quoted attributes.
std::string escaped_html(std::string_view text) {
  constexpr std::pair<char, std::string_view> kEntities[] = {
      {'&', "&amp;"}, {'<', "&lt;"}, {'>', "&gt;"}, {'"', "&quot;"}};
  std::string out;
  for (const char c : text) {
    const auto* const entity = std::ranges::find(kEntities, c, &std::pair<char, std::string_view>::first);
    entity == std::end(kEntities) ? out += c : out += entity->second;
  }
  return out;
}

std::string cells(std::initializer_list<std::string_view> texts) {
  std::string row;
  for (const std::string_view text : texts) row += "<td>" + escaped_html(text) + "</td>";
  return row;
}

std::string table_row(const DeviceStatus& device) {
  const std::string index = std::to_string(device.index);
  const std::string up = device.up ? "yes" : "no, " + device.state;
  return std::string(device.up ? "<tr>" : "<tr class=\"is-failed\">") +
         cells({index, device.vendor, device.model, device.pci_address, device.uuid, up}) + "</tr>\n";
}

std::string table(std::span<const DeviceStatus> devices) {
  if (devices.empty()) return "<p>No device is known.</p>\n";
  std::string html =
      "<table>\n<tr><th scope=\"col\">GPU</th><th scope=\"col\">Vendor</th><th scope=\"col\">Model</th>"
      "<th scope=\"col\">PCI address</th><th scope=\"col\">UUID</th><th scope=\"col\">Up</th></tr>\n";
  for (const DeviceStatus& device : devices) html += table_row(device);
  return html + "</table>\n";
}

/// The GPUs that no collector reads; the script keeps this list up to date.
std::string unread_list(std::span<const UnreadDevice> unread) {
  if (unread.empty()) return {};
  std::string html = "<h2>On the bus, not read</h2>\n<ul class=\"reasons\">\n";
  for (const UnreadDevice& device : unread) {
    const std::string driver = device.driver.empty() ? "no driver" : device.driver;
    html += "<li>" +
            escaped_html(device.pci_address + " " + device.vendor + " " + device.pci_id + " (" + driver +
                         "): " + device.why + "; " + device.remedy) +
            "</li>\n";
  }
  return html + "</ul>\n";
}

/// A link to a path of this server. Relative, so that it also works below a proxy's prefix.
std::string link(std::string_view path, std::string_view text) {
  return "<a href=\"." + escaped_html(path) + "\">" + escaped_html(text) + "</a>";
}

/// The text with each mark replaced.
std::string filled(std::string_view text,
                   std::initializer_list<std::pair<std::string_view, std::string>> marks) {
  std::string out(text);
  for (const auto& [mark, replacement] : marks) {
    if (const std::size_t at = out.find(mark); at != std::string::npos)
      out.replace(at, mark.size(), replacement);
  }
  return out;
}

}  // namespace

std::string status_page(std::span<const DeviceStatus> devices, std::span<const UnreadDevice> unread,
                        std::string_view telemetry_path, const BuildFacts& build) {
  const std::string links =
      link(telemetry_path, "Metrics") + " &middot; " + link("/api/v1/devices", "Devices as JSON") +
      " &middot; " + link("/api/v1/series", "Series as JSON") + " &middot; " +
      link("/api/v1/live", "Live values as JSON") + " &middot; " + link("/-/healthy", "Healthy") +
      " &middot; " + link("/-/ready", "Ready") + " &middot; " + link("/runbooks", "Runbooks");
  const std::string footer = "gpumeter " + escaped_html(build.version) + ", revision " +
                             escaped_html(build.revision) + ", " + escaped_html(build.compiler);
  return filled(assets::kPage, {{"<!--devices-->", table(devices) + unread_list(unread)},
                                {"<!--links-->", links},
                                {"<!--build-->", footer}});
}

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
    out += element(cell, inline_html(trimmed(line.substr(0, end))));
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
  while (!markdown.empty()) blocks.line(take_until(markdown, '\n'));
  return std::string(kHead) + blocks.take() + std::string(kTail);
}

}  // namespace gpumeter
