#include "exporter/web/status_page.hpp"

#include <initializer_list>

namespace gpumeter {
namespace {

constexpr std::string_view kHead = R"(<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>gpumeter</title>
<style>
:root { color-scheme: light dark; }
body { font: 16px/1.5 sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
table { border-collapse: collapse; width: 100%; }
th, td { text-align: left; padding: .3rem .8rem .3rem 0; border-bottom: 1px solid #8884; }
.down { color: #c22; }
footer { margin-top: 2rem; font-size: .85rem; opacity: .7; }
</style>
</head>
<body>
<h1>gpumeter</h1>
)";

std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

std::string cells(std::initializer_list<std::string_view> texts) {
  std::string row;
  for (const std::string_view text : texts) row += "<td>" + escaped(text) + "</td>";
  return row;
}

std::string table_row(const DeviceStatus& device) {
  const std::string index = std::to_string(device.index);
  const std::string up = device.up ? "yes" : "no, " + device.state;
  return std::string(device.up ? "<tr>" : "<tr class=\"down\">") +
         cells({index, device.vendor, device.model, device.pci_address, device.uuid, up}) + "</tr>\n";
}

std::string table(std::span<const DeviceStatus> devices) {
  if (devices.empty()) return "<p>No device is known.</p>\n";
  std::string html =
      "<table>\n<tr><th>GPU</th><th>Vendor</th><th>Model</th><th>PCI "
      "address</th><th>UUID</th><th>Up</th></tr>\n";
  for (const DeviceStatus& device : devices) html += table_row(device);
  return html + "</table>\n";
}

std::string link(std::string_view path, std::string_view text) {
  return "<a href=\"" + escaped(path) + "\">" + escaped(text) + "</a>";
}

}  // namespace

std::string status_page(std::span<const DeviceStatus> devices, std::string_view telemetry_path,
                        const BuildFacts& build) {
  return std::string(kHead) + table(devices) + "<p>" + link(telemetry_path, "Metrics") + " &middot; " +
         link("/api/v1/devices", "Devices as JSON") + " &middot; " +
         link("/api/v1/series", "Series as JSON") + " &middot; " + link("/-/healthy", "Healthy") +
         " &middot; " + link("/-/ready", "Ready") + "</p>\n<footer>gpumeter " + escaped(build.version) +
         ", revision " + escaped(build.revision) + ", " + escaped(build.compiler) +
         "</footer>\n</body>\n</html>\n";
}

}  // namespace gpumeter
