-- Replaces the pods of all instances, within the budgets, as `kubectl rollout restart` does.
local os = require("os")
local now = os.date("!%Y-%m-%dT%XZ")

local function restart(template)
  if template.spec == nil then
    return
  end
  template.metadata = template.metadata or {}
  template.metadata.annotations = template.metadata.annotations or {}
  template.metadata.annotations["kubectl.kubernetes.io/restartedAt"] = now
end

restart(obj.spec.template or {})
for _, template in pairs(obj.spec.templatePool or {}) do
  restart(template)
end
return obj
