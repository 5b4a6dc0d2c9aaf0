#include "collectors/nccl/files/pickle.hpp"

#include "collectors/nccl/files/pickle_machine.hpp"

namespace gpumeter::nccl {

Result<Pickle> Pickle::parse(std::string_view bytes) { return PickleMachine(bytes).run(); }

std::optional<std::int64_t> Pickle::integer(Ref value) const noexcept {
  const Value& it = values_[value];
  if (it.kind != Kind::integer) return std::nullopt;
  return static_cast<std::int64_t>(it.bits);
}

std::optional<std::string_view> Pickle::text(Ref value) const noexcept {
  const Value& it = values_[value];
  if (it.kind != Kind::text) return std::nullopt;
  return bytes_.substr(it.bits, it.length);
}

std::vector<Pickle::Ref> Pickle::members(Ref container, std::size_t most) const {
  std::vector<Ref> found;
  const Value& it = values_[container];
  if (it.kind != Kind::list && it.kind != Kind::tuple && it.kind != Kind::dict) return found;
  const auto first = static_cast<std::uint32_t>(it.bits);
  for (std::uint32_t at = first; at != 0 && found.size() < most; at = members_[at].next) {
    found.push_back(members_[at].value);
  }
  return found;
}

// As in Python, the last of equal keys counts.
std::optional<Pickle::Ref> Pickle::find(Ref dict, std::string_view key) const {
  std::optional<Ref> found;
  if (kind(dict) != Kind::dict) return found;
  const std::vector<Ref> items = members(dict, 2 * kMostSought);
  for (std::size_t at = 0; at + 1 < items.size(); at += 2) {
    if (text(items[at]) == key) found = items[at + 1];
  }
  return found;
}

}  // namespace gpumeter::nccl
