package charts_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/yaml"

	"github.com/trellis-garden/trellis/pkg/dashboard"
)

const dashboardName = "garden-dashboard"

// dashboardWith enables the dashboard with so many replicas and two issuers.
func dashboardWith(replicas int) map[string]any {
	return map[string]any{"dashboard": map[string]any{
		"enabled": true, "replicas": replicas, "host": "dashboard.garden.example", "port": 8443,
		"garden": map[string]any{"server": "https://kube-apiserver", "certificateAuthority": "PEM\n"},
		"issuers": []any{
			map[string]any{"name": "login", "url": "https://login.example", "clientID": "dashboard",
				"certificateAuthority": "PEM\nof it\n", "scopes": []any{"openid", "groups"}},
			map[string]any{"name": "other", "url": "https://other.example", "clientID": "d", "clientSecretName": "secret"},
		},
	}}
}

func TestDashboardOfTheGarden(t *testing.T) {
	given := dashboardWith(2)
	for _, deployment := range deploymentsWith(t, "garden", given) {
		if deployment.Name != dashboardName {
			continue
		}
		pod := deployment.Spec.Template.Spec
		container := pod.Containers[0]
		memory := container.Resources.Requests.Memory()
		if limit := container.Resources.Limits.Memory(); memory.Cmp(resource.MustParse("60Mi")) > 0 ||
			limit.Cmp(resource.MustParse("256Mi")) != 0 {
			t.Errorf("memory %s, at most %s", memory, limit)
		}
		collector := map[string]string{}
		for _, variable := range container.Env {
			collector[variable.Name] = variable.Value
		}
		if collector["GOMEMLIMIT"] != "$(TRELLIS_MEMORY_LIMIT)000000" {
			t.Errorf("the garbage collector knows no limit: %v", container.Env)
		}
		if *deployment.Spec.Replicas != 2 || container.Lifecycle == nil || *pod.AutomountServiceAccountToken {
			t.Errorf("%d replicas, %+v", *deployment.Spec.Replicas, container.Lifecycle)
		}
		needed := dashboard.Ending + time.Duration(container.Lifecycle.PreStop.Sleep.Seconds)*time.Second
		if granted := time.Duration(*pod.TerminationGracePeriodSeconds) * time.Second; needed >= granted {
			t.Errorf("it may take %s to end, and gets %s", needed, granted)
		}
		mounted := map[string]bool{}
		for _, mount := range container.VolumeMounts {
			mounted[mount.MountPath] = mount.ReadOnly
		}
		for _, wanted := range []string{
			"/etc/trellis/dashboard", "/var/run/secrets/session", "/var/run/secrets/tls",
			"/var/run/secrets/issuers/other",
		} {
			if !mounted[wanted] {
				t.Errorf("%s is not mounted: %v", wanted, mounted)
			}
		}
	}
	if budgets := objectsWith[policyv1.PodDisruptionBudget](t, "garden", "PodDisruptionBudget", given); len(budgets) != 1 {
		t.Errorf("%d disruption budgets", len(budgets))
	}
}

func TestConfigurationOfTheDashboard(t *testing.T) {
	var config map[string]any
	for _, found := range objectsWith[corev1.ConfigMap](t, "garden", "ConfigMap", dashboardWith(1)) {
		if found.Name != dashboardName {
			continue
		}
		if err := yaml.UnmarshalStrict([]byte(found.Data["config.yaml"]), &config); err != nil {
			t.Fatal(err)
		}
		if found.Data["garden-ca.crt"] != "PEM\n" || found.Data["issuer-login-ca.crt"] != "PEM\nof it\n" {
			t.Errorf("authorities %v", found.Data)
		}
	}
	if config["publicURL"] != "https://dashboard.garden.example:8443" {
		t.Errorf("configuration %v", config)
	}
	issuers := config["issuers"].([]any)
	login, other := issuers[0].(map[string]any), issuers[1].(map[string]any)
	if login["caFile"] != "/etc/trellis/dashboard/issuer-login-ca.crt" || login["clientSecretFile"] != nil ||
		other["clientSecretFile"] != "/var/run/secrets/issuers/other/clientSecret" || other["caFile"] != nil {
		t.Errorf("issuers %v", issuers)
	}
}

// What the dashboard reads once makes new pods when it changes.
func TestPodsOfTheDashboardHaveTheNewestFiles(t *testing.T) {
	sums := map[string]string{}
	for what, change := range map[string]func(dashboard map[string]any){
		"nothing": func(map[string]any) {},
		"another host": func(d map[string]any) {
			d["host"] = "other.example"
		},
		"another authority of the garden": func(d map[string]any) {
			d["garden"].(map[string]any)["certificateAuthority"] = "PEM\nanother\n"
		},
		"another authority of an issuer": func(d map[string]any) {
			d["issuers"].([]any)[0].(map[string]any)["certificateAuthority"] = "PEM\nanother\n"
		},
		"no authority of an issuer": func(d map[string]any) {
			delete(d["issuers"].([]any)[0].(map[string]any), "certificateAuthority")
		},
	} {
		given := dashboardWith(1)
		change(given["dashboard"].(map[string]any))
		for _, deployment := range deploymentsWith(t, "garden", given) {
			if deployment.Name != dashboardName {
				continue
			}
			sum := deployment.Spec.Template.Annotations["checksum/config"]
			if other, found := sums[sum]; found || sum == "" {
				t.Errorf("%s: the pods are those of %s (%q)", what, other, sum)
			}
			sums[sum] = what
		}
	}
	if len(sums) != 5 {
		t.Errorf("got %v", sums)
	}
}

// The dashboard takes the file that the chart makes.
func TestTheDashboardReadsWhatTheChartMakes(t *testing.T) {
	for _, found := range objectsWith[corev1.ConfigMap](t, "garden", "ConfigMap", dashboardWith(1)) {
		if found.Name != dashboardName {
			continue
		}
		path := filepath.Join(t.TempDir(), "config.yaml")
		if err := os.WriteFile(path, []byte(found.Data["config.yaml"]), 0o600); err != nil {
			t.Fatal(err)
		}
		config, err := dashboard.ReadConfig(path)
		if err != nil {
			t.Fatal(err)
		}
		if len(config.Issuers) != 2 || config.Garden.CAFile != "/etc/trellis/dashboard/garden-ca.crt" ||
			config.Session.KeysFile != "/var/run/secrets/session/keys" ||
			config.Terminals.Image != "ghcr.io/trellis-garden/terminal:latest" {
			t.Errorf("%+v", config)
		}
		return
	}
	t.Fatal("there is no configuration")
}

// Without it the garden is as it was.
func TestNoDashboard(t *testing.T) {
	all, err := render(t, "garden", nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range all {
		if strings.Contains(text, dashboardName) {
			t.Errorf("there is\n%s", text)
		}
	}
}
