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

}  // namespace gpumeter
