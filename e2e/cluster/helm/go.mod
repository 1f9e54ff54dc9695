// helm's command, as test/tool.sh builds it.
module podprof.io/e2e/helm

go 1.26.0

require helm.sh/helm/v3 v3.22.0
