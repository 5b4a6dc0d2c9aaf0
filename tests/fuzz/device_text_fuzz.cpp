// Texts of devices that are described by a table: devfreq's load, words in brackets, lists and tables;
// Neuron's power and neighbours, Gaudi's status; /proc/meminfo.
#include <cmath>
#include <string>

#include "collectors/files/text.hpp"
#include "collectors/neuron/collector.hpp"
#include "collectors/sources/host.hpp"
#include "tests/fuzz/fuzz.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace gpumeter;
  const std::string_view text = fuzz::text_of(data, size);
  if (const auto number = files::leading_number(text)) fuzz::expect(std::isfinite(*number));
  const std::string_view word = files::chosen_word(text);
  fuzz::expect(word.size() <= text.size());
  fuzz::expect(!files::is_one_of(text, "operational") || word.size() == 11);
  for (std::size_t i = 0; i < 6; ++i) {
    const std::string_view field = files::list_field(text, i);
    if (const auto number = files::leading_number(field)) fuzz::expect(std::isfinite(*number));
  }
  for (const char* const row : {"bin", "render", "queue"}) {
    const auto value = files::cell(text, row, "runtime");
    fuzz::expect(!value || (std::isfinite(*value) && text.find("runtime") != std::string_view::npos));
  }
  fuzz::expect(files::matches("*", text) == (text.find('/') == std::string_view::npos));
  fuzz::expect(files::label_value(text).size() == text.size());
  for (const int number : neuron::device_numbers(text)) fuzz::expect(number >= 0);
  if (const auto memory = parse_meminfo(text)) {
    fuzz::expect(memory->available >= 0 && memory->available <= memory->total);
  }
  return 0;
}
