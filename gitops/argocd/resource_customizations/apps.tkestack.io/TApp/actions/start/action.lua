-- Starts a killed instance.
local given = actionParams["instance"] or ""
local key = tostring(tonumber(given))
local statuses = obj.spec.statuses
if statuses == nil or statuses[key] == nil then
  error("instance \"" .. given .. "\" is not killed: give the number of one that is", 0)
end
statuses[key] = nil
-- Before 3.0.13 and 3.1.1, Argo CD ignores an action that leaves an object empty.
if next(statuses) == nil then
  obj.spec.statuses = nil
end
return obj
