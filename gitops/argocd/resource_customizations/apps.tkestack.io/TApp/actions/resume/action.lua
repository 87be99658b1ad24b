-- Lets updates go on.
if obj.spec.updateStrategy ~= nil then
  obj.spec.updateStrategy.paused = nil
end
return obj
