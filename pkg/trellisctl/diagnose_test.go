package trellisctl

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/trellis-garden/trellis/pkg/apis"
	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	extensionsv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/extensions/v1alpha1"
	"github.com/trellis-garden/trellis/pkg/trellisctl/bundle"
)

// hunter is what must be in no archive.
const hunter = "hunter2hunter2"

// controlPlane is a seed that has all kinds of secrets where they could be.
func controlPlane() []client.Object {
	infrastructure := &extensionsv1alpha1.Infrastructure{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "shoot--one", Name: "one", Annotations: map[string]string{
				"kubectl.kubernetes.io/last-applied-configuration": `{"spec":"` + hunter + `"}`,
			},
		},
	}
	state, err := json.Marshal(map[string]string{"any": hunter})
	if err != nil {
		panic(err)
	}
	infrastructure.Status.State = &runtime.RawExtension{Raw: state}
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shoot--one", Name: "etcd-main-0"},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{
			Name: "etcd", Args: []string{"--auth-token", hunter},
			Env: []corev1.EnvVar{{Name: "BACKUP_PASSWORD", Value: hunter}},
		}}},
		Status: corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{Name: "etcd", RestartCount: 1}}},
	}
	return []client.Object{
		infrastructure, pod,
		&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shoot--other", Name: "of-somebody-else"}},
		&corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shoot--one", Name: "ca"},
			Data:       map[string][]byte{"a": []byte(hunter)},
		},
		&corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shoot--one", Name: "c"}, Data: map[string]string{"a": hunter},
		},
	}
}

// diagnosed are the files of an archive about a shoot.
func diagnosed(t *testing.T, target Target, objects []client.Object,
	seedFunctions interceptor.Funcs) map[string]string {
	t.Helper()
	var out bytes.Buffer
	d := &diagnosis{
		session: session(t, target, interceptor.Funcs{}, objects...),
		archive: bundle.New(&out, "report", 1<<20, today), tail: 10, now: today,
		open: func(*clientcmdapi.Config) (*seedAPI, error) {
			return &seedAPI{
				client: fake.NewClientBuilder().WithScheme(apis.SeedScheme()).WithObjects(controlPlane()...).
					WithInterceptorFuncs(seedFunctions).Build(),
				version: func() (string, error) { return "v1.36.3", nil },
				logs: func(_ context.Context, _, pod string, options *corev1.PodLogOptions) (string, error) {
					if options.Previous {
						return "", errors.New("it was too long ago")
					}
					return fmt.Sprintf("%s %s: password=%s\n", pod, options.Container, hunter), nil
				},
			}, nil
		},
	}
	if err := errors.Join(d.collect(t.Context()), d.archive.Close()); err != nil {
		t.Fatal(err)
	}
	return unpacked(t, out.Bytes())
}

func unpacked(t *testing.T, archive []byte) map[string]string {
	t.Helper()
	plain, err := gzip.NewReader(bytes.NewReader(archive))
	if err != nil {
		t.Fatal(err)
	}
	result := map[string]string{}
	for files := tar.NewReader(plain); ; {
		header, err := files.Next()
		if errors.Is(err, io.EOF) {
			return result
		}
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(files)
		if err != nil {
			t.Fatal(err)
		}
		_, name, _ := strings.Cut(header.Name, "/")
		result[name] = string(text)
	}
}

func login() client.Object {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "garden", Name: "local.login"},
		Data:       map[string][]byte{"kubeconfig": []byte("apiVersion: v1\nkind: Config\n")},
	}
}

func eventAbout(name string) client.Object {
	return &corev1.Event{
		ObjectMeta:     metav1.ObjectMeta{Namespace: "garden-demo", Name: "about-" + name},
		InvolvedObject: corev1.ObjectReference{Kind: "Shoot", Name: name}, Message: "token: " + hunter,
	}
}

