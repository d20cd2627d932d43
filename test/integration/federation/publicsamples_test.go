package federation

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const karmadaModule = "github.com/karmada-io/karmada"

// notOfFleets are the kinds of the samples that no fleet serves, by reason.
var notOfFleets = map[string]string{
	"search.karmada.io/v1alpha1 ResourceRegistry": "a fleet has no cache of its members' objects that could be " +
		"searched",
	"work.karmada.io/v1alpha1 ResourceBinding": "Karmada has replaced it by work.karmada.io/v1alpha2, and people " +
		"write neither",
}

// placeholders are what scripts beside the samples fill in.
var placeholders = strings.NewReplacer("{{karmada-interpreter-webhook-example-svc-address}}", "10.0.0.1",
	"{{caBundle}}", "YQ==")

// sample is a document of Karmada's.
type sample struct {
	file   string
	object *unstructured.Unstructured
}

// karmadaFolder is where the Go command has the version that fleets are compared with.
func karmadaFolder(t *testing.T) string {
	t.Helper()
	requirements, err := os.ReadFile("../../bench/karmada/go.mod")
	if err != nil {
		t.Fatal(err)
	}
	version := regexp.MustCompile(regexp.QuoteMeta(karmadaModule) + ` (v\S+)`).FindSubmatch(requirements)
	if version == nil {
		t.Fatalf("%s is not among the requirements of the comparison", karmadaModule)
	}
	command := exec.Command("go", "mod", "download", "-json", karmadaModule+"@"+string(version[1]))
	command.Dir = t.TempDir() // Not that of a module, which would be changed.
	out, err := command.Output()
	var module struct{ Dir, Error string }
	if parseErr := json.Unmarshal(out, &module); err != nil || parseErr != nil || module.Dir == "" {
		t.Fatalf("%s: %v, %v: %s", command, err, parseErr, out)
	}
	return module.Dir
}

// publicSamples are the documents in these folders of the module.
func publicSamples(t *testing.T, folders ...string) []sample {
	t.Helper()
	module := karmadaFolder(t)
	var all []sample
	for _, folder := range folders {
		err := filepath.WalkDir(filepath.Join(module, folder), func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() || filepath.Ext(path) != ".yaml" {
				return err
			}
			text, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			file, err := filepath.Rel(module, path)
			if err != nil {
				return err
			}
			for _, object := range parse(t, placeholders.Replace(string(text))) {
				// Others are arguments of a command.
				if object.GetKind() != "" {
					all = append(all, sample{file, object})
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return all
}

// TestPublicSamples: what users of Karmada begin with is accepted as it is, with strict decoding.
func TestPublicSamples(t *testing.T) {
	w := newWorld(t)
	samples := publicSamples(t, "samples", "examples", "artifacts/example")
	definitions := slices.DeleteFunc(slices.Clone(samples),
		func(s sample) bool { return s.object.GetKind() != "CustomResourceDefinition" })
	w.defineAll(t, definitions)
	w.inNamespaces(t, samples)
	kinds := map[string]int{}
	for _, s := range samples {
		kind := s.object.GetAPIVersion() + " " + s.object.GetKind()
		kinds[kind]++
		t.Run(fmt.Sprintf("%s %s %s", s.file, s.object.GetKind(), s.object.GetName()), func(t *testing.T) {
			err := w.accepted(s.object)
			switch _, foreign := notOfFleets[kind]; {
			case foreign && !meta.IsNoMatchError(err):
				t.Errorf("%s is served, which this test does not expect: %v", kind, err)
			case !foreign && err != nil && !apierrors.IsAlreadyExists(err):
				t.Error(err)
			}
		})
	}
	t.Logf("documents by kind: %v", kinds)
	wanted := slices.Collect(maps.Keys(notOfFleets))
	for _, kind := range append(wanted, "policy.karmada.io/v1alpha1 PropagationPolicy",
		"policy.karmada.io/v1alpha1 OverridePolicy", "apps/v1 Deployment") {
		if kinds[kind] == 0 {
			t.Errorf("no document of %s was found", kind)
		}
	}
	t.Run("nginx reaches the members", func(t *testing.T) { w.nginxArrives(t, samples) })
}

// accepted tells whether an object would be created, without doing it.
func (w *world) accepted(object *unstructured.Unstructured) error {
	object = object.DeepCopy()
	namespaced, err := w.fleet.IsObjectNamespaced(object)
	if err != nil {
		return err
	}
	if namespaced && object.GetNamespace() == "" {
		object.SetNamespace(metav1.NamespaceDefault)
	}
	return client.WithFieldValidation(w.fleet, metav1.FieldValidationStrict).Create(ctx, object, client.DryRunAll)
}

// defineAll has the fleet serve kinds until the test ends.
func (w *world) defineAll(t *testing.T, definitions []sample) {
	t.Helper()
	for _, s := range definitions {
		group, _, _ := unstructured.NestedString(s.object.Object, "spec", "group")
		definition := s.object.DeepCopy()
		if err := client.WithFieldValidation(w.fleet, metav1.FieldValidationStrict).Create(ctx,
			definition); err != nil {
			t.Fatalf("%s: %v", s.file, err)
		}
		t.Cleanup(func() {
			remove(t, w.fleet, definition)
			w.notServed(t, group)
		})
		// The client learns of kinds by discovery, which tells of one a while after it is established.
		eventually(t, s.file+" is served", func() error {
			kind, _, _ := unstructured.NestedString(s.object.Object, "spec", "names", "kind")
			_, err := w.fleet.RESTMapper().RESTMapping(schema.GroupKind{Group: group, Kind: kind})
			return err
		})
	}
}

// inNamespaces makes those that the samples have, until the test ends.
func (w *world) inNamespaces(t *testing.T, samples []sample) {
	t.Helper()
	for _, s := range samples {
		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.object.GetNamespace()}}
		if namespace.Name == "" || w.fleet.Get(ctx, client.ObjectKeyFromObject(namespace), namespace) == nil {
			continue
		}
		if err := w.fleet.Create(ctx, namespace); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			remove(t, w.fleet, namespace)
			w.finalizeNamespace(t, namespace.Name)
		})
	}
}

// nginxArrives does what Karmada's introduction has people do first.
func (w *world) nginxArrives(t *testing.T, samples []sample) {
	w.startFederation(t)
	namespace := w.newNamespace(t)
	for _, s := range samples {
		if filepath.Dir(s.file) == "samples/nginx" {
			if err := client.WithFieldValidation(w.fleet, metav1.FieldValidationStrict).Create(ctx,
				in(namespace, s.object.DeepCopy())); err != nil {
				t.Fatal(err)
			}
		}
	}
	w.replicasIn(t, namespace, 1, 1)
}
