{{- define "lakewarden.name" -}}
{{- .Values.nameOverride | default .Chart.Name | trunc 40 | trimSuffix "-" -}}
{{- end -}}

{{- define "lakewarden.fullname" -}}
{{- $name := include "lakewarden.name" . -}}
{{- $full := contains $name .Release.Name | ternary .Release.Name (printf "%s-%s" .Release.Name $name) -}}
{{- .Values.fullnameOverride | default $full | trunc 40 | trimSuffix "-" -}}
{{- end -}}

{{- define "lakewarden.selector" -}}
app.kubernetes.io/name: {{ include "lakewarden.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "lakewarden.labels" -}}
{{ include "lakewarden.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- with .Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- define "lakewarden.image" -}}
{{- $image := .Values.image -}}
{{- if $image.digest -}}
{{ $image.repository }}@{{ $image.digest }}
{{- else -}}
{{ $image.repository }}:{{ $image.tag | default .Chart.AppVersion }}
{{- end -}}
{{- end -}}

{{- define "lakewarden.databaseSecret" -}}
{{- .Values.postgresql.enabled | ternary (printf "%s-postgresql" (include "lakewarden.fullname" .)) .Values.database.existingSecret -}}
{{- end -}}

{{/* Where a gateway has to get to: PostgreSQL, https, and every port that the values name a metastore, a catalog or a storage by. */}}
{{- define "lakewarden.gatewayPorts" -}}
{{- $said := list .Values.system.location (.Values.settings.metastore | default dict) (.Values.settings.catalogs | default dict) .Values.storage .Values.spark.conf | toJson -}}
{{- $ports := list "443" "5432" -}}
{{- range regexFindAll "://[^/\\s\"',]*:[0-9]+" $said -1 -}}
{{- $ports = append $ports (regexFind "[0-9]+$" .) -}}
{{- end -}}
{{- if contains "hdfs://" $said -}}
{{- $ports = concat $ports (list "8020" "9866") -}}
{{- end -}}
{{- $rules := list -}}
{{- range $ports | uniq | sortAlpha -}}
{{- $rules = append $rules (dict "port" (int .)) -}}
{{- end -}}
{{- toJson $rules -}}
{{- end -}}

{{- define "lakewarden.imagePullSecrets" -}}
{{- with .Values.image.pullSecrets }}
imagePullSecrets:
{{- range . }}
  - name: {{ . }}
{{- end }}
{{- end }}
{{- end -}}

{{- define "lakewarden.podSecurityContext" -}}
runAsNonRoot: true
runAsUser: {{ .Values.podSecurity.runAsUser }}
runAsGroup: {{ .Values.podSecurity.runAsUser }}
fsGroup: {{ .Values.podSecurity.fsGroup }}
fsGroupChangePolicy: OnRootMismatch
seccompProfile: {type: RuntimeDefault}
{{- end -}}

{{- define "lakewarden.securityContext" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: {drop: [ALL]}
{{- end -}}

{{/* lakewarden.toml: what the user set, over what the chart needs. */}}
{{- define "lakewarden.settings" -}}
{{- $spark := dict "master" "local[*]" "jars" "none" "driver_memory" .Values.spark.driverMemory -}}
{{- if eq .Values.spark.mode "kubernetes" -}}
{{- $_ := set $spark "master" "k8s://https://kubernetes.default.svc:443" -}}
{{- end -}}
{{- $_ := set $spark "conf" (include "lakewarden.sparkConf" . | fromYaml) -}}
{{- $drain := printf "%d s" (int .Values.worker.drainSeconds) -}}
{{- $ours := dict
      "system" (dict "location" .Values.system.location)
      "workers" (dict "external" true "drain" $drain "idle" .Values.executors.idle)
      "http" (dict "host" "0.0.0.0" "port" 7437)
      "log" (dict "format" "json")
      "spark" $spark -}}
{{- $all := mergeOverwrite $ours (deepCopy .Values.settings) -}}
{{- with .Values.storage -}}
{{- $_ := set $all "storage" . -}}
{{- end -}}
{{ toToml $all }}
{{- end -}}

{{- define "lakewarden.sparkConf" -}}
{{- if eq .Values.spark.mode "kubernetes" -}}
# That executors cannot be made is a warning.
spark.log.level: WARN
spark.app.name: {{ include "lakewarden.fullname" . }}
spark.kubernetes.namespace: {{ .Release.Namespace }}
spark.kubernetes.container.image: {{ include "lakewarden.image" . | quote }}
spark.kubernetes.container.image.pullPolicy: {{ .Values.image.pullPolicy }}
spark.kubernetes.executor.podTemplateFile: /etc/lakewarden/executor-pod.yaml
spark.kubernetes.executor.podTemplateContainerName: executor
spark.kubernetes.authenticate.executor.serviceAccountName: {{ include "lakewarden.fullname" . }}-executor
spark.kubernetes.authenticate.caCertFile: /var/run/secrets/kubernetes.io/serviceaccount/ca.crt
spark.kubernetes.authenticate.oauthTokenFile: /var/run/secrets/kubernetes.io/serviceaccount/token
# In client mode there is neither a driver Service nor a volume of the driver's to clean up.
spark.kubernetes.driver.service.deleteOnTermination: "false"
spark.kubernetes.executor.request.cores: {{ .Values.executors.cpuRequest | quote }}
{{- with .Values.executors.cpuLimit }}
spark.kubernetes.executor.limit.cores: {{ . | quote }}
{{- end }}
spark.executor.instances: {{ .Values.executors.instances | quote }}
spark.executor.cores: {{ .Values.executors.cores | quote }}
spark.executor.memory: {{ .Values.executors.memory | quote }}
{{- $listing := "spark.sql.sources.parallelPartitionDiscovery.parallelism" }}
{{- if not (hasKey .Values.spark.conf $listing) }}
# Spark lists a table's folders by 10,000 tasks for each vacuum, whatever there is to run them.
{{ $listing }}: {{ mul 16 .Values.executors.instances .Values.executors.cores | quote }}
{{- end }}
# Fixed, so that NetworkPolicies can name them.
spark.driver.bindAddress: 0.0.0.0
spark.driver.port: "7078"
spark.driver.blockManager.port: "7079"
spark.blockManager.port: "7079"
{{- else -}}
spark.driver.bindAddress: 127.0.0.1
{{- end }}
{{- with .Values.spark.conf }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{/* What every pod of ours has. Takes a dict: root, component, pod (its values), args, and what differs. */}}
{{- define "lakewarden.podSpec" -}}
{{- $root := .root -}}
{{- $pod := .pod -}}
serviceAccountName: {{ include "lakewarden.fullname" $root }}-{{ .account }}
automountServiceAccountToken: {{ .token | default false }}
enableServiceLinks: false
{{- include "lakewarden.imagePullSecrets" $root }}
terminationGracePeriodSeconds: {{ .grace }}
{{- with $pod.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- with $pod.nodeSelector }}
nodeSelector: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $pod.tolerations }}
tolerations: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $pod.affinity }}
affinity: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $pod.topologySpreadConstraints }}
topologySpreadConstraints:
{{- range . }}
  - {{- toYaml . | nindent 4 }}
{{- if not .labelSelector }}
    labelSelector:
      matchLabels: {{- include "lakewarden.selector" $root | nindent 8 }}
        app.kubernetes.io/component: {{ $.component }}
{{- end }}
{{- end }}
{{- end }}
securityContext: {{- include "lakewarden.podSecurityContext" $root | nindent 2 }}
{{- $early := include "lakewarden.sidecars" (dict "root" $root "pod" $pod "early" true) }}
{{- if or .waits $early }}
initContainers:
  {{- $early | nindent 2 }}
  {{- if .waits }}
  - name: wait-for-init
    image: {{ include "lakewarden.image" $root | quote }}
    imagePullPolicy: {{ $root.Values.image.pullPolicy }}
    command: [sh, -c, "until lakewarden tables list >/dev/null; do sleep 2; done"]
    securityContext: {{- include "lakewarden.securityContext" $root | nindent 6 }}
    resources: {{- toYaml $pod.resources | nindent 6 }}
    env: {{- include "lakewarden.env" . | nindent 6 }}
    volumeMounts: {{- include "lakewarden.volumeMounts" . | nindent 6 }}
  {{- end }}
{{- end }}
containers:
  - name: {{ .component }}
    image: {{ include "lakewarden.image" $root | quote }}
    imagePullPolicy: {{ $root.Values.image.pullPolicy }}
    args: {{- toYaml .args | nindent 6 }}
    securityContext: {{- include "lakewarden.securityContext" $root | nindent 6 }}
    resources: {{- toYaml $pod.resources | nindent 6 }}
    {{- with .ports }}
    ports: {{- toYaml . | nindent 6 }}
    {{- end }}
    {{- with .probed }}
    startupProbe:
      httpGet: {path: /livez, port: {{ .port }}, scheme: {{ .scheme }}}
      periodSeconds: 2
      failureThreshold: 60
    livenessProbe:
      httpGet: {path: /livez, port: {{ .port }}, scheme: {{ .scheme }}}
      periodSeconds: 20
      timeoutSeconds: 5
      failureThreshold: 3
    readinessProbe:
      httpGet: {path: {{ .ready }}, port: {{ .port }}, scheme: {{ .scheme }}}
      periodSeconds: 5
      timeoutSeconds: 5
    {{- end }}
    env: {{- include "lakewarden.env" . | nindent 6 }}
    volumeMounts: {{- include "lakewarden.volumeMounts" . | nindent 6 }}
  {{- if .waits }}
  {{- include "lakewarden.sidecars" (dict "root" $root "pod" $pod "early" false) | nindent 2 }}
  {{- end }}
