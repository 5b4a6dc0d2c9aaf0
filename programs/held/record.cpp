#include "programs/held/record.hpp"

#include <algorithm>
#include <iterator>

#include "base/text.hpp"

namespace gpumeter::held {
namespace {

void add_lines(std::string_view name, const std::set<std::string>& values, std::string& text) {
  for (const std::string& value : values) text.append(name).append("=").append(value).append("\n");
}

std::string_view name_of(Record::State state) {
  if (state == Record::State::pending) return "pending";
  return state == Record::State::asked ? "asked" : "failed";
}

Record::State state_of(std::string_view name) {
  for (const auto state : {Record::State::asked, Record::State::failed}) {
    if (name == name_of(state)) return state;
  }
  return Record::State::pending;
}

}  // namespace

std::string to_text(const std::string& job, const Record& record) {
  std::string text =
      "WORKLOAD=" + job + "\nKIND=slurm_job\nSTATE=" + std::string(name_of(record.state)) + "\n";
  text += "GROUP=" + std::to_string(record.group) + "\n";
  add_lines("ALLOWED", record.allowed, text);
  add_lines("DENIED", record.denied, text);
  add_lines("GPU", record.gpus, text);
  return text;
}

Record parse_record(std::string_view text) {
  Record record;
  while (!text.empty()) {
    std::string_view line = take_until(text, '\n');
    const std::string_view name = take_until(line, '=');
    if (name == "STATE") record.state = state_of(line);
    if (name == "GROUP") record.group = parse_number<std::uint64_t>(line).value_or(0);
    if (name == "ALLOWED") record.allowed.emplace(line);
    if (name == "DENIED") record.denied.emplace(line);
    if (name == "GPU") record.gpus.emplace(line);
  }
  return record;
}

void judge(Records& records, const std::set<std::string>& managed, const std::set<std::string>& named) {
  for (auto& [job, record] : records) {
    const std::set<std::string>& candidates = record.denied.empty() ? named : managed;
    record.gpus.clear();
    std::ranges::set_intersection(record.allowed, candidates, std::inserter(record.gpus, record.gpus.end()));
  }
}

}  // namespace gpumeter::held
