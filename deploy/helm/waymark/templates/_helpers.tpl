{{- define "waymark.labels" -}}
app.kubernetes.io/name: waymark
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .role }}
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
{{- end }}

{{- define "waymark.selector" -}}
app.kubernetes.io/name: waymark
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .role }}
{{- end }}

{{- define "waymark.image" -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end }}

{{- define "waymark.secret" -}}
- name: {{ .name }}
  valueFrom:
    secretKeyRef: { name: {{ .secret.name | quote }}, key: {{ .secret.key | quote }} }
{{- end }}

{{/* The settings that all roles share. */}}
{{- define "waymark.env" -}}
{{- $v := .Values -}}
- { name: WAYMARK_DATA_DIR, value: /data }
- { name: WAYMARK_KAFKA_BROKERS, value: {{ required "kafka.brokers must be said" (join "," $v.kafka.brokers) | quote }} }
- { name: WAYMARK_KAFKA_TOPIC_PREFIX, value: {{ $v.kafka.topicPrefix | quote }} }
- { name: WAYMARK_KAFKA_PARTITIONS, value: {{ $v.kafka.partitions | quote }} }
- { name: WAYMARK_KAFKA_REPLICATION, value: {{ $v.kafka.replication | quote }} }
- { name: WAYMARK_KAFKA_EPOCH, value: {{ $v.kafka.epoch | quote }} }
{{- if $v.kafka.tls }}
- { name: WAYMARK_KAFKA_TLS_ENABLED, value: "true" }
{{- end }}
{{- with $v.kafka.sasl }}
{{- if .mechanism }}
- { name: WAYMARK_KAFKA_SASL_MECHANISM, value: {{ .mechanism | quote }} }
- { name: WAYMARK_KAFKA_SASL_USERNAME, value: {{ .username | quote }} }
{{ include "waymark.secret" (dict "name" "WAYMARK_KAFKA_SASL_PASSWORD" "secret" .passwordSecret) }}
{{- end }}
{{- end }}
- { name: WAYMARK_STORE_KIND, value: weaviate }
- { name: WAYMARK_WEAVIATE_URL, value: {{ required "weaviate.url must be said" $v.weaviate.url | quote }} }
- { name: WAYMARK_WEAVIATE_COLLECTION, value: {{ $v.weaviate.collection | quote }} }
{{- /* An empty variable counts as unset, so that REST only has to be said in another way. */}}
{{- if $v.weaviate.grpc }}
- { name: WAYMARK_WEAVIATE_GRPC, value: {{ $v.weaviate.grpc | quote }} }
{{- end }}
{{- if $v.weaviate.tenant }}
- { name: WAYMARK_WEAVIATE_TENANT, value: {{ $v.weaviate.tenant | quote }} }
{{- end }}
{{- if $v.weaviate.apiKeySecret }}
{{ include "waymark.secret" (dict "name" "WAYMARK_WEAVIATE_API_KEY" "secret" $v.weaviate.apiKeySecret) }}
{{- end }}
- { name: WAYMARK_EMBEDDING_KIND, value: {{ $v.embedding.kind | quote }} }
{{- if $v.embedding.url }}
- { name: WAYMARK_EMBEDDING_URL, value: {{ $v.embedding.url | quote }} }
{{- end }}
{{- if $v.embedding.model }}
- { name: WAYMARK_EMBEDDING_MODEL, value: {{ $v.embedding.model | quote }} }
{{- end }}
{{- if $v.embedding.apiKeySecret }}
{{ include "waymark.secret" (dict "name" "WAYMARK_EMBEDDING_API_KEY" "secret" $v.embedding.apiKeySecret) }}
{{- end }}
{{- if and $v.blobs.url $v.blobs.volume.enabled }}
{{- fail "blobs.url and blobs.volume.enabled contradict each other" }}
{{- end }}
{{- if $v.blobs.volume.enabled }}
- { name: WAYMARK_BLOBS_URL, value: "file:///blobs" }
{{- else if $v.blobs.url }}
- { name: WAYMARK_BLOBS_URL, value: {{ $v.blobs.url | quote }} }
{{- end }}
{{- with $v.extraEnv }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{/* Whether the role works with the content of large documents, in a folder. */}}
{{- define "waymark.blobs" -}}
{{- if and .root.Values.blobs.volume.enabled (has .role (list "api" "chunker" "deadletters")) }}yes{{ end }}
{{- end }}

{{- define "waymark.container.security" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: { drop: [ALL] }
{{- end }}

{{- define "waymark.pod" -}}
serviceAccountName: {{ .root.Release.Name }}-waymark
automountServiceAccountToken: false
terminationGracePeriodSeconds: {{ .root.Values.terminationGracePeriodSeconds }}
securityContext:
  runAsNonRoot: true
  runAsUser: 65532
  runAsGroup: 65532
  fsGroup: 65532
  fsGroupChangePolicy: OnRootMismatch
  seccompProfile: { type: RuntimeDefault }
{{- with .root.Values.imagePullSecrets }}
imagePullSecrets: {{ toYaml . | nindent 2 }}
{{- end }}
{{- with .root.Values.nodeSelector }}
nodeSelector: {{ toYaml . | nindent 2 }}
{{- end }}
{{- with .root.Values.tolerations }}
tolerations: {{ toYaml . | nindent 2 }}
{{- end }}
topologySpreadConstraints:
  - maxSkew: 1
    topologyKey: kubernetes.io/hostname
    whenUnsatisfiable: ScheduleAnyway
    labelSelector:
      matchLabels: {{ include "waymark.selector" . | nindent 8 }}
volumes:
  - name: tmp
    emptyDir: { sizeLimit: 256Mi }
{{- if include "waymark.blobs" . }}
  - name: blobs
    persistentVolumeClaim: { claimName: {{ .root.Values.blobs.volume.existingClaim | default (printf "%s-blobs" .root.Release.Name) | quote }} }
{{- end }}
{{- if and (ne .role "topics") (not .root.Values.persistence.enabled) }}
  - name: data
    emptyDir: { sizeLimit: {{ .root.Values.persistence.size | quote }} }
{{- end }}
{{- end }}

{{/* Recovering its tables may take a pod minutes, the first time; only then does liveness count. */}}
{{- define "waymark.probes" -}}
startupProbe:
  httpGet: { path: /healthz, port: http }
  periodSeconds: 2
  failureThreshold: 90
livenessProbe:
  httpGet: { path: /healthz, port: http }
  periodSeconds: 10
  timeoutSeconds: 5
  failureThreshold: 6
readinessProbe:
  httpGet: { path: /readyz, port: http }
  periodSeconds: 5
  timeoutSeconds: 5
  failureThreshold: 2
{{- end }}

{{- define "waymark.claim" -}}
{{- if .Values.persistence.enabled -}}
volumeClaimTemplates:
  - metadata:
      name: data
    spec:
      accessModes: [ReadWriteOnce]
      {{- with .Values.persistence.storageClass }}
      storageClassName: {{ . | quote }}
      {{- end }}
      resources:
        requests: { storage: {{ .Values.persistence.size | quote }} }
{{- end }}
{{- end }}
