package garden

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
)

// TestHostileBodies sends bodies of a mebibyte that would take the server seconds and gigabytes. They are refused by
// what they hold, before they are decoded, and the API goes on to answer.
func TestHostileBodies(t *testing.T) {
	create(t, newProfile("hostile"))
	namespace := newProject(t, "hostile")
	shoot := newShoot(namespace, "hostile", "hostile")
	create(t, shoot)
	workers :=
		`{"apiVersion":"core.gardener.cloud/v1beta1","kind":"Shoot","metadata":{"name":"hostile"},"spec":{"provider":{"workers":[` + many(`{}`, ",") + `]}}}`
	tooManyWorkers := fmt.Sprintf("spec.provider.workers: Too many: %d", 1<<20/3)
	for _, test := range []struct {
		name  string
		patch types.PatchType
		body  string
		code  int32
		want  string
	}{
		{"strategic merge patch", types.StrategicMergePatchType, workers, 422, tooManyWorkers},
		{"merge patch", types.MergePatchType, workers, 422, tooManyWorkers},
		{"apply", types.ApplyPatchType, workers, 422, tooManyWorkers},
		{"apply of YAML", types.ApplyPatchType, "spec:\n" + many("- {}", "\n"), 413, "send JSON"},
		{
			"JSON patch", types.JSONPatchType, `[` + many(`{"op":"copy","from":"/spec","path":"/spec/x"}`, ",") + `]`,
			413, "operations, at most 1000",
		},
		{
			"copies", types.JSONPatchType,
			`[{"op":"add","path":"/spec/x","value":["` + strings.Repeat("x", 10_000) + `"]}` +
				strings.Repeat(`,{"op":"copy","from":"/spec/x","path":"/spec/y"}`, 20) + `]`, 422, "",
		},
		{
			"labels", types.MergePatchType, `{"metadata":{"labels":{` + numbered(`"%d":""`) + `}}}`, 422,
			"metadata.labels: Too many",
		},
		{
			"finalizers", types.StrategicMergePatchType, `{"metadata":{"finalizers":[` + numbered(`"a/%d"`) + `]}}`,
			422, "metadata.finalizers: Too many",
		},
		{
			"managed fields", types.MergePatchType,
			`{"metadata":{"managedFields":[{"fieldsV1":{"f:z":{},` + numbered(`"f:%d":{}`) + `}}]}}`, 422,
			"metadata.managedFields: Too long",
		},
		{"brackets", types.MergePatchType, strings.Repeat("[", 1<<20), 400, "nested deeper"},
	} {
		t.Run(test.name, func(t *testing.T) {
			err := env.Client.Patch(context.Background(), shoot.DeepCopy(),
				client.RawPatch(test.patch, []byte(test.body)))
			requireStatus(t, err, test.code, test.want)
		})
	}
	t.Run("create", func(t *testing.T) {
		config := clientsetFor(t, "application/json")
		err := config.CoreV1beta1().RESTClient().
			Post().Namespace(namespace).Resource("shoots").Body([]byte(workers)).Do(context.Background()).Error()
		requireStatus(t, err, 422, tooManyWorkers)
	})
	t.Run("create with protobuf", func(t *testing.T) {
		large := newShoot(namespace, "large", "hostile")
		large.Spec.Provider.Workers = make([]gardencorev1beta1.Worker, 20_000)
		_, err := clientsetFor(t, "application/vnd.kubernetes.protobuf").
			CoreV1beta1().Shoots(namespace).Create(context.Background(), large, metav1.CreateOptions{})
		requireStatus(t, err, 422, "spec.provider.workers: Too many: 20000")
	})
	if err := get(shoot); err != nil {
		t.Error(err)
	}
}

// many repeats an item to a mebibyte.
func many(item, separator string) string {
	return strings.TrimSuffix(strings.Repeat(item+separator, 1<<20/len(item+separator)), separator)
}

// numbered repeats an item to about a mebibyte, with its number in place of %d.
func numbered(item string) string {
	var all bytes.Buffer
	for i := 0; all.Len() < 1<<20; i++ {
		if i > 0 {
			all.WriteByte(',')
		}
		fmt.Fprintf(&all, item, 1_000_000-i)
	}
	return all.String()
}

func requireStatus(t *testing.T, err error, code int32, message string) {
	t.Helper()
	status, ok := err.(apierrors.APIStatus) //nolint:errorlint // that is what clients return
	if !ok {
		t.Fatalf("error = %v, want a Status", err)
	}
	if got := status.Status(); got.Code != code || !strings.Contains(got.Message, message) {
		t.Errorf("answered %d %.200q, want %d %q", got.Code, got.Message, code, message)
	}
}
