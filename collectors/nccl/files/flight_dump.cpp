#include "collectors/nccl/files/flight_dump.hpp"

#include <array>
#include <map>
#include <utility>

#include "base/json/reader.hpp"
#include "base/text.hpp"
#include "collectors/nccl/files/pickle.hpp"

namespace gpumeter::nccl {
namespace {

constexpr std::size_t kLongestName = 64;
constexpr std::string_view kNoDescription = "undefined";  // torch's default

struct State {
  std::string_view key;
  std::optional<std::int64_t> FlightDump::Group::*member;
};
constexpr State kStates[] = {{"last_enqueued_collective", &FlightDump::Group::enqueued},
                             {"last_started_collective", &FlightDump::Group::started},
                             {"last_completed_collective", &FlightDump::Group::completed}};

std::string name_of(std::string_view text) {
  return readable(first_bytes(text, kLongestName), [](char32_t code) { return code < U' '; });
}

/// The groups by their number in the process, while a document is read.
class Groups {
 public:
  /// -1 is torch's word for none.
  void note(std::int64_t id, std::string_view key, std::int64_t sequence) {
    if (sequence < 0 || !has_room(id)) return;
    for (const State& state : kStates) {
      if (state.key == key) by_id_[id].*state.member = sequence;
    }
  }
  void name(std::int64_t id, std::string_view name, std::string_view description) {
    if (!has_room(id) || !by_id_[id].name.empty()) return;
    by_id_[id].name = name_of(name);
    by_id_[id].description = description == kNoDescription ? "" : name_of(description);
  }

  Result<FlightDump> take() {
    FlightDump dump;
    for (auto& [id, group] : by_id_) {
      const bool has_state = group.enqueued || group.started || group.completed;
      if (has_state && !group.name.empty()) dump.groups.push_back(std::move(group));
    }
    if (dump.groups.empty()) return Error("the dump has no process group with a name and a last operation");
    return dump;
  }

 private:
  bool has_room(std::int64_t id) const { return by_id_.contains(id) || by_id_.size() < kMostGroups; }

  std::map<std::int64_t, FlightDump::Group> by_id_;
};

void take_entry(const Pickle& pickle, Pickle::Ref entry, Groups& groups) {
  const auto id = pickle.find(entry, "pg_id");
  const auto names = pickle.find(entry, "process_group");
  const std::optional<std::int64_t> number = id ? pickle.integer(*id) : std::nullopt;
  if (!number || !names) return;
  const std::vector<Pickle::Ref> pair = pickle.members(*names, 2);
  if (pair.size() != 2) return;
  groups.name(*number, pickle.text(pair[0]).value_or(""), pickle.text(pair[1]).value_or(""));
}

Result<FlightDump> from_pickle(std::string_view bytes) {
  const Result<Pickle> pickle = Pickle::parse(bytes);
  if (!pickle) return pickle.error();
  Groups groups;
  const auto status = pickle->find(pickle->root(), "pg_status");
  if (!status) return Error("the dump has no pg_status, as those of PyTorch before 2.4");
  const std::vector<Pickle::Ref> items = pickle->members(*status, 2 * kMostGroups);
  for (std::size_t at = 0; at + 1 < items.size(); at += 2) {
    const auto id = parse_number<std::int64_t>(pickle->text(items[at]).value_or(""));
    for (const State& state : kStates) {
      const auto value = pickle->find(items[at + 1], state.key);
      const auto sequence = value ? pickle->integer(*value) : std::nullopt;
      if (id && sequence) groups.note(*id, state.key, *sequence);
    }
  }
  const auto entries = pickle->find(pickle->root(), "entries");
  if (!entries) return groups.take();
  for (const Pickle::Ref entry : pickle->members(*entries, kMostEntries)) take_entry(*pickle, entry, groups);
  return groups.take();
}

/// PyTorch prints the numbers of pg_status as texts. Programs that convert a pickle print numbers.
std::int64_t integer(JsonReader& in) {
  JsonReader other = in;
  const auto number = other.number<std::int64_t>();
  if (other.failed()) return parse_number<std::int64_t>(in.string()).value_or(-1);
  in = other;
  return number;
}

void read_status(JsonReader& in, Groups& groups) {
  in.begin_object();
  for (std::string_view id; in.next_key(id);) {
    const std::int64_t number = parse_number<std::int64_t>(id).value_or(-1);
    in.begin_object();
    for (std::string_view key; in.next_key(key);) {
      if (number < 0) {
        in.skip();
      } else {
        groups.note(number, key, integer(in));
      }
    }
  }
}

/// ["0","default_pg"]: the name and the description.
std::pair<std::string_view, std::string_view> read_names(JsonReader& in) {
  std::array<std::string_view, 2> names;
  in.begin_array();
  for (std::size_t at = 0; in.next_element(); ++at) {
    if (at >= names.size()) {
      in.skip();
    } else {
      names.at(at) = in.string();
    }
  }
  return {names[0], names[1]};
}

void read_entry(JsonReader& in, Groups& groups) {
  std::int64_t id = -1;
  std::pair<std::string_view, std::string_view> names;
  in.begin_object();
  for (std::string_view key; in.next_key(key);) {
    if (key == "pg_id") {
      id = in.number<std::int64_t>();
    } else if (key == "process_group") {
      names = read_names(in);
    } else {
      in.skip();
    }
  }
  if (id >= 0) groups.name(id, names.first, names.second);
}

Result<FlightDump> from_json(std::string_view text) {
  JsonReader in(text);
  Groups groups;
  bool has_status = false;
  in.begin_object();
  for (std::string_view key; in.next_key(key);) {
    if (key == "pg_status") {
      has_status = true;
      read_status(in, groups);
    } else if (key == "entries") {
      in.begin_array();
      while (in.next_element()) read_entry(in, groups);
    } else {
      in.skip();
    }
  }
  if (in.failed() || !in.is_complete()) return Error("the dump is no complete JSON document");
  if (!has_status) return Error("the dump has no pg_status, as those of PyTorch before 2.4");
  return groups.take();
}

}  // namespace

Result<FlightDump> parse_flight_dump(std::string_view bytes) {
  return bytes.starts_with('{') ? from_json(bytes) : from_pickle(bytes);
}

}  // namespace gpumeter::nccl
