-- The actions of a TApp; an action without effect is disabled.
local killed = false
for _, status in pairs(obj.spec.statuses or {}) do
  killed = killed or status == "Killed"
end
local paused = obj.spec.updateStrategy ~= nil and obj.spec.updateStrategy.paused == true

local actions = {}
actions["kill"] = {
  ["displayName"] = "Kill an instance",
  ["iconClass"] = "fa fa-fw fa-stop",
  ["disabled"] = (obj.spec.replicas or 1) == 0,
  ["params"] = {{["name"] = "instance"}},
}
actions["start"] = {
  ["displayName"] = "Start an instance",
  ["iconClass"] = "fa fa-fw fa-play",
  ["disabled"] = not killed,
  ["params"] = {{["name"] = "instance"}},
}
actions["pause"] = {
  ["displayName"] = "Pause updates",
  ["iconClass"] = "fa fa-fw fa-pause",
  ["disabled"] = paused,
}
actions["resume"] = {
  ["displayName"] = "Resume updates",
  ["iconClass"] = "fa fa-fw fa-forward",
  ["disabled"] = not paused,
}
actions["restart"] = {
  ["displayName"] = "Restart all instances",
  ["iconClass"] = "fa fa-fw fa-redo",
}
return actions
