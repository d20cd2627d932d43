package apiserver

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	openapinamer "k8s.io/apiserver/pkg/endpoints/openapi"
	apirequest "k8s.io/apiserver/pkg/endpoints/request"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/kube-openapi/pkg/builder3"
	"sigs.k8s.io/yaml"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-garden/trellis/pkg/apis/generated/openapi"
	"github.com/trellis-garden/trellis/pkg/apiserver/decoding"
)

// repeated returns n items, in which %d is the number of the item.
func repeated(n int, item string) string {
	items := make([]string, n)
	for i := range items {
		items[i] = item
		if strings.Contains(item, "%") {
			items[i] = strings.ReplaceAll(item, "%d", fmt.Sprintf("%06d", i))
		}
	}
	return strings.Join(items, ",")
}

// largest are objects that are as large as is accepted: with lists of so many items, and so many values altogether.
func largest(items, values int) map[string]string {
	lists := values / 2 / items
	return map[string]string{
		"Shoot/workers":       `"spec":{"provider":{"workers":[` + repeated(items, `{"name":"w%d"}`) + `]}}`,
		"Shoot/empty workers": `"spec":{"provider":{"workers":[` + repeated(items, `{}`) + `]}}`,
		"CloudProfile/types": `"spec":{"machineTypes":[` +
			repeated(items, `{"name":"w%d","cpu":"1","gpu":"0","memory":"1Gi","usable":true}`) + `]}`,
		"CloudProfile/versions": `"spec":{"machineImages":[` +
			repeated(lists, `{"name":"i%d","versions":[`+repeated(items*9/10, `{"version":"%d"}`)+`]}`) + `]}`,
		"InternalSecret/data": `"data":{` + repeated(items, `"k%d":""`) + `}`,
		"Shoot/providerConfig": `"spec":{"provider":{"providerConfig":{` +
			repeated(2*lists, `"a%d":[`+repeated(items*9/10, `1`)+`]`) + `}}}`,
		"Shoot/metadata": `"metadata":{"name":"a","namespace":"b",` + fullMetadata + `}`,
		"Shoot/managedFields": `"metadata":{"name":"a","namespace":"b","managedFields":[` +
			managedBy(`{`+repeated(decoding.MaxManagedFields/17, `"f:%d":{}`)+`}`) + `]}`,
		"Shoot/unsorted managed": `"metadata":{"name":"a","namespace":"b","managedFields":[` +
			managedBy(unsorted(decoding.MaxUnsortedManagedFields/17)) + `]}`,
	}
}

var fullMetadata = `"labels":{` + repeated(decoding.MaxMetadata, `"l%d":"a"`) + `},"annotations":{` +
	repeated(decoding.MaxMetadata, `"l%d":"a"`) +
	`},"finalizers":[` + repeated(decoding.MaxMetadata, `"a/%d"`) + `],"ownerReferences":[` +
	repeated(decoding.MaxMetadata, `{"uid":"%d"}`) + `]`

func managedBy(fields string) string {
	return `{"manager":"m","operation":"Update","apiVersion":"core.gardener.cloud/v1beta1","fieldsType":"FieldsV1","time":"2020-01-01T00:00:00Z","fieldsV1":` + fields + `}`
}

// BenchmarkLargest takes the largest bodies that are accepted through what is expensive about them: decoding, tracking
// of managed fields, and server-side apply.
func BenchmarkLargest(b *testing.B) {
	for name, content := range largest(decoding.MaxItems, decoding.MaxValues) {
		gvk, body := objectOf(name, content)
		manager := newFieldManager(b, gvk)
		b.Run("decode/"+name, func(b *testing.B) {
			for b.Loop() {
				decodeJSON(b, gvk, body)
			}
		})
		b.Run("update/"+name, func(b *testing.B) {
			live, object := newObject(b, gvk), decodeJSON(b, gvk, body)
			for b.Loop() {
				manager.UpdateNoErrors(live, object.DeepCopyObject(), "test")
			}
		})
	}
	for name, content := range largest(decoding.MaxMergedItems, decoding.MaxMergedValues) {
		gvk, body := objectOf(name, content)
		manager := newFieldManager(b, gvk)
		b.Run("apply/"+name, func(b *testing.B) {
			live := newObject(b, gvk)
			for b.Loop() {
				patch := &unstructured.Unstructured{}
				if err := yaml.Unmarshal(body, &patch.Object); err != nil {
					b.Fatal(err)
				}
				_, _ = manager.Apply(live, patch, "test", true) // some are refused, late
			}
		})
	}
}

