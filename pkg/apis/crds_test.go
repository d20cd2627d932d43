package apis_test

import (
	"os"
	"path/filepath"
	"testing"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	crdvalidation "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	schemavalidation "k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/yaml"

	"github.com/trellis-garden/trellis/pkg/apis"
)

// The definitions that seeds get are accepted by an API server, and keep every field of the types that they are made
// from.
func TestCustomResourceDefinitions(t *testing.T) {
	files, err := filepath.Glob("../../charts/crds/seed/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no definitions found: %v", err)
	}
	own := sets.New[schema.GroupVersion]()
	for _, kind := range ownKinds(apis.SeedScheme()) {
		own.Insert(kind.GroupVersion())
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			crd := readDefinition(t, file)
			if errs := crdvalidation.ValidateCustomResourceDefinition(t.Context(), crd); len(errs) > 0 {
				t.Fatal(errs.ToAggregate())
			}
			kind := schema.GroupVersionKind{
				Group: crd.Spec.Group, Version: crd.Spec.Versions[0].Name, Kind: crd.Spec.Names.Kind,
			}
			if own.Has(kind.GroupVersion()) {
				keepsEveryField(t, crd, kind)
			}
		})
	}
}

func readDefinition(t *testing.T, file string) *apiextensions.CustomResourceDefinition {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var definition apiextensionsv1.CustomResourceDefinition
	if err := yaml.UnmarshalStrict(data, &definition); err != nil {
		t.Fatal(err)
	}
	apiextensionsv1.SetDefaults_CustomResourceDefinition(&definition)
	apiextensionsv1.SetDefaults_CustomResourceDefinitionSpec(&definition.Spec)
	// an API server fills these in when the definition is created
	definition.Status.StoredVersions = []string{definition.Spec.Versions[0].Name}
	var internal apiextensions.CustomResourceDefinition
	if err := apiextensionsv1.Convert_v1_CustomResourceDefinition_To_apiextensions_CustomResourceDefinition(&definition,
		&internal, nil); err != nil {
		t.Fatal(err)
	}
	return &internal
}

// keepsEveryField checks that random objects are valid and that nothing of them is pruned.
func keepsEveryField(t *testing.T, crd *apiextensions.CustomResourceDefinition, kind schema.GroupVersionKind) {
	t.Helper()
	definition := crd.Spec.Validation
	if definition == nil {
		definition = crd.Spec.Versions[0].Schema
	}
	structural, err := structuralschema.NewStructural(definition.OpenAPIV3Schema)
	if err != nil {
		t.Fatal(err)
	}
	validator, _, err := schemavalidation.NewSchemaValidator(definition.OpenAPIV3Schema)
	if err != nil {
		t.Fatal(err)
	}
	scheme := apis.SeedScheme()
	filler := fillerFor(scheme).NilChance(0)
	for range roundsPerKind {
		object, err := scheme.New(kind)
		if err != nil {
			t.Fatal(err)
		}
		filler.Fill(object)
		fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
		if err != nil {
			t.Fatal(err)
		}
		delete(fields, "metadata") // the API server knows it by itself
		delete(fields, "apiVersion")
		delete(fields, "kind")
		pruned := runtime.DeepCopyJSON(fields)
		pruning.Prune(pruned, structural, true)
		if !apiequality.Semantic.DeepEqual(fields, pruned) {
			t.Fatalf("was %v\nis pruned to %v", fields, pruned)
		}
		if errs := schemavalidation.ValidateCustomResource(nil, fields, validator); len(errs) > 0 {
			t.Fatalf("%v of %v", errs.ToAggregate(), fields)
		}
	}
}
