// Package test renders the chart and decodes what comes out as strictly as an API server would.
package test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	kedav1alpha1 "github.com/kedacore/keda/v2/apis/keda/v1alpha1"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/yaml"
)

const chartFolder = "../helm/waymark"

// kinds are all that the chart may contain.
var kinds = map[string]func() any{
	"apps/v1/StatefulSet":           func() any { return &appsv1.StatefulSet{} },
	"batch/v1/Job":                  func() any { return &batchv1.Job{} },
	"v1/Service":                    func() any { return &corev1.Service{} },
	"v1/ServiceAccount":             func() any { return &corev1.ServiceAccount{} },
	"v1/PersistentVolumeClaim":      func() any { return &corev1.PersistentVolumeClaim{} },
	"policy/v1/PodDisruptionBudget": func() any { return &policyv1.PodDisruptionBudget{} },
	"keda.sh/v1alpha1/ScaledObject": func() any { return &kedav1alpha1.ScaledObject{} },
}

// needed are the least values that the chart takes.
const needed = `
kafka: {brokers: ["kafka-0.kafka:9092", "kafka-1.kafka:9092"]}
weaviate: {url: "http://weaviate:8080", grpc: "weaviate-grpc:50051"}
api: {tokensSecret: {name: waymark, key: tokens}}
`

const everything = needed + `
blobs: {volume: {enabled: true}}
keda: {enabled: true, authenticationRef: kafka}
imagePullSecrets: [{name: registry}]
nodeSelector: {disk: fast}
tolerations: [{key: waymark, operator: Exists, effect: NoSchedule}]
persistence: {storageClass: fast}
extraEnv: [{name: WAYMARK_SPLITTING_TOKENS, value: "300"}]
embedding: {kind: openai, url: "http://models:8000/v1", model: e5, apiKeySecret: {name: models, key: key}}
`

