package managedresource

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	resourcesv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/resources/v1alpha1"
)

func TestMark(t *testing.T) {
	deployment := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"template": map[string]any{
		"metadata": map[string]any{"labels": map[string]any{"app": "c"}},
	}}}}
	Mark(deployment, "seed:ns/mr", map[string]string{"team": "blue"})

	if got := deployment.GetAnnotations()[resourcesv1alpha1.OriginAnnotation]; got != "seed:ns/mr" {
		t.Errorf("origin is %q", got)
	}
	labels := deployment.GetLabels()
	if labels["team"] != "blue" || labels[resourcesv1alpha1.ManagedBy] != resourcesv1alpha1.GardenerManager {
		t.Errorf("labels are %v", labels)
	}
	pods, _, _ := unstructured.NestedStringMap(deployment.Object, "spec", "template", "metadata", "labels")
	if pods["team"] != "blue" || pods["app"] != "c" {
		t.Errorf("labels of the pod template are %v", pods)
	}
}

func TestPhasesPutFirstWhatOthersNeed(t *testing.T) {
	kinds := []struct{ apiVersion, kind string }{
		{"apps/v1", "Deployment"}, {"admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration"},
		{"v1", "ConfigMap"},
		{"rbac.authorization.k8s.io/v1", "ClusterRoleBinding"}, {"rbac.authorization.k8s.io/v1", "ClusterRole"},
		{"apiextensions.k8s.io/v1", "CustomResourceDefinition"}, {"v1", "Namespace"}, {"example.com/v1", "Thing"},
		{"v1", "ServiceAccount"},
	}
	var objects []*unstructured.Unstructured
	for _, k := range kinds {
		object := &unstructured.Unstructured{}
		object.SetAPIVersion(k.apiVersion)
		object.SetKind(k.kind)
		objects = append(objects, object)
	}
	var got []string
	for _, phase := range Phases(objects) {
		var names []string
		for _, object := range phase {
			names = append(names, object.GetKind())
		}
		got = append(got, strings.Join(names, ","))
	}
	want := []string{
		"CustomResourceDefinition,Namespace", "ClusterRole,ServiceAccount", "ConfigMap,ClusterRoleBinding",
		"Deployment,Thing", "ValidatingWebhookConfiguration",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got  %v\nwant %v", got, want)
	}
}

func TestStale(t *testing.T) {
	ref := func(apiVersion, kind, name string) resourcesv1alpha1.ObjectReference {
		return resourcesv1alpha1.ObjectReference{
			ObjectReference: corev1.ObjectReference{APIVersion: apiVersion, Kind: kind, Namespace: "n", Name: name},
		}
	}
	for _, test := range []struct {
		name         string
		old, current []resourcesv1alpha1.ObjectReference
		equivalences Equivalences
		want         []string
	}{
		{name: "nothing left", old: []resourcesv1alpha1.ObjectReference{ref("v1", "Secret", "a")}, want: []string{"a"}},
		{
			name: "still listed in another version",
			old:  []resourcesv1alpha1.ObjectReference{ref("apps/v1beta1", "Deployment", "a"), ref("v1", "Secret", "b")},
			current: []resourcesv1alpha1.ObjectReference{
				ref("apps/v1", "Deployment", "a"), ref("v1", "Secret", "c"),
			},
			want: []string{"b"},
		},
		{
			name:    "moved to another group of Kubernetes",
			old:     []resourcesv1alpha1.ObjectReference{ref("extensions/v1beta1", "Ingress", "a")},
			current: []resourcesv1alpha1.ObjectReference{ref("networking.k8s.io/v1", "Ingress", "a")},
		},
		{
			name:    "moved to a kind that the user calls equivalent",
			old:     []resourcesv1alpha1.ObjectReference{ref("old.io/v1", "Thing", "a")},
			current: []resourcesv1alpha1.ObjectReference{ref("new.io/v1", "Thing", "a")},
			equivalences: Equivalences{
				{metav1.GroupKind{Group: "old.io", Kind: "Thing"}, metav1.GroupKind{Group: "new.io", Kind: "Thing"}},
			},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			var got []string
			for _, stale := range Stale(test.old, test.current, test.equivalences) {
				got = append(got, stale.Name)
			}
			if !slices.Equal(got, test.want) {
				t.Errorf("got %v, want %v", got, test.want)
			}
		})
	}
}

func TestChecksumChangesWithContentOnly(t *testing.T) {
	a := Checksum([]map[string][]byte{{"x": []byte("1"), "y": []byte("2")}})
	if b := Checksum([]map[string][]byte{{"y": []byte("2"), "x": []byte("1")}}); a != b {
		t.Error("the order of keys matters")
	}
	if b := Checksum([]map[string][]byte{{"x": []byte("12"), "y": []byte("")}}); a == b {
		t.Error("moving content between keys does not matter")
	}
}

func TestHealth(t *testing.T) {
	for _, test := range []struct {
		name, yaml             string
		unhealthy, progressing bool
	}{
		{"kinds without health", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}", false, false},
		{
			"deployment without replicas yet",
			"apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: a, generation: 1}\nstatus: " +
				"{observedGeneration: 1}", true, true,
		},
		{
			"deployment not seen", "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: a, generation: 2}\n" +
				"status: {observedGeneration: 1, availableReplicas: 1, updatedReplicas: 1}", false, true,
		},
		{
			"deployment available", "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: a, generation: 1}\n" +
				"status: {observedGeneration: 1, availableReplicas: 1, updatedReplicas: 1}", false, false,
		},
		{
			"daemon set without nodes", "apiVersion: apps/v1\nkind: DaemonSet\nmetadata: {name: a, generation: 1}\n" +
				"status: {observedGeneration: 1}", false, false,
		},
		{
			"daemon set not everywhere", "apiVersion: apps/v1\nkind: DaemonSet\nmetadata: {name: a, generation: 1}\n" +
				"status: {observedGeneration: 1, desiredNumberScheduled: 2, updatedNumberScheduled: 2, " +
				"numberAvailable: 1}", true, false,
		},
		{
			"CRD", "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: a}\n" +
				"status: {conditions: [{type: Established, status: 'True'}]}", false, false,
		},
		{
			"APIService", "apiVersion: apiregistration.k8s.io/v1\nkind: APIService\nmetadata: {name: a}\nstatus: " +
				"{conditions: [{type: Available, status: 'False'}]}", true, false,
		},
		{
			"skipped", "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: a, annotations: " +
				"{resources.gardener.cloud/skip-health-check: 'true'}}", false, false,
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			health := CheckHealth(parse(t, test.yaml))
			if (health.Unhealthy != "") != test.unhealthy || (health.Progressing != "") != test.progressing {
				t.Errorf("got %+v", health)
			}
		})
	}
}
