package project

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const quotas = `
- projectSelector: {matchLabels: {tier: gold}}
  config:
    spec: {hard: {count/secrets: "50"}}
- projectSelector: {}
  config:
    metadata: {labels: {kind: trial}}
    spec: {hard: {count/secrets: "3", count/configmaps: "9"}}
`

func TestProjectsGetTheirQuota(t *testing.T) {
	ctx := context.Background()
	file := filepath.Join(t.TempDir(), "quotas.yaml")
	if err := os.WriteFile(file, []byte(quotas), 0o600); err != nil {
		t.Fatal(err)
	}
	r := newReconciler(newProject())
	var err error
	if r.Quotas, err = LoadQuotas(file); err != nil {
		t.Fatal(err)
	}
	quota := &corev1.ResourceQuota{}
	expect := func(secrets string) {
		t.Helper()
		if _, err := reconcileDemo(t, r); err != nil {
			t.Fatal(err)
		}
		if err := r.Client.Get(ctx, client.ObjectKey{Namespace: "garden-demo", Name: "gardener"}, quota); err != nil {
			t.Fatal(err)
		}
		if got := quota.Spec.Hard["count/secrets"]; got.String() != secrets || quota.Labels["kind"] != "trial" {
			t.Errorf("limit = %s, labels %v, want %s", &got, quota.Labels, secrets)
		}
	}
	expect("3")
	// What an operator has granted stays; what is not configured goes.
	quota.Spec.Hard = corev1.ResourceList{"count/secrets": resource.MustParse("7"), "pods": resource.MustParse("1")}
	if err := r.Client.Update(ctx, quota); err != nil {
		t.Fatal(err)
	}
	expect("7")
	if _, stays := quota.Spec.Hard["pods"]; stays || len(quota.Spec.Hard) != 2 {
		t.Errorf("limits = %v", quota.Spec.Hard)
	}
}

func TestFirstQuotaThatSelects(t *testing.T) {
	file := filepath.Join(t.TempDir(), "quotas.yaml")
	if err := os.WriteFile(file, []byte(quotas), 0o600); err != nil {
		t.Fatal(err)
	}
	loaded, err := LoadQuotas(file)
	if err != nil {
		t.Fatal(err)
	}
	gold := newProject()
	gold.Labels = map[string]string{"tier": "gold"}
	if got, err := quotaFor(gold, loaded); err != nil || got != &loaded[0] {
		t.Errorf("gold has %v, %v", got, err)
	}
	if got, err := quotaFor(gold, loaded[1:][:0]); err != nil || got != nil {
		t.Errorf("without configurations: %v, %v", got, err)
	}
	if got, err := quotaFor(gold, []QuotaConfiguration{{}}); err != nil || got != nil {
		t.Errorf("a configuration without a selector selects %v, %v", got, err)
	}
}

func TestQuotasAreChecked(t *testing.T) {
	for content, want := range map[string]string{
		"- {projectSelectr: {}}": "projectSelectr",
		"- {projectSelector: {matchExpressions: [{key: a, operator: b}]}}":  "[0].projectSelector",
		"- {config: {spec: {hard: {count/shoots.core.gardener.cloud: 3}}}}": "[0].config.spec.hard[count/shoots.core.gardener.cloud]: nothing would keep to this limit",
	} {
		file := filepath.Join(t.TempDir(), "quotas.yaml")
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := LoadQuotas(file); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want it to name %s", content, err, want)
		}
	}
	if got, err := LoadQuotas(""); got != nil || err != nil {
		t.Errorf("no file: %v, %v", got, err)
	}
}
