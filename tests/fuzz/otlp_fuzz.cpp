// Answers of a receiver of OTLP, and the text of its variables.
#include "exporter/otlp/part.hpp"
#include "tests/fuzz/fuzz.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace gpumeter;
  const std::string_view text = fuzz::text_of(data, size);
  for (const bool is_accepted : {false, true}) {
    const Result<otlp::Answer> answer = otlp::decode_answer(text, is_accepted);
    fuzz::expect(!answer || answer->message.size() <= size);
  }
  const auto variable = [text](const std::string& name) {
    return name.ends_with("ENDPOINT") ? "http://c" : std::string(text);
  };
  for (const auto& [name, value] : otlp::resource_of("host", "", variable))
    fuzz::expect(!name.empty() && !value.empty());
  static_cast<void>(otlp::with_variables({}, variable));
  return 0;
}
