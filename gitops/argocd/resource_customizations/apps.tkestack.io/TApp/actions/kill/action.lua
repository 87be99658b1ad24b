-- Kills an instance: its pod is deleted, and its claims stay.
local given = actionParams["instance"] or ""
local id = tonumber(given)
local replicas = obj.spec.replicas or 1
if id == nil or not (id >= 0 and id < replicas and id % 1 == 0) then
  error("there is no instance \"" .. given .. "\": give a number from 0 to " .. replicas - 1, 0)
end
obj.spec.statuses = obj.spec.statuses or {}
obj.spec.statuses[tostring(id)] = "Killed"
return obj
