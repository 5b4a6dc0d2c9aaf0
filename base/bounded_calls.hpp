#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.hpp"
#include "base/mutex.hpp"

namespace gpumeter {

/// The calls that were left behind because they hang, by key. The daemon owns one ledger for all its
/// collectors. A collector that is opened again therefore makes no second call where an earlier one still
/// hangs. Any thread.
class HangingCalls {
 public:
  void add(const std::string& key) GPUMETER_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    keys_.insert(key);
  }
  void remove(const std::string& key) GPUMETER_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    keys_.erase(key);
  }
  bool contains(const std::string& key) const GPUMETER_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    return keys_.contains(key);
  }

 private:
  mutable Mutex mutex_;
  std::set<std::string> keys_ GPUMETER_GUARDED_BY(mutex_);
};

/// Makes calls that may hang, one for each of several keys (a card, a PCI function), on a separate thread. A
/// call that exceeds `at_most` is left behind with its thread, and another thread makes the calls of the
/// remaining keys. A key is not called again until its hanging call has returned. A key therefore holds one
/// thread at most, also for the next object with the same `hanging` and `scope`. A thread that is left behind
/// touches only data that its call owns.
///
/// Used by one thread, which waits for at most `at_most` a key.
class BoundedCalls {
 public:
  /// `thread` is the name of the threads. `clock` must outlive this object. `scope` separates this object's
  /// keys from other keys in `hanging`. If `hanging` is null, the object has its own ledger.
  BoundedCalls(std::string thread, Nanoseconds at_most, const Clock& clock,
               std::shared_ptr<HangingCalls> hanging = nullptr, const std::string& scope = "")
      : thread_(std::move(thread)),
        at_most_(at_most),
        clock_(clock),
        progress_(std::make_shared<Progress>(hanging ? std::move(hanging) : std::make_shared<HangingCalls>(),
                                             thread_ + "/" + scope + "/")) {}

  template <class Value>
  struct Answers {
    std::map<std::string, Value> values;
    std::vector<std::string> silent;  ///< keys without an answer, in the order of the calls
    bool has_asked = true;  ///< false: the kernel refused a thread, and at least one key was not called
  };

  /// Returns the answer for each key. `call` is copied and runs on another thread. It must own all it touches
  /// (by value or shared_ptr). A call that throws has no answer.
  template <class Value>
  Answers<Value> ask(const std::vector<std::string>& keys, std::function<Value(const std::string&)> call) {
    const auto answered = std::make_shared<Answered<Value>>();
    Answers<Value> answers;
    answers.has_asked = run(keys, [answered, call = std::move(call)](const std::string& key) {
      Value value = call(key);
      MutexLock lock(answered->mutex);
      answered->values.insert_or_assign(key, std::move(value));
    });
    {
      MutexLock lock(answered->mutex);  // a call that is late may still add its answer
      answers.values = std::exchange(answered->values, {});
    }
    for (const std::string& key : keys) {
      if (!answers.values.contains(key)) answers.silent.push_back(key);
    }
    return answers;
  }

 private:
  using Call = std::function<void(const std::string&)>;
  using Keys = std::shared_ptr<const std::vector<std::string>>;
  template <class Value>
  struct Answered {
    Mutex mutex;
    std::map<std::string, Value> values GPUMETER_GUARDED_BY(mutex);
  };
  /// Shared with the threads. A walk is one thread's pass over the keys; only the latest walk counts.
  struct Progress {
    Progress(std::shared_ptr<HangingCalls> calls, std::string before)
        : hanging(std::move(calls)), scope(std::move(before)) {}

    const std::shared_ptr<HangingCalls> hanging;  ///< calls that were left behind, as `scope` and key
    const std::string scope;
    Mutex mutex;
    Condition changed;
    std::uint64_t walk GPUMETER_GUARDED_BY(mutex) = 0;
    std::size_t at GPUMETER_GUARDED_BY(mutex) = 0;  ///< index of the key being called
  };

  bool run(const std::vector<std::string>& keys, const Call& call);
  bool start_walk(const Keys& keys, std::size_t from, const Call& call);
  std::optional<std::size_t> wait_for_silence(const std::vector<std::string>& keys);
  static void walk(Progress& progress, std::uint64_t number, const std::vector<std::string>& keys,
                   std::size_t from, const Call& call);

  const std::string thread_;
  const Nanoseconds at_most_;
  const Clock& clock_;
  const std::shared_ptr<Progress> progress_;
};

}  // namespace gpumeter
