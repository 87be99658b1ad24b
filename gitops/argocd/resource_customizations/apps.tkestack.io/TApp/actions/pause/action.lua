-- Pauses the updates of a TApp; all other functions continue.
obj.spec.updateStrategy = obj.spec.updateStrategy or {}
obj.spec.updateStrategy.paused = true
return obj
