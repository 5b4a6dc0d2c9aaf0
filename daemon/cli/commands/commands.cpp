#include "daemon/cli/commands/commands.hpp"

#include <CLI/CLI.hpp>

#include "base/options.hpp"
#include "base/text.hpp"
#include "daemon/cli/commands/words.hpp"

namespace gpumeter {

/// A command of gpumeter: its words, and what they mean.
class Command {
 public:
  /// The flags of the configuration may be before or after the command's name.
  Command(CLI::App& app, const char* name, const char* help);
  virtual ~Command() = default;
  Command(const Command&) = delete;
  Command& operator=(const Command&) = delete;

  bool is_given() const { return words_.parsed(); }
  /// Completes the options, whose plain values are there already.
  virtual std::optional<Exit> take(Options& options) const = 0;

 protected:
  /// A flag with one value. The next argument must be a flag; anything else is an error.
  CLI::Option* add(const char* name, std::string& value, const char* type, const char* help) {
    return words_.add_option(name, value, help)->type_name(type)->expected(1)->allow_extra_args(false);
  }

  CLI::App& words_;
};

namespace {

class Forget final : public Command {
 public:
  Forget(CLI::App& app, Options& options)
      : Command(app, "forget", "Forget a missing GPU, so that its gpu_up 0 ends (forget UUID)") {
    words_.add_option("UUID", options.argument, "The GPU, as in the label uuid")->expected(1);
  }
  std::optional<Exit> take(Options& options) const override {
    if (options.argument.empty()) return usage_error("forget requires the uuid of a device");
    options.action = Action::forget;
    return std::nullopt;
  }
};

class Allocate final : public Command {
 public:
  Allocate(CLI::App& app, Options& options)
      : Command(app, "allocate", "Record by hand who was given a GPU (allocate --help)") {
    AllocateOptions& wanted = options.allocate;
    words_.add_option("VERB", verb_, "set, clear, or list (the default)")
        ->check(one_of({"set", "clear", "list"}));
    words_.add_option("WORKLOAD", wanted.workload.name, "Name of the workload");
    words_
        .add_option("--gpu", wanted.gpus,
                    "Its GPU: index, uuid or PCI address; repeatable, or a list with commas")
        ->type_name("GPU")
        ->expected(1)
        ->allow_extra_args(false)
        ->delimiter(',')
        ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
    words_.add_option("--user", wanted.user, "Who is responsible for it")->type_name("USER");
    words_.add_option("--kind", kind_, "Label kind (default other)")
        ->type_name("KIND")
        ->check(one_of(kinds()));
  }

  std::optional<Exit> take(Options& options) const override {
    using Verb = AllocateOptions::Verb;
    options.action = Action::allocate;
    AllocateOptions& wanted = options.allocate;
    if (verb_ == "set") wanted.verb = Verb::set;
    if (verb_ == "clear") wanted.verb = Verb::clear;
    wanted.workload.kind = cgroup::kKindNames.find(kind_).value_or(cgroup::Kind::other);
    if (wanted.verb != Verb::list && wanted.workload.name.empty()) {
      return usage_error("allocate " + verb_ + " requires the name of a workload");
    }
    if (wanted.verb == Verb::set && wanted.gpus.empty()) return usage_error("allocate set requires --gpu");
    return std::nullopt;
  }

 private:
  static std::vector<std::string> kinds() {
    std::vector<std::string> names;
    for (const auto& [kind, name] : cgroup::kKindNames) {
      if (kind != cgroup::Kind::unattributed) names.emplace_back(name);
    }
    return names;
  }

  std::string verb_, kind_;
};

class Check final : public Command {
 public:
  Check(CLI::App& app, Options& options)
      : Command(app, "check", "Report failed and degraded GPUs as monitoring plugins do (check --help)") {
    CheckOptions& check = options.check;
    words_.add_flag("--json", check.json, "Print the answer of /api/v1/health");
    words_.add_option("--gpu", gpu_, "Check this GPU only, by its index")->type_name("N");
    words_.add_option("--fail-on", fail_on_, "failed: ignore degraded GPUs; degraded: exit 2 for them too")
        ->type_name("STATE")
        ->check(one_of({"failed", "degraded"}));
    words_.add_option("--url", check.url, "Ask this daemon (default: the first web.listen)")
        ->type_name("URL");
    words_
        .add_option("--ca-file", check.ca_file,
                    "Trust these authorities (PEM) for https (default: the system's)")
        ->type_name("FILE");
    words_
        .add_option("--login-file", check.login_file,
                    "A user for the daemon: USER:PASSWORD in the first line")
        ->type_name("FILE");
  }

  std::optional<Exit> take(Options& options) const override {
    options.action = Action::check;
    if (fail_on_ == "failed") options.check.fail_on = FailOn::failed;
    if (fail_on_ == "degraded") options.check.fail_on = FailOn::degraded;
    if (gpu_.empty()) return std::nullopt;
    options.check.gpu = parse_number<unsigned>(gpu_);
    if (options.check.gpu) return std::nullopt;
    return usage_error("--gpu must be the index of a GPU, not " + gpumeter::quoted(options::printable(gpu_)));
  }

 private:
  std::string gpu_, fail_on_;
};

/// A program of its own, which starts before the command line is read (companion.hpp).
class Companion final : public Command {
 public:
  using Command::Command;
  std::optional<Exit> take(Options&) const override {
    return usage_error(words_.get_name() + " must be the first argument");
  }
};

}  // namespace

Command::Command(CLI::App& app, const char* name, const char* help)
    : words_(*app.add_subcommand(name, help)->group("Commands")->fallthrough()->allow_extras()) {
  words_.formatter(app.get_formatter());
}

Commands::Commands(CLI::App& app, Options& options)
    : all_{std::make_unique<Forget>(app, options),
           std::make_unique<Allocate>(app, options),
           std::make_unique<Companion>(app, "profile",
                                       "Take a profile (trace) of a running job (profile --help)"),
           std::make_unique<Check>(app, options),
           std::make_unique<Companion>(app, "import",
                                       "Send results of other benchmarks to the daemon (import --help)"),
           std::make_unique<Companion>(app, "top", "Show GPUs and jobs in the terminal (top --help)")} {
  app.require_subcommand(0, 1);
}

Commands::~Commands() = default;

std::optional<Exit> Commands::take(Options& options) const {
  for (const auto& command : all_) {
    if (command->is_given()) return command->take(options);
  }
  return std::nullopt;
}

}  // namespace gpumeter
