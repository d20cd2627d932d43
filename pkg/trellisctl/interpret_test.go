package trellisctl

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const gateRules = `
# rules of gates
---
apiVersion: config.karmada.io/v1alpha1
kind: ResourceInterpreterCustomization
metadata: {name: gates}
spec:
  target: {apiVersion: example.com/v1, kind: Gate}
  customizations:
    replicaRevision:
      luaScript: |
        function ReviseReplica(obj, desiredReplica)
          print("revising", obj.metadata.name)
          obj.spec.size = desiredReplica
          return obj
        end
    healthInterpretation:
      luaScript: |
        function InterpretHealth(observedObj)
          return observedObj.status.open
        end
`

func interpret(t *testing.T, files map[string]string, arguments ...string) (stdout, stderr string, err error) {
	t.Helper()
	t.Chdir(t.TempDir())
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(".", name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	root := NewCommand()
	var out, printed bytes.Buffer
	root.SetOut(&out)
	root.SetErr(&printed)
	root.SetArgs(append([]string{"interpret"}, arguments...))
	err = root.ExecuteContext(t.Context())
	return out.String(), printed.String(), err
}

func TestInterpret(t *testing.T) {
	files := map[string]string{
		"rules.yaml": gateRules,
		"gate.yaml": "{apiVersion: example.com/v1, kind: Gate, metadata: {name: g}, spec: {size: 3, list: " +
			"[]}, status: {open: true}}",
		"deployment.yaml": "{apiVersion: apps/v1, kind: Deployment, metadata: {name: d, namespace: x}, spec: " +
			"{replicas: 3, template: {spec: {serviceAccountName: sa, containers: []}}}, status: {replicas: 3, " +
			"updatedReplicas: 3, availableReplicas: 3}}",
		"statuses.yaml": "clusterName: a\nstatus: {replicas: 2}\n---\nclusterName: b\nstatus: {replicas: 1}\n",
	}
	tests := map[string]struct {
		arguments []string
		want      string
	}{
		"check": {[]string{"--check", "-f", "rules.yaml"}, "can be used"},
		"revise": {
			[]string{
				"-f", "rules.yaml", "--operation", "revise", "--desired-file", "gate.yaml", "--desired-replica", "2",
			}, "spec:\n  list: []\n  size: 2",
		},
		"health": {
			[]string{"-f", "rules.yaml", "--operation", "InterpretHealth", "--observed-file", "gate.yaml"},
			"health: Healthy",
		},
		"not taught": {[]string{"--operation", "health", "--observed-file", "gate.yaml"}, "health: Unknown"},
		"built in":   {[]string{"--operation", "health", "--observed-file", "deployment.yaml"}, "health: Healthy"},
		"replicas":   {[]string{"--operation", "replicas", "--desired-file", "deployment.yaml"}, "replicas: 3"},
		"components": {
			[]string{"--operation", "components", "--desired-file", "deployment.yaml"}, "components: null",
		},
		"dependencies": {[]string{"--operation", "dependencies", "--desired-file", "deployment.yaml"}, "name: sa"},
		"aggregate": {
			[]string{"--operation", "aggregate", "--desired-file", "deployment.yaml", "--status-file", "statuses.yaml"},
			"replicas: 3",
		},
		"status": {[]string{"--operation", "status", "--observed-file", "deployment.yaml"}, "updatedReplicas: 3"},
		"retain": {
			[]string{
				"--operation", "retain", "--desired-file", "deployment.yaml", "--observed-file", "deployment.yaml",
			}, "kind: Deployment",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			out, printed, err := interpret(t, files, tc.arguments...)
			if err != nil || !strings.Contains(out, tc.want) {
				t.Errorf("got %q, %v", out, err)
			}
			if name == "revise" && printed != "revising\tg\n" {
				t.Errorf("printed %q", printed)
			}
		})
	}
}

func TestInterpretExplainsWhatIsMissing(t *testing.T) {
	files := map[string]string{
		"bad.yaml":   strings.Replace(gateRules, "return obj\n", "return obj +\n", 1),
		"other.yaml": "kind: ConfigMap",
		"typo.yaml":  strings.Replace(gateRules, "replicaRevision", "replicaRevison", 1),
		"two.yaml":   "kind: A\n---\nkind: B\n",
	}
	tests := map[string]struct {
		arguments []string
		want      string
	}{
		"operation":       {nil, "must be one of"},
		"file":            {[]string{"--operation", "health"}, "--observed-file is needed"},
		"absent file":     {[]string{"--operation", "health", "--observed-file", "none.yaml"}, "none.yaml"},
		"check":           {[]string{"--check"}, "-f"},
		"syntax":          {[]string{"--check", "-f", "bad.yaml"}, "customization gates, ReviseReplica: line 5"},
		"kind":            {[]string{"--check", "-f", "other.yaml"}, `kind "ConfigMap": must be`},
		"unknown field":   {[]string{"--check", "-f", "typo.yaml"}, "replicaRevison: Forbidden: there is no"},
		"several objects": {[]string{"--operation", "health", "--observed-file", "two.yaml"}, "2 documents"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if _, _, err := interpret(t, files, tc.arguments...); err == nil ||
				!strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v", err)
			}
		})
	}
}
