#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace gpumeter::bundle {

/// Replaces what names a device, a machine or a person, the same by the same in every text. Texts are read
/// once from left to right, the longest first, so that no replacement is replaced again.
class Redaction {
 public:
  /// `words`: of a text whose words are no secrets, such as the documents. A name that is one of them is
  /// replaced only where a label, a key or a path says that it is a name.
  explicit Redaction(std::string_view words);

  /// A uuid or a serial number. Its replacement has the same form: GPU-00000000-0000-0000-0000-000000000001.
  /// Values that tell nothing ("", "0", "N/A") and addresses of the PCI bus stay.
  void add_identity(std::string_view value);
  /// The number of an identity that other files have in hexadecimal, such as the compute driver's unique_id.
  void add_number(std::uint64_t value);
  /// A user's or a host's name becomes user1, host1 and so on. Numbers, root and "localhost" stay.
  void add_user(std::string_view name) { add_name(name, "user", users_); }
  void add_host(std::string_view name) { add_name(name, "host", hosts_); }
  /// A value that becomes REDACTED.
  void add_secret(std::string_view value);
  /// Adds the identities and names in the labels of a page of metrics. The values of labels env_*, which jobs
  /// choose, become value1 and so on in these labels only.
  void add_labels_of(std::string_view page);

  /// Of files of devices, which have no names of people: replaces identities alone.
  std::string identities_in(std::string_view text) const { return replaced(text, false); }
  std::string all_in(std::string_view text) const { return replaced(text, true); }

  std::size_t identities() const noexcept { return identities_; }
  std::size_t names() const noexcept { return users_ + hosts_ + variables_.size(); }

 private:
  enum class Where : std::uint8_t {
    anywhere,  ///< long enough to be nothing else
    word,      ///< not within a longer word
    place,     ///< only behind one of kPlaces
  };
  struct Secret {
    std::string value;
    std::string replacement;
    Where where;
    bool is_name;
  };

  void add(std::string_view value, std::string replacement, Where where, bool is_name);
  void add_name(std::string_view name, std::string_view kind, std::size_t& count);
  std::string replaced(std::string_view text, bool with_names) const;
  /// What begins at `at`: its length and its replacement; 0: nothing.
  std::pair<std::size_t, std::string_view> match_at(std::string_view text, std::size_t at,
                                                    bool with_names) const;
  const Secret* secret_at(std::string_view text, std::size_t at, bool with_names) const;

  std::set<std::string, std::less<>> words_;
  std::map<std::string, std::string, std::less<>> known_;      ///< value in lower case -> replacement
  std::map<std::string, std::string, std::less<>> variables_;  ///< value -> replacement
  std::array<std::vector<Secret>, 256> by_first_;  ///< by the first byte in lower case, the longest first
  std::size_t identities_ = 0;
  std::size_t users_ = 0;
  std::size_t hosts_ = 0;
};

}  // namespace gpumeter::bundle
