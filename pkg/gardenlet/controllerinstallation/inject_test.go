package controllerinstallation

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

func TestInjectGardenKubeconfig(t *testing.T) {
	for name, test := range map[string]struct{ given, want string }{
		"deployment": {`
kind: Deployment
spec:
  template:
    metadata: {labels: {a: b}}
    spec:
      initContainers: [{name: first, env: [{name: GARDEN_KUBECONFIG, value: old}]}]
      containers: [{name: main, env: [{name: OTHER, value: stays}]}]
`, `
kind: Deployment
spec:
  template:
    metadata: {labels: {a: b}}
    spec:
      initContainers:
      - name: first
        resources: {}
        env: [{name: GARDEN_KUBECONFIG, value: /var/run/secrets/gardener.cloud/garden/generic-kubeconfig/kubeconfig}]
        volumeMounts: [{name: garden-kubeconfig, mountPath: /var/run/secrets/gardener.cloud/garden/generic-kubeconfig, readOnly: true}]
      containers:
      - name: main
        resources: {}
        env: [{name: OTHER, value: stays}, {name: GARDEN_KUBECONFIG, value: /var/run/secrets/gardener.cloud/garden/generic-kubeconfig/kubeconfig}]
        volumeMounts: [{name: garden-kubeconfig, mountPath: /var/run/secrets/gardener.cloud/garden/generic-kubeconfig, readOnly: true}]
      volumes: [{name: garden-kubeconfig, secret: {secretName: generic-garden-kubeconfig, defaultMode: 292}}]
`},
		"no workload": {"kind: ConfigMap\ndata: {spec: text}", "kind: ConfigMap\ndata: {spec: text}"},
	} {
		t.Run(name, func(t *testing.T) {
			object := &unstructured.Unstructured{}
			if err := yaml.Unmarshal([]byte(test.given), &object.Object); err != nil {
				t.Fatal(err)
			}
			for range 2 { // a second time changes nothing
				if err := injectGardenKubeconfig(object); err != nil {
					t.Fatal(err)
				}
				if got := yamlOf(t, object.Object); got != normalized(t, test.want) {
					t.Errorf("got\n%s\nwant\n%s", got, normalized(t, test.want))
				}
			}
		})
	}
}

func yamlOf(t *testing.T, value any) string {
	text, err := yaml.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func normalized(t *testing.T, text string) string {
	var value any
	if err := yaml.Unmarshal([]byte(text), &value); err != nil {
		t.Fatal(err)
	}
	return yamlOf(t, value)
}
