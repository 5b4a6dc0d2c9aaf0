// Prometheus' rule files as YAML for readers: the keys in the usual order, expressions as written, long texts folded.
local strings = import 'strings.libsonnet';
local keys = ['record', 'alert', 'expr', 'for', 'labels', 'annotations'];
local width = 120;

local wrapped(text, indent) =
  // The lines that are full, and the last.
  local add(state, word) =
    local full = state[0], last = state[1];
    if last == '' then [full, word]
    else if std.length(indent) + std.length(last) + 1 + std.length(word) > width then [full + last + '\n' + indent, word]
    else [full, last + ' ' + word];
  '\n' + indent + std.join('', std.foldl(add, std.split(text, ' '), ['', '']));

local block(text, indent) =
  std.join('', ['\n' + indent + line for line in strings.lines(text)]);

local quoted(text) = "'" + std.strReplace(text, "'", "''") + "'";

local value = {
  record(text):: ' ' + text,
  alert(text):: ' ' + text,
  'for'(text):: ' ' + text,
  expr(text):: ' |' + block(text, '          '),
  labels(object):: ' {' + std.join(', ', [key + ': ' + strings.json(object[key]) for key in std.objectFields(object)]) + '}',
  annotations(object):: std.join('\n          ', [
    '',
    'summary: ' + quoted(object.summary),
    'description: >-' + wrapped(object.description, '            '),
    'runbook_url: ' + quoted(object.runbook_url),
  ]),
};

local rule(object) =
  local parts = [key + ':' + value[key](object[key]) for key in keys if std.objectHas(object, key)];
  '      - ' + std.join('\n        ', parts) + '\n';

local group(object) =
  '  - name: ' + object.name + '\n    rules:\n' + std.join('\n', [rule(item) for item in object.rules]) + '\n';

{
  // comment: lines for the head of the file.
  rules(comment, groups)::
    std.join('', ['# ' + line + '\n' for line in strings.lines(comment)])
    + 'groups:\n' + std.join('\n', [group(item) for item in groups]),
}
