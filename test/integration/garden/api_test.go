package garden

import (
	"context"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
)

func TestDiscovery(t *testing.T) {
	discoverer, err := discovery.NewDiscoveryClientForConfig(env.Config)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string][]string{
		"core.gardener.cloud/v1beta1": {
			"shoots", "shoots/status", "shoots/binding", "shoots/adminkubeconfig", "shoots/viewerkubeconfig", "seeds",
			"seeds/status",
			"cloudprofiles", "namespacedcloudprofiles", "projects", "projects/status", "quotas", "secretbindings",
			"backupbuckets", "backupbuckets/status",
			"backupentries", "backupentries/status", "controllerregistrations", "controllerdeployments",
			"controllerinstallations",
			"controllerinstallations/status", "exposureclasses", "internalsecrets", "shootstates",
		},
		"security.gardener.cloud/v1alpha1": {"credentialsbindings", "workloadidentities"},
	}
	for version, resources := range want {
		list, err := discoverer.ServerResourcesForGroupVersion(version)
		if err != nil {
			t.Errorf("%s: %v", version, err)
			continue
		}
		served := map[string]metav1.APIResource{}
		for _, resource := range list.APIResources {
			served[resource.Name] = resource
		}
		for _, resource := range resources {
			if _, ok := served[resource]; !ok {
				t.Errorf("%s does not serve %s", version, resource)
			}
		}
	}
}

func TestTable(t *testing.T) {
	namespace := newProject(t, "table")
	create(t, newProfile("table"))
	create(t, newShoot(namespace, "member1", "table"))
	table := &metav1.Table{}
	if err := restClient(t).Get().AbsPath("/apis/core.gardener.cloud/v1beta1/namespaces/"+namespace+"/shoots").
		SetHeader("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io").
		Do(context.Background()).Into(table); err != nil {
		t.Fatal(err)
	}
	var columns []string
	for _, column := range table.ColumnDefinitions {
		if column.Priority == 0 {
			columns = append(columns, column.Name)
		}
	}
	if got, want := strings.Join(columns, ", "),
		"Name, CloudProfile, Provider, Region, K8S Version, Hibernation, Last Operation, Status, Age"; got != want {
		t.Errorf("columns = %s\nwant %s", got, want)
	}
	if len(table.Rows) != 1 || table.Rows[0].Cells[0] != "member1" || table.Rows[0].Cells[1] != "table" {
		t.Errorf("rows = %+v", table.Rows)
	}
}

func restClient(t *testing.T) rest.Interface {
	t.Helper()
	discoverer, err := discovery.NewDiscoveryClientForConfig(env.Config)
	if err != nil {
		t.Fatal(err)
	}
	return discoverer.RESTClient()
}

func TestOpenAPI(t *testing.T) {
	var body []byte
	eventually(t, func() (err error) { // kube-apiserver collects the schemas behind it from time to time
		body, err = restClient(t).Get().
			AbsPath("/openapi/v3/apis/core.gardener.cloud/v1beta1").DoRaw(context.Background())
		return err
	})
	for _, part := range []string{`"kind":"Shoot"`, `"cloudProfileName"`, `"x-kubernetes-group-version-kind"`} {
		if !strings.Contains(string(body), part) {
			t.Errorf("the published schema lacks %s", part)
		}
	}
	if strings.Contains(string(body), "__internal") {
		t.Error("the published schema names internal versions")
	}
}

func TestServerSideApplyAndDryRun(t *testing.T) {
	ctx := context.Background()
	profile := func() *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "core.gardener.cloud/v1beta1", "kind": "CloudProfile",
			"metadata": map[string]any{"name": "applied"},
			"spec": map[string]any{
				"type": "local", "kubernetes": map[string]any{"versions": []any{map[string]any{"version": "1.36.3"}}},
				"machineImages": []any{
					map[string]any{"name": "debian", "versions": []any{map[string]any{"version": "12.12.0"}}},
				},
				"machineTypes": []any{map[string]any{"name": "local", "cpu": "1", "gpu": "0", "memory": "2Gi"}},
				"regions":      []any{map[string]any{"name": "here"}},
			},
		}}
	}
	if err := env.Client.Create(ctx, profile(), client.DryRunAll); err != nil {
		t.Fatalf("dry run: %v", err)
	}
	if err := env.Client.Get(ctx, client.ObjectKey{Name: "applied"},
		&gardencorev1beta1.CloudProfile{}); !apierrors.IsNotFound(err) {
		t.Errorf("the dry run has stored something: %v", err)
	}
	for _, owner := range []string{"one", "one"} {
		if err := env.Client.Apply(ctx, client.ApplyConfigurationFromUnstructured(profile()),
			client.FieldOwner(owner)); err != nil {
			t.Fatalf("apply: %v", err)
		}
	}
	changed := profile()
	if err := unstructured.SetNestedField(changed.Object, "other", "spec", "type"); err != nil {
		t.Fatal(err)
	}
	err := env.Client.Apply(ctx, client.ApplyConfigurationFromUnstructured(changed), client.FieldOwner("two"))
	if !apierrors.IsConflict(err) || !strings.Contains(err.Error(), ".spec.type") {
		t.Errorf("apply of another owner: %v, want a conflict about .spec.type", err)
	}
}

func TestUnknownFieldsAreReported(t *testing.T) {
	profile := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "core.gardener.cloud/v1beta1", "kind": "CloudProfile", "metadata": map[string]any{"name": "typo"},
		"spec": map[string]any{"typ": "local"},
	}}
	err := env.Client.Create(context.Background(), profile, client.FieldValidation(metav1.FieldValidationStrict))
	if err == nil || !strings.Contains(err.Error(), `unknown field "spec.typ"`) {
		t.Errorf("error = %v, want it to name spec.typ", err)
	}
}
