-- Lets updates go on.
local strategy = obj.spec.updateStrategy
if strategy ~= nil and strategy.paused ~= nil then
  strategy.paused = nil
  -- Before 3.0.13 and 3.1.1, Argo CD takes an object that is left empty for one that nobody has changed.
  if next(strategy) == nil then
    strategy.paused = false
  end
end
return obj
