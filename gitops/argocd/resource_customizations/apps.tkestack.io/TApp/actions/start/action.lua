-- Starts one instance that was killed.
local given = actionParams["instance"] or ""
local key = tostring(tonumber(given))
if obj.spec.statuses == nil or obj.spec.statuses[key] == nil then
  error("instance \"" .. given .. "\" is not killed: give the number of one that is", 0)
end
obj.spec.statuses[key] = nil
return obj