func render(t *testing.T, text string) (map[string]string, error) {
	t.Helper()
	chart, err := loader.Load(chartFolder)
	if err != nil {
		t.Fatal(err)
	}
	values := map[string]any{}
	if err := yaml.Unmarshal([]byte(text), &values); err != nil {
		t.Fatal(err)
	}
	all, err := chartutil.ToRenderValues(chart, values, chartutil.ReleaseOptions{Name: "wm", Namespace: "search"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return engine.Render(chart, all)
}

// objects are the decoded ones by kind and name.
type objects map[string]any

func decode(t *testing.T, text string) objects {
	t.Helper()
	files, err := render(t, text)
	if err != nil {
		t.Fatal(err)
	}
	out := objects{}
	for name, content := range files {
		if filepath.Ext(name) == ".txt" {
			continue
		}
		for _, document := range strings.Split(content, "\n---") {
			document = strings.TrimPrefix(strings.TrimSpace(document), "---")
			var head struct {
				metav1.TypeMeta   `json:",inline"`
				metav1.ObjectMeta `json:"metadata"`
			}
			if err := yaml.Unmarshal([]byte(document), &head); err != nil {
				t.Fatalf("%s: %v\n%s", name, err, document)
			}
			if head.Kind == "" {
				continue
			}
			make := kinds[head.APIVersion+"/"+head.Kind]
			if make == nil {
				t.Fatalf("%s: a %s/%s", name, head.APIVersion, head.Kind)
			}
			o := make()
			if err := yaml.UnmarshalStrict([]byte(document), o); err != nil {
				t.Errorf("%s: %s %s: %v\n%s", name, head.Kind, head.Name, err, document)
			}
			if errs := validation.IsDNS1123Label(head.Name); len(errs) > 0 {
				t.Errorf("%s: the name %q: %v", name, head.Name, errs)
			}
			key := head.Kind + "/" + head.Name
			if out[key] != nil {
				t.Errorf("%s is there twice", key)
			}
			out[key] = o
		}
	}
	return out
}

func get[T any](t *testing.T, o objects, key string) T {
	t.Helper()
	v, ok := o[key].(T)
	if !ok {
		var names []string
		for name := range o {
			names = append(names, name)
		}
		slices.Sort(names)
		t.Fatalf("no %s; there are %v", key, names)
	}
	return v
}

var roles = []string{"chunker", "embedder", "indexer", "tracker", "deadletters"}

func TestRolesAreComplete(t *testing.T) {
	for name, values := range map[string]string{"needed": needed, "everything": everything} {
		t.Run(name, func(t *testing.T) {
			o := decode(t, values)
			for _, role := range append(slices.Clone(roles), "api") {
				set := get[*appsv1.StatefulSet](t, o, "StatefulSet/wm-"+role)
				service := get[*corev1.Service](t, o, "Service/wm-"+role)
				budget := get[*policyv1.PodDisruptionBudget](t, o, "PodDisruptionBudget/wm-"+role)
				labels := set.Spec.Template.Labels
				for what, selector := range map[string]map[string]string{"set": set.Spec.Selector.MatchLabels, "service": service.Spec.Selector, "budget": budget.Spec.Selector.MatchLabels} {
					if !selects(selector, labels) || selector["app.kubernetes.io/component"] != role {
						t.Errorf("%s: the selector of the %s %v does not match %v", role, what, selector, labels)
					}
				}
				if set.Spec.ServiceName != service.Name || budget.Spec.MaxUnavailable.IntValue() != 1 {
					t.Errorf("%s: service %s, at most %v unavailable", role, set.Spec.ServiceName, budget.Spec.MaxUnavailable)
				}
				checkPod(t, role, set)
			}
			get[*batchv1.Job](t, o, "Job/wm-topics")
			get[*corev1.ServiceAccount](t, o, "ServiceAccount/wm-waymark")
		})
	}
}

func selects(selector, labels map[string]string) bool {
	for k, v := range selector {
		if labels[k] != v {
			return false
		}
	}
	return len(selector) > 0
}

// checkPod: a pod says how it is, ends gracefully, keeps its folder, and has no rights.
func checkPod(t *testing.T, role string, set *appsv1.StatefulSet) {
	t.Helper()
	pod := set.Spec.Template.Spec
	c := pod.Containers[0]
	ports := map[string]int32{}
	for _, p := range c.Ports {
		ports[p.Name] = p.ContainerPort
	}
	for what, p := range map[string]*corev1.Probe{"startup": c.StartupProbe, "liveness": c.LivenessProbe, "readiness": c.ReadinessProbe} {
		if p == nil || p.HTTPGet == nil || ports[p.HTTPGet.Port.StrVal] == 0 {
			t.Errorf("%s: %s probe %+v", role, what, p)
			continue
		}
		if want := map[string]string{"startup": "/healthz", "liveness": "/healthz", "readiness": "/readyz"}[what]; p.HTTPGet.Path != want {
			t.Errorf("%s: the %s probe asks %s", role, what, p.HTTPGet.Path)
		}
	}
	if pod.TerminationGracePeriodSeconds == nil || *pod.TerminationGracePeriodSeconds < 60 {
		t.Errorf("%s may take %v seconds to end", role, pod.TerminationGracePeriodSeconds)
	}
	if role == "api" && (c.Lifecycle == nil || c.Lifecycle.PreStop.Sleep == nil) {
		t.Error("the API ends while requests are still sent to it")
	}
	s, p := c.SecurityContext, pod.SecurityContext
	if *s.AllowPrivilegeEscalation || !*s.ReadOnlyRootFilesystem || !*p.RunAsNonRoot || *pod.AutomountServiceAccountToken || len(s.Capabilities.Drop) != 1 {
		t.Errorf("%s has rights: %+v %+v", role, s, p)
	}
	if len(set.Spec.VolumeClaimTemplates) != 1 || set.Spec.VolumeClaimTemplates[0].Name != "data" ||
		!slices.ContainsFunc(c.VolumeMounts, func(m corev1.VolumeMount) bool { return m.Name == "data" && m.MountPath == "/data" }) {
		t.Errorf("%s keeps no data folder", role)
	}
	if c.Resources.Limits.Memory().IsZero() || c.Resources.Requests.Cpu().IsZero() {
		t.Errorf("%s has no limits: %+v", role, c.Resources)
	}
}

// The content of large documents is in a folder that the roles which work with it share, or in a bucket, and nowhere unless asked for.
func TestContentOfLargeDocuments(t *testing.T) {
	for name, c := range map[string]struct{ values, url, claim string }{
		"none":     {"", "", ""},
		"bucket":   {"blobs: {url: \"s3://b?region=x\"}", "s3://b?region=x", ""},
		"volume":   {"blobs: {volume: {enabled: true, size: 9Gi, storageClass: nfs}}", "file:///blobs", "wm-blobs"},
		"existing": {"blobs: {volume: {enabled: true, existingClaim: shared}}", "file:///blobs", "shared"},
	} {
		o := decode(t, needed+"\n"+c.values+"\n")
		for _, role := range append(slices.Clone(roles), "api") {
			pod := get[*appsv1.StatefulSet](t, o, "StatefulSet/wm-"+role).Spec.Template.Spec
			var url, claim, mount string
			for _, e := range pod.Containers[0].Env {
				if e.Name == "WAYMARK_BLOBS_URL" {
					url = e.Value
				}
			}
			for _, v := range pod.Volumes {
				if v.Name == "blobs" {
					claim = v.PersistentVolumeClaim.ClaimName
				}
			}
			for _, m := range pod.Containers[0].VolumeMounts {
				if m.Name == "blobs" {
					mount = m.MountPath
				}
			}
			wantClaim, wantMount := "", ""
			if c.claim != "" && slices.Contains([]string{"api", "chunker", "deadletters"}, role) {
				wantClaim, wantMount = c.claim, "/blobs"
			}
			if url != c.url || claim != wantClaim || mount != wantMount {
				t.Errorf("%s, %s: the URL %q, the claim %q at %q", name, role, url, claim, mount)
			}
		}
		made, ok := o["PersistentVolumeClaim/wm-blobs"].(*corev1.PersistentVolumeClaim)
		if ok != (name == "volume") {
			t.Errorf("%s: a claim is made: %v", name, ok)
		}
		if ok && (made.Spec.Resources.Requests.Storage().String() != "9Gi" || *made.Spec.StorageClassName != "nfs" ||
			!slices.Equal(made.Spec.AccessModes, []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany}) || made.Annotations["helm.sh/resource-policy"] != "keep") {
			t.Errorf("%s: the claim %+v", name, made)
		}
	}
	if _, err := render(t, needed+"\nblobs: {url: \"s3://b\", volume: {enabled: true}}\n"); err == nil || !strings.Contains(err.Error(), "blobs.url") {
		t.Errorf("a bucket and a volume: %v", err)
	}
}

// Without claims the pods have folders that end with them, and are the same otherwise.
func TestRebuildFromKafka(t *testing.T) {
	o := decode(t, needed+"\npersistence: {enabled: false, size: 2Gi}\n")
	for _, role := range append(slices.Clone(roles), "api") {
		set := get[*appsv1.StatefulSet](t, o, "StatefulSet/wm-"+role)
		if n := len(set.Spec.VolumeClaimTemplates); n != 0 {
			t.Errorf("%s: %d claims", role, n)
		}
		pod := set.Spec.Template.Spec
		i := slices.IndexFunc(pod.Volumes, func(v corev1.Volume) bool { return v.Name == "data" })
		if i < 0 || pod.Volumes[i].EmptyDir == nil || pod.Volumes[i].EmptyDir.SizeLimit.String() != "2Gi" {
			t.Errorf("%s: the volumes are %+v", role, pod.Volumes)
		}
		if !slices.ContainsFunc(pod.Containers[0].VolumeMounts, func(m corev1.VolumeMount) bool { return m.Name == "data" && m.MountPath == "/data" }) {
			t.Errorf("%s has no data folder", role)
		}
	}
}

func TestScalingByLag(t *testing.T) {
	if o := decode(t, needed); slices.ContainsFunc(keys(o), func(k string) bool { return strings.HasPrefix(k, "ScaledObject") }) {
		t.Error("there is a ScaledObject although KEDA is not enabled")
	}
	o := decode(t, everything+"\nroles: {indexer: {scaling: {min: 2, max: 99, lag: 500}}}\n")
	for role, topics := range map[string][]string{"chunker": {"waymark.documents", "waymark.replays"}, "embedder": {"waymark.chunks"}, "indexer": {"waymark.vectors", "waymark.progress"}} {
		so := get[*kedav1alpha1.ScaledObject](t, o, "ScaledObject/wm-"+role)
		set := get[*appsv1.StatefulSet](t, o, "StatefulSet/"+so.Spec.ScaleTargetRef.Name)
		if set.Spec.Replicas != nil {
			t.Errorf("%s: the replicas are KEDA's, and %d", role, *set.Spec.Replicas)
		}
		if *so.Spec.MaxReplicaCount > 12 {
			t.Errorf("%s: %d pods for 12 partitions", role, *so.Spec.MaxReplicaCount)
		}
		var read []string
		for _, trigger := range so.Spec.Triggers {
			m := trigger.Metadata
			read = append(read, m["topic"])
			if trigger.Type != "kafka" || m["consumerGroup"] != "waymark-"+role || m["bootstrapServers"] != "kafka-0.kafka:9092,kafka-1.kafka:9092" || trigger.AuthenticationRef.Name != "kafka" {
				t.Errorf("%s: trigger %+v", role, trigger)
			}
		}
		if !reflect.DeepEqual(read, topics) {
			t.Errorf("%s is scaled by %v, want %v", role, read, topics)
		}
	}
	if so := get[*kedav1alpha1.ScaledObject](t, o, "ScaledObject/wm-indexer"); so.Spec.Triggers[0].Metadata["lagThreshold"] != "500" || *so.Spec.MinReplicaCount != 2 {
		t.Errorf("the values do not count: %+v", so.Spec)
	}
}

func keys(o objects) (k []string) {
	for name := range o {
		k = append(k, name)
	}
	return k
}

func TestWhatMustBeSaid(t *testing.T) {
	for missing, values := range map[string]string{
		"kafka.brokers":    `{weaviate: {url: "http://w:8080"}, api: {insecure: true}}`,
		"weaviate.url":     `{kafka: {brokers: ["k:9092"]}, api: {insecure: true}}`,
		"api.tokensSecret": `{kafka: {brokers: ["k:9092"]}, weaviate: {url: "http://w:8080"}}`,
	} {
		if _, err := render(t, values); err == nil || !strings.Contains(err.Error(), missing) {
			t.Errorf("without %s: %v", missing, err)
		}
	}
}

// No secret stands in an object, and the binary takes the settings of every container.
func TestTheBinaryTakesTheSettings(t *testing.T) {
	binary := filepath.Join(t.TempDir(), "waymark")
	build := exec.Command("go", "build", "-o", binary, "./cmd/waymark")
	build.Dir = "../.."
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	secrets := map[string]string{
		"WAYMARK_API_TOKENS": "ci:ingest+read:" + strings.Repeat("ab", 32), "WAYMARK_EMBEDDING_API_KEY": "k",
		"WAYMARK_WEAVIATE_API_KEY": "k", "WAYMARK_KAFKA_SASL_PASSWORD": "p",
	}
	sasl := "\nkafka: {brokers: [\"k:9093\"], tls: true, sasl: {mechanism: SCRAM-SHA-512, username: waymark, passwordSecret: {name: kafka, key: password}}}\n"
	for name, values := range map[string]string{"needed": needed, "everything": everything, "sasl": strings.Replace(everything, `kafka: {brokers: ["kafka-0.kafka:9092", "kafka-1.kafka:9092"]}`, sasl, 1)} {
		o := decode(t, values)
		for key, object := range o {
			var pod corev1.PodSpec
			switch v := object.(type) {
			case *appsv1.StatefulSet:
				pod = v.Spec.Template.Spec
			case *batchv1.Job:
				pod = v.Spec.Template.Spec
			default:
				continue
			}
			c := pod.Containers[0]
			env := []string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir()}
			for _, e := range c.Env {
				if e.ValueFrom != nil {
					if secrets[e.Name] == "" {
						t.Errorf("%s: %s comes from a secret", key, e.Name)
					}
					env = append(env, e.Name+"="+secrets[e.Name])
					continue
				}
				if secrets[e.Name] != "" {
					t.Errorf("%s: %s stands in the object", key, e.Name)
				}
				env = append(env, e.Name+"="+e.Value)
			}
			cmd := exec.Command(binary, "config", "validate")
			cmd.Env = env
			var out bytes.Buffer
			cmd.Stdout, cmd.Stderr = &out, &out
			if err := cmd.Run(); err != nil {
				t.Errorf("%s, %s: %v\n%s", name, key, err, out.String())
			}
			if known := fmt.Sprint(c.Args); !strings.HasPrefix(known, "[run ") && !strings.HasPrefix(known, "[topics apply") {
				t.Errorf("%s runs %v", key, c.Args)
			}
		}
	}
}
