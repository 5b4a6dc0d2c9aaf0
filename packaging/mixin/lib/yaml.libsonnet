// Prometheus' rule files as YAML for readers: the keys in the usual order, expressions as written, long texts folded.
local keys = ['record', 'alert', 'expr', 'for', 'labels', 'annotations'];
local width = 120;

local wrapped(text, indent) =
  local add(lines, word) =
    local last = lines[std.length(lines) - 1];
    if last == '' then [word]
    else if std.length(indent) + std.length(last) + 1 + std.length(word) > width then lines + [word]
    else lines[:std.length(lines) - 1] + [last + ' ' + word];
  std.join('', ['\n' + indent + line for line in std.foldl(add, std.split(text, ' '), [''])]);

local block(text, indent) =
  std.join('', ['\n' + indent + line for line in std.split(std.rstripChars(text, '\n'), '\n')]);

local quoted(text) = "'%s'" % std.strReplace(text, "'", "''");

local value = {
  record(text):: ' ' + text,
  alert(text):: ' ' + text,
  'for'(text):: ' ' + text,
  expr(text):: ' |' + block(text, '          '),
  labels(object):: ' {%s}' % std.join(', ', ['%s: %s' % [key, std.escapeStringJson(object[key])] for key in std.objectFields(object)]),
  annotations(object):: std.join('\n          ', [
    '',
    'summary: ' + quoted(object.summary),
    'description: >-' + wrapped(object.description, '            '),
    'runbook_url: ' + quoted(object.runbook_url),
  ]),
};

local rule(object) =
  local lines = [key + ':' + value[key](object[key]) for key in keys if std.objectHas(object, key)];
  '      - ' + std.join('\n        ', lines) + '\n';

local group(object) =
  '  - name: %s\n    rules:\n%s\n' % [object.name, std.join('\n', [rule(item) for item in object.rules])];

{
  // comment: lines for the head of the file.
  rules(comment, groups)::
    std.join('', ['# %s\n' % line for line in std.split(std.rstripChars(comment, '\n'), '\n')])
    + 'groups:\n' + std.join('\n', [group(item) for item in groups]),
}
