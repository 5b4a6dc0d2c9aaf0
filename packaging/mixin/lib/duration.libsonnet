// Durations of one number and one unit, such as '5m'.
local units = { s: 1, m: 60, h: 3600, d: 86400 };
local names = { s: 'second', m: 'minute', h: 'hour', d: 'day' };
local number(duration) = std.parseInt(duration[:std.length(duration) - 1]);
local unit(duration) = duration[std.length(duration) - 1];

{
  seconds(duration):: number(duration) * units[unit(duration)],
  words(duration):: '%d %s%s' % [number(duration), names[unit(duration)], if number(duration) == 1 then '' else 's'],
}
