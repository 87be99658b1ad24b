"""Finds the Lua scripts that this repository ships for Argo CD, and reads the one for health."""

from tapp.words.vocabulary import GROUP, KIND
from tests.scenarios.life import ROOT

ARGO_CD = ROOT / "gitops" / "argocd"
TAPP = ARGO_CD / "resource_customizations" / GROUP / KIND
HEALTH = (TAPP / "health.lua").read_text()
