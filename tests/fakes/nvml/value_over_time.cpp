#include "tests/fakes/nvml/value_over_time.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <utility>

namespace gpumeter::fake_nvml {
namespace {

Value of_number(Number number) { return Value{.number = number, .is_number = true}; }

struct At {
  double seconds;

  Value operator()(const Value& value) const { return value; }
  Value operator()(const ValueOverTime::Rate& rate) const {
    const Number total = rate.from + rate.per_second * static_cast<Number>(seconds);
    return of_number(rate.bits == 0 ? total : std::fmod(total, std::exp2(static_cast<Number>(rate.bits))));
  }
  Value operator()(const std::vector<ValueOverTime::Step>& steps) const {
    auto after =
        std::find_if(steps.begin() + 1, steps.end(), [&](const auto& s) { return s.since > seconds; });
    return std::prev(after)->value.at(seconds);
  }
  Value operator()(const ValueOverTime::Square& wave) const {
    const Number in_period = std::fmod(static_cast<Number>(seconds), wave.period);
    return of_number(in_period < wave.duty * wave.period ? wave.high : wave.low);
  }
  Value operator()(const ValueOverTime::Integral& integral) const {
    return of_number(integral.from + integral.scale * integral.of->integral(seconds));
  }
};

struct IntegralTo {
  double seconds;

  Number operator()(const Value& value) const {
    return std::isfinite(value.number) ? value.number * static_cast<Number>(seconds) : 0;
  }
  Number operator()(const ValueOverTime::Rate& rate) const {
    const auto t = static_cast<Number>(seconds);
    if (rate.bits != 0) throw std::runtime_error("an integral of a counter that wraps is not made");
    return rate.from * t + rate.per_second * t * t / 2;
  }
  Number operator()(const std::vector<ValueOverTime::Step>& steps) const {
    Number sum = 0;
    for (std::size_t i = 0; i < steps.size(); ++i) {
      const double begin = i == 0 ? 0 : steps[i].since;
      const double end = i + 1 < steps.size() ? std::min(steps[i + 1].since, seconds) : seconds;
      if (end > begin) sum += steps[i].value.integral(end) - steps[i].value.integral(begin);
    }
    return sum;
  }
  Number operator()(const ValueOverTime::Square& wave) const {
    const auto t = static_cast<Number>(seconds);
    const Number periods = std::floor(t / wave.period);
    const Number rest = t - periods * wave.period;
    const Number high_in_rest = std::min(rest, wave.duty * wave.period);
    return periods * wave.period * (wave.duty * wave.high + (1 - wave.duty) * wave.low) +
           high_in_rest * wave.high + (rest - high_in_rest) * wave.low;
  }
  Number operator()(const ValueOverTime::Integral&) const {
    throw std::runtime_error("an integral of an integral is not made");
  }
};

}  // namespace

ValueOverTime::ValueOverTime(Form form) : form_(std::move(form)) {}

Value ValueOverTime::at(double seconds) const { return std::visit(At{seconds}, form_); }

Number ValueOverTime::integral(double seconds) const { return std::visit(IntegralTo{seconds}, form_); }

}  // namespace gpumeter::fake_nvml
