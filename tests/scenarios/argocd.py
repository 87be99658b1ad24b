"""The shipped Lua scripts for Argo CD."""

from tapp.words.vocabulary import GROUP, KIND
from tests.scenarios.life import ROOT

ARGO_CD = ROOT / "gitops" / "argocd"
TAPP = ARGO_CD / "resource_customizations" / GROUP / KIND
HEALTH = (TAPP / "health.lua").read_text()
