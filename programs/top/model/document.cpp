#include "programs/top/model/document.hpp"

#include <nlohmann/json.hpp>
#include <utility>

namespace gpumeter::top {
namespace {

using Json = nlohmann::json;

/// Reads fields of a document, whatever their types are.
class Reader {
 public:
  explicit Reader(Charset charset) : charset_(charset) {}

  std::string text(const Json& value) const {
    return value.is_string() ? text(value.get_ref<const std::string&>()) : std::string();
  }
  std::string text(const std::string& any) const { return printable(any, charset_); }
  std::string text(const Json& object, const char* key) const { return text(field(object, key)); }

  static std::optional<double> number(const Json& object, const char* key) {
    const Json& value = field(object, key);
    return value.is_number() ? std::optional(value.get<double>()) : std::nullopt;
  }

  /// Returns null if `object` is none, or has no such field.
  static const Json& field(const Json& object, const char* key) {
    static const Json kNull;
    const auto found = object.find(key);
    return found == object.end() ? kNull : *found;
  }

  /// Returns what `make` returns for each element of the array; nothing if the field is no array.
  template <class Make>
  static auto list(const Json& object, const char* key, Make make) {
    std::vector<decltype(make(object))> made;
    const Json& array = field(object, key);
    if (!array.is_array()) return made;
    for (const Json& each : array) made.push_back(make(each));
    return made;
  }

 private:
  const Charset charset_;
};

Result<Json> document_with(std::string_view json, const char* list) {
  Json root = Json::parse(json, nullptr, false);
  if (root.is_discarded()) return Error("the answer is not JSON; is this gpumeter?");
  if (!Reader::field(root, list).is_array())
    return Error("the answer has no list \"" + std::string(list) + "\"; is this gpumeter?");
  return root;
}

std::optional<Sample> sample_of(const Json& json, const Reader& read) {
  const std::optional<double> value = Reader::number(json, "value");
  if (!value) return std::nullopt;
  Sample sample{read.text(json, "name"), {}, *value, Reader::number(json, "age_seconds").value_or(0)};
  const Json& labels = Reader::field(json, "labels");
  if (!labels.is_object()) return sample;
  for (const auto& [name, label] : labels.items()) sample.labels.emplace(read.text(name), read.text(label));
  return sample;
}

Finding finding_of(const Json& json, const Reader& read) {
  return {read.text(json, "reason"),
          read.text(json, "severity"),
          read.text(json, "action"),
          read.text(json, "text"),
          read.text(json, "alert"),
          read.text(json, "runbook"),
          Reader::number(json, "since_seconds")};
}

}  // namespace

Result<std::vector<Sample>> parse_series(std::string_view json, Charset charset) {
  const Result<Json> root = document_with(json, "series");
  if (!root) return root.error();
  const Reader read(charset);
  std::vector<Sample> samples;
  for (const Json& each : Reader::field(*root, "series")) {
    if (auto sample = sample_of(each, read)) samples.push_back(*std::move(sample));
  }
  return samples;
}

Result<Health> parse_health(std::string_view json, Charset charset) {
  const Result<Json> root = document_with(json, "devices");
  if (!root) return root.error();
  const Reader read(charset);
  const auto finding = [&](const Json& each) { return finding_of(each, read); };
  const auto device = [&](const Json& each) {
    return DeviceHealth{read.text(each, "gpu"),
                        read.text(each, "uuid"),
                        read.text(each, "model"),
                        read.text(each, "pci_address"),
                        read.text(each, "state"),
                        Reader::number(each, "since_seconds"),
                        Reader::list(each, "reasons", finding)};
  };
  return Health{Reader::list(*root, "devices", device), Reader::list(*root, "machine", finding)};
}

}  // namespace gpumeter::top
