// Tests of the chart, apart from the module of the product: nothing of Kubernetes is among its requirements.
module github.com/waymarkhq/waymark/deploy/test

go 1.26

require (
	go.yaml.in/yaml/v2 v2.4.2 // indirect
	helm.sh/helm/v3 v3.18.6 // indirect
	k8s.io/api v0.33.4 // indirect
	k8s.io/apimachinery v0.33.4 // indirect
	sigs.k8s.io/yaml v1.6.0 // indirect
)