func TestDiagnoseShoot(t *testing.T) {
	one := shoot("garden-demo", "one", "local")
	one.Status.Conditions = []gardencorev1beta1.Condition{{Type: "APIServerAvailable", Status: "False", Reason: "Down"}}
	objects := []client.Object{
		one, login(), eventAbout("one"), eventAbout("two"),
		&gardencorev1beta1.Seed{ObjectMeta: metav1.ObjectMeta{Name: "local"}},
	}
	got := diagnosed(t, Target{Project: "demo", Shoot: "one"}, objects, interceptor.Funcs{})
	want := []string{
		"control-plane/infrastructures.yaml", "control-plane/logs/etcd-main-0/etcd.log", "control-plane/pods.yaml",
		"garden/conditions.txt", "garden/events.yaml", "garden/project.yaml", "garden/seed.yaml", "garden/shoot.yaml",
		"missing.txt", "seed-version.txt", "versions.txt",
	}
	check(t, "files", slices.Sorted(maps.Keys(got)), want)
	for file, part := range map[string]string{
		"garden/shoot.yaml": "kind: Shoot", "garden/conditions.txt": "APIServerAvailable", "seed-version.txt": "v1.36.3",
		"garden/events.yaml":                      "about-one",
		"control-plane/logs/etcd-main-0/etcd.log": "etcd-main-0 etcd: password=[redacted]",
		"missing.txt":                             "control-plane/logs/etcd-main-0/etcd.previous.log: it was too long ago",
	} {
		if !strings.Contains(got[file], part) {
			t.Errorf("%s: got %q, want %q", file, got[file], part)
		}
	}
	for file, text := range got {
		for _, other := range []string{hunter, "of-somebody-else", "about-two"} {
			if strings.Contains(text, other) {
				t.Errorf("%s has %s: %s", file, other, text)
			}
		}
	}
}

// Who may not look into a seed still gets an archive, which says so.
func TestDiagnoseSaysWhatIsMissing(t *testing.T) {
	forbidden := interceptor.Funcs{
		List: func(
			ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption,
		) error {
			if _, ok := list.(*corev1.PodList); ok {
				return apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "", errors.New("a viewer"))
			}
			return c.List(ctx, list, options...)
		},
	}
	one := shoot("garden-demo", "one", "local")
	for name, test := range map[string]struct {
		target  Target
		objects []client.Object
		want    string
	}{
		"no access to the seed": {
			Target{Shoot: "one"}, []client.Object{one}, "control plane: access to seed local",
		},
		"no pods": {
			Target{Shoot: "one"}, []client.Object{one, login()}, "control-plane/pods.yaml: pods is",
		},
		"no Seed":                    {Target{Shoot: "one"}, []client.Object{one}, "garden/seed.yaml: "},
		"of a seed, without its API": {Target{Seed: "local"}, nil, "seed: access to seed local"},
		"not scheduled yet": {
			Target{Shoot: "young"}, []client.Object{shoot("garden-demo", "young", "")}, "has no control plane yet",
		},
		"no project": {Target{Shoot: "stray"}, []client.Object{shoot("stray", "stray", "")}, "project: you see none"},
	} {
		got := diagnosed(t, test.target, test.objects, forbidden)
		if !strings.Contains(got["missing.txt"], test.want) {
			t.Errorf("%s: got %s", name, got["missing.txt"])
		}
	}
}

// The file is its user's, and nobody's file is replaced.
func TestArchivesAreNewFiles(t *testing.T) {
	t.Chdir(t.TempDir())
	s := session(t, Target{Project: "demo", Shoot: "one"}, interceptor.Funcs{}, shoot("garden-demo", "one", "local"))
	var said string
	tell := func(format string, values ...any) { said = fmt.Sprintf(format, values...) }
	if err := s.Diagnose(t.Context(), diagnoseOptions{sizeMiB: 1}, today, tell); err != nil {
		t.Fatal(err)
	}
	path := "trellis-one-20260102-000000.tar.gz"
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 || !strings.Contains(said, path) {
		t.Errorf("got %v, %v, %s", info, err, said)
	}
	text, err := os.ReadFile(path)
	if err != nil || unpacked(t, text)["garden/shoot.yaml"] == "" {
		t.Errorf("got %v", err)
	}
	err = s.Diagnose(t.Context(), diagnoseOptions{sizeMiB: 1}, today, tell)
	if err == nil || !strings.Contains(err.Error(), "is there already") {
		t.Errorf("got %v", err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	other := filepath.Join(t.TempDir(), "other.tar.gz")
	if err := s.Diagnose(ended, diagnoseOptions{sizeMiB: 1, file: other}, today, tell); err == nil {
		t.Error("what was interrupted has succeeded")
	}
	if _, err := os.Stat(other); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the file of what was interrupted: %v", err)
	}
	err = session(t, Target{}, interceptor.Funcs{}).Diagnose(t.Context(), diagnoseOptions{}, time.Time{}, tell)
	if err == nil || !strings.Contains(err.Error(), "--seed NAME") {
		t.Errorf("got %v", err)
	}
}
