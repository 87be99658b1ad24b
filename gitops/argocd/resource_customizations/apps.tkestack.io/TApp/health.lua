-- The health of a TApp, which Argo CD shows and its sync waves wait for.
local health = {status = "Progressing", message = "waiting for the first status"}
if obj.metadata.deletionTimestamp ~= nil then
  health.message = "being deleted"
  return health
end
if obj.status == nil or obj.status.conditions == nil then
  return health
end
if obj.status.observedGeneration ~= obj.metadata.generation then
  health.message = "waiting until the newest spec has been seen"
  return health
end
local seen = {}
for _, condition in ipairs(obj.status.conditions) do
  seen[condition.type] = condition
end
if seen.Stalled ~= nil and seen.Stalled.status == "True" then
  health.status, health.message = "Degraded", seen.Stalled.message
elseif seen.Ready ~= nil and seen.Ready.status == "True" then
  health.status, health.message = "Healthy", seen.Ready.message
elseif seen.Ready ~= nil then
  if seen.Ready.reason == "Paused" then
    health.status = "Suspended"
  end
  health.message = seen.Ready.message
end
return health