volumes: {{- include "lakewarden.volumes" . | nindent 2 }}
{{- end -}}

{{/* The user's own containers. `early`: those that Kubernetes starts before the init containers and ends after the
main one (restartPolicy: Always), which a Job may have too: it would never end with one of the others. */}}
{{- define "lakewarden.sidecars" -}}
{{- $security := include "lakewarden.securityContext" .root | fromYaml -}}
{{- $early := .early -}}
{{- range .pod.sidecars }}
{{- if eq $early (eq (.restartPolicy | default "") "Always") }}
- {{- mergeOverwrite (dict "securityContext" (deepCopy $security)) (deepCopy .) | toYaml | nindent 2 }}
{{- end }}
{{- end }}
{{- end -}}

{{- define "lakewarden.env" -}}
- {name: LAKEWARDEN_CONFIG, value: /etc/lakewarden/lakewarden.toml}
- {name: LAKEWARDEN_HOME, value: /var/lib/lakewarden}
- {name: LAKEWARDEN_DATABASE_URL_FILE, value: "/etc/lakewarden/secrets/database/{{ .root.Values.database.key }}"}
- {name: HOME, value: /tmp}
{{- if .isDriver }}
- {name: POD_IP, valueFrom: {fieldRef: {fieldPath: status.podIP}}}
- {name: POD_NAME, valueFrom: {fieldRef: {fieldPath: metadata.name}}}
{{- end }}
{{- with .pod.extraEnv }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- define "lakewarden.volumeMounts" -}}
- {name: config, mountPath: /etc/lakewarden/lakewarden.toml, subPath: lakewarden.toml, readOnly: true}
{{- if and .isDriver (eq .root.Values.spark.mode "kubernetes") }}
- {name: config, mountPath: /etc/lakewarden/executor-pod.yaml, subPath: executor-pod.yaml, readOnly: true}
{{- end }}
- {name: database, mountPath: /etc/lakewarden/secrets/database, readOnly: true}
{{- range .root.Values.secrets }}
- {name: "secret-{{ . }}", mountPath: "/etc/lakewarden/secrets/{{ . }}", readOnly: true}
{{- end }}
- {name: home, mountPath: /var/lib/lakewarden}
- {name: tmp, mountPath: /tmp}
{{- if .root.Values.persistence.enabled }}
- {name: system, mountPath: {{ .root.Values.persistence.mountPath | quote }}}
{{- end }}
{{- with .pod.extraVolumeMounts }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- define "lakewarden.volumes" -}}
- name: config
  configMap: {name: {{ include "lakewarden.fullname" .root }}}
