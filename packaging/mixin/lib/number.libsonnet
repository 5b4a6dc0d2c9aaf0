// Numbers as people write them: jsonnet itself writes 0.98 with all its binary digits, and %g of 0 fails.
local text(value) = if value == std.floor(value) then '%d' % value else '%g' % value;
local map(value, convert) =
  if std.type(value) == 'number' then convert(value)
  else if std.type(value) == 'object' then std.mapWithKey(function(_, each) map(each, convert), value)
  else value;

{
  text:: text,
  // An object with all its numbers as text, and in `percent` all its numbers as percentages.
  texts(object):: map(object, text) + { percent:: map(object, function(value) text(std.floor(value * 1000 + 0.5) / 10) + '%') },
}