// BenchmarkStrategicMerge merges the largest patches that are accepted into the largest objects.
func BenchmarkStrategicMerge(b *testing.B) {
	present := largest(decoding.MaxMergedItems, decoding.MaxValues)
	for name, content := range largest(decoding.MaxMergedItems, decoding.MaxMergedValues) {
		gvk, patch := objectOf(name, content)
		_, body := objectOf(name, present[name])
		object := decodeJSON(b, gvk, body)
		original, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
		if err != nil {
			b.Fatal(err)
		}
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				changes := map[string]any{}
				if err := json.Unmarshal(patch, &changes); err != nil {
					b.Fatal(err)
				}
				_, _ = strategicpatch.StrategicMergeMapPatch(original, changes, object) // some are refused, late
			}
		})
	}
}

// objectOf returns the kind that a name begins with, and its object with some content.
func objectOf(name, content string) (schema.GroupVersionKind, []byte) {
	kind, _, _ := strings.Cut(name, "/")
	if !strings.HasPrefix(content, `"metadata"`) {
		content = `"metadata":{"name":"a","namespace":"b"},` + content
	}
	return gardencorev1beta1.SchemeGroupVersion.WithKind(kind),
		[]byte(`{"apiVersion":"core.gardener.cloud/v1beta1","kind":"` + kind + `",` + content + `}`)
}

// The largest objects are accepted, so that the benchmarks measure what is possible.
func TestLargestAreAccepted(t *testing.T) {
	for _, test := range []struct {
		method, format string
		objects        map[string]string
	}{
		{http.MethodPost, "application/json", largest(decoding.MaxItems, decoding.MaxValues)},
		{http.MethodPatch, "application/apply-patch+yaml", largest(decoding.MaxMergedItems, decoding.MaxMergedValues)},
		{
			http.MethodPatch, "application/strategic-merge-patch+json",
			largest(decoding.MaxMergedItems, decoding.MaxMergedValues),
		},
	} {
		for name, content := range test.objects {
			t.Run(test.format+" "+name, func(t *testing.T) {
				_, body := objectOf(name, content)
				request := httptest.NewRequest(test.method, "/", bytes.NewReader(body))
				request.Header.Set("Content-Type", test.format)
				request = request.WithContext(apirequest.WithRequestInfo(request.Context(),
					&apirequest.RequestInfo{IsResourceRequest: true, APIGroup: gardencorev1beta1.GroupName}))
				passed, answer := false, httptest.NewRecorder()
				filter := &decoding.Filter{Scheme: Scheme, Codecs: Codecs, MaxBytes: 3 << 20}
				filter.Wrap(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
					passed = true
				})).ServeHTTP(answer, request)
				if !passed {
					t.Errorf("refused: %s", answer.Body)
				}
			})
		}
	}
}

func unsorted(n int) string {
	var s []string
	for i := range n {
		s = append(s, fmt.Sprintf(`"f:%06d":{}`, n-i))
	}
	return `{` + strings.Join(s, ",") + `}`
}

func newObject(b *testing.B, gvk schema.GroupVersionKind) runtime.Object {
	object, err := Scheme.New(gvk)
	if err != nil {
		b.Fatal(err)
	}
	object.GetObjectKind().SetGroupVersionKind(gvk)
	object.(metav1.Object).SetName("a")
	object.(metav1.Object).SetNamespace("b")
	return object
}

func decodeJSON(b *testing.B, gvk schema.GroupVersionKind, body []byte) runtime.Object {
	object := newObject(b, gvk)
	if err := json.Unmarshal(body, object); err != nil {
		b.Fatal(err)
	}
	return object
}

func newFieldManager(b *testing.B, gvk schema.GroupVersionKind) *managedfields.FieldManager {
	namer := openapinamer.NewDefinitionNamer(wireScheme)
	config := genericapiserver.DefaultOpenAPIV3Config(openapi.GetOpenAPIDefinitions, namer)
	name, err := wireScheme.ToOpenAPIDefinitionName(gvk)
	if err != nil {
		b.Fatal(err)
	}
	definitions, err := builder3.BuildOpenAPIDefinitionsForResources(config, name)
	if err != nil {
		b.Fatal(err)
	}
	converter, err := managedfields.NewTypeConverter(definitions, false)
	if err != nil {
		b.Fatal(err)
	}
	manager, err := managedfields.NewDefaultFieldManager(converter, Scheme, Scheme, Scheme, gvk,
		schema.GroupVersion{Group: gvk.Group, Version: runtime.APIVersionInternal}, "", nil)
	if err != nil {
		b.Fatal(err)
	}
	return manager
}
