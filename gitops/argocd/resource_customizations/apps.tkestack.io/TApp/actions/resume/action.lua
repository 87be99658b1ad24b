-- Lets a paused TApp continue its updates.
local strategy = obj.spec.updateStrategy
if strategy ~= nil and strategy.paused ~= nil then
  strategy.paused = nil
  -- Before 3.0.13 and 3.1.1, Argo CD ignores an action that leaves an object empty.
  if next(strategy) == nil then
    strategy.paused = false
  end
end
return obj
