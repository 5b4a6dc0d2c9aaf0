// What gpumeter-profiler reads: Kineto's datagrams, the request of `gpumeter profile`, the status of a
// process, the kernel's list of Unix sockets, the answer of PyTorch's debug server, and its own file of the
// budget. A message is understood only if its sizes agree; a request that is understood says the same after
// it was written again; a path that is accepted is one line of Kineto's configuration.
#include <algorithm>
#include <cstring>
#include <string>

#include "base/proc.hpp"
#include "programs/profiler/asking.hpp"
#include "programs/profiler/desk.hpp"
#include "programs/profiler/kineto.hpp"
#include "programs/profiler/search.hpp"
#include "programs/profiler/traces.hpp"
#include "tests/fuzz/fuzz.hpp"

namespace gpumeter {
namespace {

using namespace profiles;

void check_datagram(std::string_view bytes) {
  const auto message = kineto::parse(bytes);
  if (!message) return;
  std::uint64_t size = 0;
  std::memcpy(&size, bytes.data(), sizeof size);
  fuzz::expect(size + kineto::kHeaderBytes == bytes.size());
  KinetoDoor door;
  fuzz::expect(door.hear({1, 0, "a"}, *message, Nanoseconds(0), Nanoseconds(0)).empty());
  fuzz::expect(static_cast<bool>(door.ask(1, {"/tmp/x.json", {}}, Nanoseconds(0))));
  fuzz::expect(door.hear({1, 0, "a"}, *message, Nanoseconds(0), Nanoseconds(0)).empty() != message->is_free);
}

void check_request(std::string_view text) {
  const Result<Asked> asked = parse_asked(text);
  if (!asked) return;
  const Result<Asked> again = parse_asked(text_of(*asked));
  fuzz::expect(bool(again) && again->run == (asked->pid ? "" : asked->run) && again->pid == asked->pid);
  fuzz::expect(again->extent.steps == asked->extent.steps && again->folder == asked->folder);
  const Result<std::string> path = path_in(asked->folder, asked->run);
  if (!path) return;
  const std::string lines = kineto::text_of({*path, asked->extent}, Nanoseconds(0));
  fuzz::expect(std::ranges::count(lines, '=') == std::ranges::count(lines, '\n'));
  fuzz::expect(lines.find('#') == std::string::npos);
}

void check_budget(std::string_view section) {
  static const SystemClock clock;
  BudgetBook book({}, clock);
  if (!book.load(section, false)) return;
  BudgetBook again({}, clock);
  fuzz::expect(bool(again.load(book.save(), true)) && again.save() == book.save());
}

}  // namespace
}  // namespace gpumeter

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace gpumeter;
  const std::string_view bytes = fuzz::text_of(data, size);
  check_datagram(bytes);
  check_request(bytes);
  check_budget(bytes);
  for (const int number : numbers_in_namespaces(bytes)) fuzz::expect(number > 0);
  for (const UnixListener& each : unix_listeners_in(bytes)) {
    fuzz::expect(each.path.starts_with('/') && bytes.find(each.path) != std::string_view::npos);
  }
  const AnswerHead head = parse_answer_head(bytes);
  fuzz::expect(!head.length || bytes.find(':') != std::string_view::npos);
  return 0;
}
