package project

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
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
		"- {projectSelectr: {}}": "[0].projectSelectr: Forbidden: there is no such field",
		"- {projectSelector: {matchExpressions: [{key: a, operator: b}]}}": "[0].projectSelector",
		"- {config: {spec: {hard: {shoots.core.gardener.cloud: " +
			"3}}}}": "[0].config.spec.hard[shoots.core.gardener.cloud]: nothing would keep to this limit",
	} {
		file := filepath.Join(t.TempDir(), "quotas.yaml")
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := LoadQuotas(file); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want it to name %s", content, err, want)
		}
	}
	if got, err := LoadQuotas(""); !apiequality.Semantic.DeepEqual(got, DefaultQuotas()) || err != nil {
		t.Errorf("no file: %v, %v, want the default", got, err)
	}
	file := filepath.Join(t.TempDir(), "quotas.yaml")
	if err := os.WriteFile(file, []byte("[]"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got, err := LoadQuotas(file); len(got) != 0 || err != nil {
		t.Errorf("an empty list: %v, %v", got, err)
	}
}

// A project from before the default quota keeps what it has, may have more, and creates on at once.
func TestQuotaOfWhoHasMore(t *testing.T) {
	namespace := &corev1.Namespace{
		ObjectMeta: metav1.ObjectMeta{Name: "garden-demo", Labels: namespaceLabels(newProject())},
	}
	objects := []client.Object{newProject(), namespace}
	for i := range 4 {
		objects = append(objects, &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace.Name, Name: fmt.Sprint(i)},
		})
	}
	r := newReconciler(objects...)
	r.Quotas = []QuotaConfiguration{{ProjectSelector: &metav1.LabelSelector{},
		Config: corev1.ResourceQuota{Spec: corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{
			"count/secrets": resource.MustParse("3"), "count/configmaps": resource.MustParse("3"),
			"requests.storage": resource.MustParse("1"), "count/unknown.example.com": resource.MustParse("1"),
		}}}}}
	if _, err := reconcileDemo(t, r); err != nil {
		t.Fatal(err)
	}
	quota := &corev1.ResourceQuota{}
	if err := r.Client.Get(t.Context(), client.ObjectKey{Namespace: namespace.Name, Name: resourceQuotaName},
		quota); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[corev1.ResourceName][2]string{
		"count/secrets": {"8", "4"}, "count/configmaps": {"3", "0"},
	} {
		limit, hard, used := quota.Spec.Hard[name], quota.Status.Hard[name], quota.Status.Used[name]
		if got := [2]string{limit.String(), used.String()}; got != want || hard.Cmp(limit) != 0 {
			t.Errorf("%s: limit and use %v, want %v, limit in the status %s", name, got, want, &hard)
		}
	}
	if len(quota.Spec.Hard) != 4 || len(quota.Status.Hard) != 2 {
		t.Errorf("what is not counted: spec %v, status %v", quota.Spec.Hard, quota.Status.Hard)
	}
}

func TestNamespaceGardenHasNoQuota(t *testing.T) {
	project := newProject()
	project.Spec.Namespace = new(gardencorev1beta1.GardenNamespace)
	r := newReconciler(project, &corev1.Namespace{
		ObjectMeta: metav1.ObjectMeta{Name: gardencorev1beta1.GardenNamespace, Labels: namespaceLabels(project)},
	})
	r.Quotas = DefaultQuotas()
	if _, err := reconcileDemo(t, r); err != nil {
		t.Fatal(err)
	}
	quotas := &corev1.ResourceQuotaList{}
	if err := r.Client.List(t.Context(), quotas); err != nil || len(quotas.Items) > 0 {
		t.Errorf("quotas %v, %v", quotas.Items, err)
	}
}

// kube-controller-manager may be first with the status, and leave out what is used of kinds that it does not know yet:
// then these are refused.
func TestQuotaWithoutWhatIsUsed(t *testing.T) {
	r := newReconciler(newProject())
	r.Quotas = []QuotaConfiguration{{ProjectSelector: &metav1.LabelSelector{}, Config: corev1.ResourceQuota{
		Spec: corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{"count/secrets": resource.MustParse("3")}},
	}}}
	if _, err := reconcileDemo(t, r); err != nil {
		t.Fatal(err)
	}
	quota := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: "garden-demo", Name: "gardener"}}
	if err := r.Client.Get(t.Context(), client.ObjectKeyFromObject(quota), quota); err != nil {
		t.Fatal(err)
	}
	quota.Status.Used = nil
	if err := r.Client.Status().Update(t.Context(), quota); err != nil {
		t.Fatal(err)
	}
	if _, err := reconcileDemo(t, r); err != nil {
		t.Fatal(err)
	}
	if err := r.Client.Get(t.Context(), client.ObjectKeyFromObject(quota), quota); err != nil {
		t.Fatal(err)
	}
	if _, counted := quota.Status.Used["count/secrets"]; !counted {
		t.Errorf("the status is %+v", quota.Status)
	}
}
