// What the library has too, but in steps for each character: with std.rstripChars, std.findSubstr, std.escapeStringJson, slices ([:n])
// and % of long texts, jsonnet 0.18 took 15 s for the mixin. std.substr, std.split, std.strReplace and std.toString are built in.
{
  // A text block without the newline at its end.
  unended(text):: if std.endsWith(text, '\n') then std.substr(text, 0, std.length(text) - 1) else text,
  // The lines of a text block.
  lines(text):: std.split($.unended(text), '\n'),
  has(text, part):: std.strReplace(text, part, '') != text,
  // As a string in JSON.
  json(text):: local list = std.toString([text]); std.substr(list, 1, std.length(list) - 2),
}