- name: database
  secret: {secretName: {{ include "lakewarden.databaseSecret" .root | quote }}}
{{- range .root.Values.secrets }}
- name: secret-{{ . }}
  secret: {secretName: {{ . | quote }}}
{{- end }}
- name: home
  emptyDir: {}
- name: tmp
  emptyDir: {}
{{- if .root.Values.persistence.enabled }}
- name: system
  persistentVolumeClaim:
    claimName: {{ .root.Values.persistence.existingClaim | default (printf "%s-system" (include "lakewarden.fullname" .root)) }}
{{- end }}
{{- with .pod.extraVolumes }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{/* A pod template: labels, annotations, spec. */}}
{{- define "lakewarden.podTemplate" -}}
metadata:
  labels: {{- include "lakewarden.labels" .root | nindent 4 }}
    app.kubernetes.io/component: {{ .component }}
    {{- with .pod.podLabels }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
  annotations:
    checksum/config: {{ include (print .root.Template.BasePath "/config.yaml") .root | sha256sum }}
    {{- with .pod.podAnnotations }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
spec: {{- include "lakewarden.podSpec" . | nindent 2 }}
{{- end -}}

{{- define "lakewarden.metadata" -}}
name: {{ include "lakewarden.fullname" .root }}-{{ .component }}
namespace: {{ .root.Release.Namespace }}
labels: {{- include "lakewarden.labels" .root | nindent 2 }}
  app.kubernetes.io/component: {{ .component }}
{{- end -}}

{{- define "lakewarden.matchLabels" -}}
{{ include "lakewarden.selector" .root }}
app.kubernetes.io/component: {{ .component }}
{{- end -}}
