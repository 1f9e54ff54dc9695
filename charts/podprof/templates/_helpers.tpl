{{- define "podprof.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" }}
{{- end }}

{{- define "podprof.fullname" -}}
{{- if .Values.fullnameOverride }}
{{- .Values.fullnameOverride | trunc 63 | trimSuffix "-" }}
{{- else if contains (include "podprof.name" .) .Release.Name }}
{{- .Release.Name | trunc 63 | trimSuffix "-" }}
{{- else }}
{{- printf "%s-%s" .Release.Name (include "podprof.name" .) | trunc 63 | trimSuffix "-" }}
{{- end }}
{{- end }}

{{- define "podprof.selectorLabels" -}}
app.kubernetes.io/name: {{ include "podprof.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "podprof.labels" -}}
{{ include "podprof.selectorLabels" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end }}

{{- define "podprof.serviceAccountName" -}}
{{- if .Values.serviceAccount.create }}
{{- default (include "podprof.fullname" .) .Values.serviceAccount.name }}
{{- else }}
{{- default "default" .Values.serviceAccount.name }}
{{- end }}
{{- end }}

{{- define "podprof.image" -}}
{{- if .Values.image.digest }}
{{- printf "%s@%s" .Values.image.repository .Values.image.digest }}
{{- else }}
{{- printf "%s:%s" .Values.image.repository (default .Chart.AppVersion .Values.image.tag) }}
{{- end }}
{{- end }}

{{- define "podprof.probe" -}}
{{- $web := .root.Values.web }}
{{- if and $web.secret $web.tls $web.clientCertificates -}}
tcpSocket: { port: http }
{{- else if and $web.secret $web.tls -}}
httpGet: { path: {{ .path }}, port: http, scheme: HTTPS }
{{- else -}}
httpGet: { path: {{ .path }}, port: http }
{{- end }}
{{- end }}

{{- /* A size in bytes: a number, or a text with or without a unit. */ -}}
{{- define "podprof.bytes" -}}
{{- if not (kindIs "string" .) }}{{ int64 . }}
{{- else }}
{{- $n := regexFind "^[0-9]+" . | int64 }}
{{- if contains "Ki" . }}{{ mul $n 1024 }}
{{- else if contains "Mi" . }}{{ mul $n 1048576 }}
{{- else if contains "Gi" . }}{{ mul $n 1073741824 }}
{{- else }}{{ $n }}
{{- end }}
{{- end }}
{{- end }}

{{- /* The kubelet evicts a pod whose emptyDir outgrows its sizeLimit. */ -}}
{{- define "podprof.checkRoom" -}}
{{- $bytes := get .config .setting | default .default }}
{{- if ge (include "podprof.bytes" $bytes | int64) (include "podprof.bytes" .sizeLimit | int64) }}
{{- fail (printf "%s.sizeLimit (%s) has to be above config.%s (%v), or the kubelet evicts the pod" .part .sizeLimit .setting (kindIs "string" $bytes | ternary $bytes (include "podprof.bytes" $bytes))) }}
{{- end }}
{{- end }}

{{- /* A time in milliseconds. */ -}}
{{- define "podprof.ms" -}}
{{- $n := regexFind "^[0-9]+" . | int64 }}
{{- if hasSuffix "ms" . }}{{ $n }}
{{- else if hasSuffix "s" . }}{{ mul $n 1000 }}
{{- else if hasSuffix "m" . }}{{ mul $n 60000 }}
{{- else }}{{ mul $n 3600000 }}
{{- end }}
{{- end }}

{{- /* Values of the right form that the agent refuses: its pods would start again and again. */ -}}
{{- define "podprof.checkRanges" -}}
{{- range $setting, $least := dict "memory-budget" "16MiB" "spool-bytes" "4MiB" "store-bytes" "1MiB" }}
{{- if lt (include "podprof.bytes" (get $.config $setting | default $least) | int64) (include "podprof.bytes" $least | int64) }}
{{- fail (printf "config.%s has to be %s or more" $setting $least) }}
{{- end }}
{{- end }}
{{- $window := include "podprof.ms" (get .config "window" | default "60s") | int64 }}
{{- if or (lt $window 1000) (gt $window 3600000) }}
{{- fail (printf "config.window (%s) has to be from 1s to 1h" .config.window) }}
{{- end }}
{{- if lt (include "podprof.ms" (get .config "store-age" | default "24h") | int64) $window }}
{{- fail (printf "config.store-age (%s) has to be config.window or more" (get .config "store-age")) }}
{{- end }}
{{- if and (gt (get .config "off-cpu" | default 0 | float64) 0.0) (eq (get .config "cpu-rate" | toString) "0") }}
{{- fail "config.off-cpu needs a config.cpu-rate above 0" }}
{{- end }}
{{- $limit := dig "limits" "memory" "" .resources | toString }}
{{- $budget := get .config "memory-budget" | default "96MiB" }}
{{- if and (regexMatch "^[0-9]+[KMG]i$" $limit) (ge (include "podprof.bytes" $budget | int64) (include "podprof.bytes" $limit | int64)) }}
{{- fail (printf "resources.limits.memory (%s) has to be above config.memory-budget (%v), or the kernel kills the agent" $limit (kindIs "string" $budget | ternary $budget (include "podprof.bytes" $budget))) }}
{{- end }}
{{- end }}

{{- define "podprof.config" -}}
{{- include "podprof.checkRanges" (dict "config" .Values.config "resources" (.Values.resources | default dict)) }}
{{- if .Values.store.enabled }}
{{- include "podprof.checkRoom" (dict "part" "store" "setting" "store-bytes" "default" "256MiB" "config" .Values.config "sizeLimit" .Values.store.sizeLimit) }}
{{- end }}
{{- if and .Values.spool.enabled (not .Values.spool.hostPath) }}
{{- include "podprof.checkRoom" (dict "part" "spool" "setting" "spool-bytes" "default" "256MiB" "config" .Values.config "sizeLimit" .Values.spool.sizeLimit) }}
{{- end }}
{{- if .Values.debuginfod.servers }}
{{- include "podprof.checkRoom" (dict "part" "debuginfod" "setting" "debuginfod-bytes" "default" "2GiB" "config" .Values.config "sizeLimit" .Values.debuginfod.sizeLimit) }}
{{- end }}
{{- /* The agent's default store is on the read-only root file system, where the agent does not start. */}}
{{- if not (or .Values.store.enabled .Values.destinations .Values.extraVolumeMounts) }}
{{- fail "store.enabled is false and there is no destination, so no profile would be kept: set destinations, or leave the store on" }}
{{- end }}
{{- $own := dict
    "listen" (printf "[::]:%d" (int .Values.port))
    "cgroupfs-root" "/host/sys/fs/cgroup"
    "metadata" .Values.metadata.source
    "kubelet-verify" .Values.metadata.kubeletVerify }}
{{- if .Values.destinations }}
{{- $_ := set $own "destination" .Values.destinations }}
{{- end }}
{{- if .Values.relabelConfigs }}
{{- $_ := set $own "relabel_configs" .Values.relabelConfigs }}
{{- end }}
{{- if .Values.debuginfod.servers }}
{{- $_ := set $own "debuginfod" .Values.debuginfod.servers }}
{{- end }}
{{- if .Values.store.enabled }}
{{- $_ := set $own "store-dir" "/var/lib/podprof/store" }}
{{- end }}
{{- if .Values.spool.enabled }}
{{- $_ := set $own "spool-dir" "/var/spool/podprof/queue" }}
{{- end }}
{{- if .Values.web.secret }}
{{- $_ := set $own "web-config" "/etc/podprof-web/web.yml" }}
{{- end }}
{{- merge $own .Values.config | toPrettyJson }}
{{- end }}

{{- /* With the settings in its name: the kubelet may start a pod with an older content of a ConfigMap that it knows. */ -}}
{{- define "podprof.configName" -}}
{{- printf "%s-%s" (include "podprof.fullname" .) (include "podprof.config" . | sha256sum | trunc 10) }}
{{- end }}

{{- define "podprof.podAnnotations" -}}
{{- if and .Values.appArmorUnconfined (semverCompare "<1.30-0" .Capabilities.KubeVersion.Version) }}
# Kubernetes before 1.30 has no field for AppArmor.
container.apparmor.security.beta.kubernetes.io/podprof: unconfined
{{- end }}
{{- with .Values.podAnnotations }}
{{ toYaml . }}
{{- end }}
{{- end }}
