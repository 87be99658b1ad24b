#!/bin/sh
# `make kind`: creates a kind cluster, installs TApp with the chart, and applies an example. A second run
# updates the installation. The cluster has a separate kubeconfig, so the user's current context stays.
set -eu
cd "$(dirname "$0")/.."
export KUBECONFIG="${1:-$PWD/build/kind}/kubeconfig"
image="tapp-hooks:$(sed -n 's/^VERSION.*"\(.*\)"/\1/p' hooks/version.py)"
for tool in docker kind kubectl helm; do
  command -v "$tool" >/dev/null || { echo "error: $tool is not on PATH: install it" >&2; exit 1; }
done
docker info >/dev/null || { echo "error: Docker does not answer: start it" >&2; exit 1; }
mkdir -p "$(dirname "$KUBECONFIG")"
set -x
docker build --tag "$image" .
kind get clusters | grep -qx tapp || kind create cluster --name tapp --wait 5m
kind export kubeconfig --name tapp
kind load docker-image "$image" --name tapp
if [ -n "${METACONTROLLER_CHART:-}" ]; then # without a network
  helm package "$METACONTROLLER_CHART" --destination charts/tapp/charts
else
  helm dependency update charts/tapp
fi
# The annotation has the image's id, so that a second run restarts the service if the image differs.
helm upgrade --install tapp charts/tapp -n tapp-system --create-namespace --wait --timeout 5m \
  --set metacontroller.enabled=true,image="$image" \
  --set-string podAnnotations.image="$(docker image inspect -f '{{.Id}}' "$image")"
kubectl apply -f examples/same-template.yaml
kubectl wait tapp/same --for=condition=Ready --timeout=5m
set +x
cat <<END

TApp runs, and an example with three instances. In a shell that knows the cluster and the plugin

  export KUBECONFIG=$KUBECONFIG PATH=$PWD/.venv/bin:\$PATH

try:

  kubectl tapp status same
  kubectl tapp plan same --image web=nginx:1.29             what a new image would do
  kubectl tapp set image same web=nginx:1.29 --wait         do it, in place
  kubectl tapp kill same 1                                  stop one instance

More examples: examples/README.md. Installing elsewhere: docs/install.md, "Where it runs".
\`make kind-down\` removes the cluster.
END
