#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <initializer_list>
#include <iterator>
#include <span>
#include <tuple>
#include <type_traits>
#include <vector>

#include "collectors/table/row.hpp"

/// Builds tables of rows (row.hpp) while compiling.
namespace gpumeter {

/// One row a value, for families that have the same shape many times.
template <class Value, std::size_t N, class MakeRow>
constexpr auto each(const Value (&values)[N], MakeRow make_row) {
  std::array<std::invoke_result_t<MakeRow, const Value&>, N> rows{};
  std::transform(std::begin(values), std::end(values), rows.begin(), make_row);
  return rows;
}

/// The same for rows that also need the value's place in the list.
template <class Value, std::size_t N, class MakeRow>
constexpr auto each_place(const Value (&values)[N], MakeRow make_row) {
  std::array<std::invoke_result_t<MakeRow, std::size_t, const Value&>, N> rows{};
  for (std::size_t place = 0; place < N; ++place) rows[place] = make_row(place, values[place]);
  return rows;
}

/// Tables one after the other, as one.
template <class First, class... Others>
constexpr auto joined(const First& first, const Others&... others) {
  constexpr auto kSize = (std::tuple_size_v<First> + ... + std::tuple_size_v<Others>);
  std::array<typename First::value_type, kSize> all{};
  auto next = std::copy(first.begin(), first.end(), all.begin());
  ((next = std::copy(others.begin(), others.end(), next)), ...);
  return all;
}

/// Tables as the docs show them. Built on request, since they are as large as the tables and only printed.
template <class Context>
std::vector<RowDoc> row_docs(std::initializer_list<std::span<const MetricRow<Context>>> tables) {
  std::vector<RowDoc> docs;
  for (const std::span<const MetricRow<Context>> rows : tables) {
    for (const MetricRow<Context>& row : rows) docs.push_back(doc_of(row));
  }
  return docs;
}

}  // namespace gpumeter
