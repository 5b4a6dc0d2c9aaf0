#include "exporter/store/label_block.hpp"

#include <cstddef>

#include "exporter/store/escaped_text.hpp"

namespace gpumeter {

LabelBlock::LabelBlock(const DeviceInfo& device, unsigned index, std::string_view name,
                       const DeviceLabels& which)
    : order_(index) {
  add("gpu", std::to_string(index));
  add("uuid", device.uuid);
  if (which.vendor) add("vendor", device.vendor);
  if (which.model) add("model", device.model);
  if (which.pci_address) add("pci_address", device.pci_address);
  if (which.serial) add("serial", device.serial);
  if (which.name) add("name", name);
}

LabelBlock LabelBlock::with(std::span<const Label> labels) const {
  LabelBlock result = *this;
  result.add(labels);
  return result;
}

void LabelBlock::add(std::span<const Label> labels) {
  for (const Label& label : labels) {
    if (!has(label.name)) add(label.name, label.value);
  }
}

void LabelBlock::add(std::string_view name, std::string_view value) {
  if (value.empty()) return;  // to Prometheus an empty label and none are the same
  if (!text_.empty()) text_ += ',';
  text_.append(name).append("=\"").append(EscapedText::label_value(value).view()).append("\"");
}

bool LabelBlock::has(std::string_view name) const noexcept {
  std::string_view rest = text_;
  while (!rest.empty()) {
    const std::size_t equals = rest.find('=');
    if (rest.substr(0, equals) == name) return true;
    std::size_t i = equals + 2;  // behind the opening quote
    while (rest[i] != '"') i += rest[i] == '\\' ? 2U : 1U;
    rest.remove_prefix(i + 1);
    if (!rest.empty()) rest.remove_prefix(1);  // the comma
  }
  return false;
}

}  // namespace gpumeter
