package trellisctl

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/trellis-garden/trellis/pkg/apis"
	authenticationv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/authentication/v1alpha1"
	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
)

var today = time.Date(2026, 1, 2, 0, 0, 0, 0, time.UTC)

func project(name string, namespace *string) *gardencorev1beta1.Project {
	return &gardencorev1beta1.Project{
		ObjectMeta: metav1.ObjectMeta{Name: name, CreationTimestamp: metav1.NewTime(today.Add(-time.Hour))},
		Spec:       gardencorev1beta1.ProjectSpec{Namespace: namespace},
	}
}

func shoot(namespace, name, seed string) *gardencorev1beta1.Shoot {
	s := &gardencorev1beta1.Shoot{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: name, CreationTimestamp: metav1.NewTime(today.Add(-time.Hour)),
		},
	}
	s.Spec.Provider.Type, s.Spec.Kubernetes.Version = "local", "1.36.3"
	if seed != "" {
		s.Spec.SeedName, s.Status.TechnicalID = &seed, "shoot--"+name
	}
	return s
}

// session is one with a garden in memory. A project "new" has no namespace yet.
func session(t *testing.T, target Target, functions interceptor.Funcs, objects ...client.Object) *Session {
	t.Helper()
	demo, other := "garden-demo", "garden-other"
	all := append([]client.Object{project("demo", &demo), project("other", &other), project("new", nil)}, objects...)
	c := fake.NewClientBuilder().WithScheme(apis.GardenScheme()).
		WithObjects(all...).WithStatusSubresource(&gardencorev1beta1.Shoot{}).
		WithIndex(&gardencorev1beta1.Shoot{}, "metadata.name",
			func(o client.Object) []string { return []string{o.GetName()} }).
		WithIndex(&corev1.Event{}, "involvedObject.kind",
			eventField(func(about corev1.ObjectReference) string { return about.Kind })).
		WithIndex(&corev1.Event{}, "involvedObject.name",
			eventField(func(about corev1.ObjectReference) string { return about.Name })).
		WithInterceptorFuncs(functions).Build()
	return &Session{Target: target, garden: &Garden{Name: "local"}, client: c, watches: c}
}

func eventField(field func(corev1.ObjectReference) string) client.IndexerFunc {
	return func(object client.Object) []string {
		if event, ok := object.(*corev1.Event); ok {
			return []string{field(event.InvolvedObject)}
		}
		return nil
	}
}

func TestFindingAShoot(t *testing.T) {
	objects := []client.Object{
		shoot("garden-demo", "one", ""), shoot("garden-demo", "both", ""), shoot("garden-other", "both", ""),
	}
	for name, test := range map[string]struct {
		target Target
		// want is namespace/name, or a part of the error.
		want string
	}{
		"in its project":            {Target{Project: "other", Shoot: "both"}, "garden-other/both"},
		"the only one of that name": {Target{Shoot: "one"}, "garden-demo/one"},
		"one of several": {
			Target{Shoot: "both"}, `several projects have a shoot "both": choose one with --project, of demo, other`,
		},
		"none of that name": {Target{Shoot: "two"}, "`trellisctl ls shoots` shows those that do"},
		"none in that project": {
			Target{Project: "other", Shoot: "one"}, "`trellisctl ls shoots --project other` shows those that do",
		},
		"a project that is not there": {
			Target{Project: "none", Shoot: "one"}, `project "none" does not exist; ` + "`trellisctl ls projects`",
		},
		"a project that is made": {Target{Project: "new", Shoot: "one"}, "project new has no namespace yet"},
		"nothing":                {Target{Project: "demo"}, "no shoot is targeted: add --shoot NAME"},
	} {
		got, err := session(t, test.target, interceptor.Funcs{}, objects...).Shoot(t.Context())
		switch {
		case err != nil && !strings.Contains(err.Error(), test.want):
			t.Errorf("%s: got %v", name, err)
		case err == nil && got.Namespace+"/"+got.Name != test.want:
			t.Errorf("%s: got %s/%s", name, got.Namespace, got.Name)
		}
	}
}

// Who is no member of a project is told whom to ask.
func TestWhatIsForbidden(t *testing.T) {
	forbidden := interceptor.Funcs{
		Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
			return apierrors.NewForbidden(schema.GroupResource{Resource: "projects"}, "demo",
				errors.New("not a member"))
		},
	}
	_, err := session(t, Target{Project: "demo", Shoot: "one"}, forbidden).Shoot(t.Context())
	if err == nil || !strings.Contains(err.Error(), `you may not read project "demo": ask an owner of the project`) {
		t.Errorf("got %v", err)
	}
}

func lines(t *testing.T, out *bytes.Buffer, err error) []string {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	var result []string
	for line := range strings.Lines(out.String()) {
		result = append(result, strings.Join(strings.Fields(line), " "))
	}
	return result
}

func check(t *testing.T, what string, got, want []string) {
	t.Helper()
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("%s:\n%s\nwant\n%s", what, strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// listed lists as of today.
func listed(s *Session, k *gardenKind, options *listing, out io.Writer) *lister {
	l := s.lister(k, options, out)
	l.now = func() time.Time { return today }
	return l
}

func TestListingShoots(t *testing.T) {
	asleep, ranged := shoot("garden-demo", "asleep", "local"), shoot("garden-demo", "ranged", "local")
	on := true
	asleep.Spec.Hibernation, asleep.Status.IsHibernated = &gardencorev1beta1.Hibernation{Enabled: &on}, true
	ranged.Spec.Provider.Workers = []gardencorev1beta1.Worker{{Minimum: 1, Maximum: 2}, {Minimum: 1, Maximum: 1}}
	ranged.Status.LastOperation = &gardencorev1beta1.LastOperation{Type: "Create", State: "Processing", Progress: 40}
	ranged.Labels = map[string]string{"shoot.gardener.cloud/status": "progressing"}
	objects := []client.Object{shoot("garden-other", "fleet", ""), ranged, asleep, shoot("unknown", "stray", "")}
	header := "SHOOT PROJECT SEED PROVIDER VERSION NODES LAST OPERATION STATUS AGE"
	demo := []string{
		"asleep demo local local 1.36.3 hibernated waiting - 60m",
		"ranged demo local local 1.36.3 2-3 Create Processing (40%) progressing 60m",
	}
	for name, test := range map[string]struct {
		project string
		want    []string
	}{
		"of all projects": {
			"", append(append([]string{header}, demo...), "fleet other - local 1.36.3 none waiting - 60m",
				"stray unknown - local 1.36.3 none waiting - 60m"),
		},
		"of one": {"demo", append([]string{header}, demo...)},
	} {
		var out bytes.Buffer
		err := listed(session(t, Target{Project: test.project}, interceptor.Funcs{}, objects...), shootKind,
			&listing{}, &out).list(t.Context())
		check(t, name, lines(t, &out, err), test.want)
	}
	// A project without a namespace has no shoots; those of others are not its own.
	var out bytes.Buffer
	err := listed(session(t, Target{Project: "new"}, interceptor.Funcs{}, objects...), shootKind, &listing{},
		&out).list(t.Context())
	if err == nil || !strings.Contains(err.Error(), "project new has no namespace yet") || out.Len() > 0 {
		t.Errorf("got %q, %v", out.String(), err)
	}
}

func TestListingProjects(t *testing.T) {
	var out bytes.Buffer
	err := listed(session(t, Target{}, interceptor.Funcs{}), projectKind, &listing{}, &out).list(t.Context())
	check(t, "projects", lines(t, &out, err), []string{
		"PROJECT NAMESPACE STATUS OWNER AGE", "demo garden-demo - - 60m", "new - - - 60m", "other garden-other - - 60m",
	})
}

// Users who may not see all shoots see how many a seed could have, and not how many it has.
func TestListingSeeds(t *testing.T) {
	version := "1.36.3"
	seed := &gardencorev1beta1.Seed{
		ObjectMeta: metav1.ObjectMeta{Name: "local", CreationTimestamp: metav1.NewTime(today.Add(-time.Hour))},
	}
	seed.Spec.Provider.Type, seed.Spec.Provider.Region, seed.Status.KubernetesVersion = "local", "here", &version
	seed.Status.Allocatable = corev1.ResourceList{"shoots": resource.MustParse("250")}
	seed.Status.Conditions = []gardencorev1beta1.Condition{
		{Type: "GardenletReady", Status: gardencorev1beta1.ConditionTrue},
	}
	bare := &gardencorev1beta1.Seed{
		ObjectMeta: metav1.ObjectMeta{Name: "bare", CreationTimestamp: metav1.NewTime(today.Add(-time.Hour))},
	}
	forbidden := interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList,
			options ...client.ListOption) error {
			if _, ok := list.(*gardencorev1beta1.ShootList); ok {
				return apierrors.NewForbidden(schema.GroupResource{Resource: "shoots"}, "", errors.New("no operator"))
			}
			return c.List(ctx, list, options...)
		},
	}
	for name, test := range map[string]struct {
		functions      interceptor.Funcs
		bare, complete string
	}{
		"an operator": {interceptor.Funcs{}, "0", "2/250"}, "somebody else": {forbidden, "?", "?/250"},
	} {
		var out bytes.Buffer
		s := session(t, Target{}, test.functions, seed, bare, shoot("garden-demo", "one", "local"),
			shoot("garden-other", "two", "local"), shoot("garden-demo", "waiting", ""))
		err := listed(s, seedKind, &listing{}, &out).list(t.Context())
		check(t, name, lines(t, &out, err), []string{
			"SEED PROVIDER REGION VERSION READY SHOOTS AGE", "bare - - - Unknown " + test.bare + " 60m",
			"local local here 1.36.3 True " + test.complete + " 60m",
		})
	}
}

// A name of somebody else neither makes lines of its own nor columns.
func TestTablesKeepTheirShape(t *testing.T) {
	var out bytes.Buffer
	table := newTable(&out, "A", "B")
	table.row("x\ny\tz", "")
	err := table.Flush()
	check(t, "table", lines(t, &out, err), []string{"A B", "x y z -"})
}

func TestFormats(t *testing.T) {
	var output formatFlag
	output.wideFlag(&cobra.Command{}, "columns")
	if err := output.Set("yaml"); err == nil || err.Error() != "must be wide, or left out" || output.isWide() {
		t.Errorf("got %v, %v", output, err)
	}
	if err := output.Set("wide"); err != nil || !output.isWide() || output.String() != "wide" {
		t.Errorf("got %v, %v", output, err)
	}
	several := formatFlag{value: formatYAML}
	several.flag(&cobra.Command{}, formatYAML, formatJSON)
	if err := several.Set("xml"); err == nil || err.Error() != "must be one of yaml, json" || !several.isDocument() {
		t.Errorf("got %v, %v", several, err)
	}
}

func TestPodStates(t *testing.T) {
	now := metav1.Now()
	waiting := corev1.ContainerStatus{
		State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}},
	}
	for want, pod := range map[string]*corev1.Pod{
		"Running": {
			Status: corev1.PodStatus{
				Phase: corev1.PodRunning, ContainerStatuses: []corev1.ContainerStatus{{Ready: true}},
			},
		},
		"CrashLoopBackOff": {
			Status: corev1.PodStatus{
				Phase: corev1.PodRunning, ContainerStatuses: []corev1.ContainerStatus{{}, waiting},
			},
		},
		"Terminating": {
			ObjectMeta: metav1.ObjectMeta{DeletionTimestamp: &now},
			Status:     corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{waiting}},
		},
	} {
		if got := podState(pod); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

// kubeconfigOf is one of a cluster.
func kubeconfigOf(t *testing.T, server string) []byte {
	t.Helper()
	data, err := clientcmd.Write(clientcmdapi.Config{
		CurrentContext: "c", Contexts: map[string]*clientcmdapi.Context{"c": {Cluster: "c", AuthInfo: "c"}},
		Clusters:  map[string]*clientcmdapi.Cluster{"c": {Server: server}},
		AuthInfos: map[string]*clientcmdapi.AuthInfo{"c": {Token: "t"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// issuing plays the garden's subresources. It refuses administrators when forbidden.
func issuing(t *testing.T, forbidden bool, expiration *int64) interceptor.Funcs {
	return interceptor.Funcs{
		SubResourceCreate: func(_ context.Context, _ client.Client, name string, _, request client.Object,
			_ ...client.SubResourceCreateOption) error {
			switch typed := request.(type) {
			case *authenticationv1alpha1.AdminKubeconfigRequest:
				if forbidden {
					return apierrors.NewForbidden(schema.GroupResource{Resource: "shoots/adminkubeconfig"}, "one",
						errors.New("a viewer"))
				}
				typed.Status.Kubeconfig, *expiration = kubeconfigOf(t, "https://admin.example"),
					*typed.Spec.ExpirationSeconds
			case *authenticationv1alpha1.ViewerKubeconfigRequest:
				typed.Status.Kubeconfig, *expiration = kubeconfigOf(t, "https://viewer.example"),
					*typed.Spec.ExpirationSeconds
			default:
				t.Errorf("subresource %s with %T", name, request)
			}
			return nil
		},
	}
}

// Viewers get what they may by themselves, and nobody gets less than was asked for.
func TestAccessLevels(t *testing.T) {
	for name, test := range map[string]struct {
		level     AccessLevel
		forbidden bool
		want      string
	}{
		"auto, of an administrator":  {AccessAuto, false, "https://admin.example"},
		"auto, of a viewer":          {AccessAuto, true, "https://viewer.example"},
		"admin, of an administrator": {AccessAdmin, false, "https://admin.example"},
		"admin, of a viewer":         {AccessAdmin, true, "kubeconfig of shoot garden-demo/one: "},
		"viewer":                     {AccessViewer, false, "https://viewer.example"},
		"something else":             {"root", false, `access level "root": choose admin, viewer or auto`},
	} {
		expiration := int64(0)
		s := session(t, Target{Project: "demo", Shoot: "one"}, issuing(t, test.forbidden, &expiration),
			shoot("garden-demo", "one", "local"))
		got, err := s.Kubeconfig(t.Context(), test.level, 90*time.Minute)
		switch {
		case err != nil && !strings.Contains(err.Error(), test.want):
			t.Errorf("%s: got %v", name, err)
		case err == nil && (got.Clusters["c"].Server != test.want || expiration != 5400):
			t.Errorf("%s: got %s for %d s", name, got.Clusters["c"].Server, expiration)
		}
	}
}

// The control plane of a shoot is in a namespace of its seed, whose kubeconfig operators have stored.
func TestControlPlaneAccess(t *testing.T) {
	login := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "garden", Name: "local.login"},
		Data:       map[string][]byte{"kubeconfig": kubeconfigOf(t, "https://seed.example")},
	}
	target := Target{Project: "demo", Shoot: "one", ControlPlane: true}
	got, err := session(t, target, interceptor.Funcs{}, login,
		shoot("garden-demo", "one", "local")).Kubeconfig(t.Context(), AccessAuto, time.Hour)
	if err != nil || got.Clusters["c"].Server != "https://seed.example" || got.Contexts["c"].Namespace != "shoot--one" {
		t.Errorf("got %+v, %v", got, err)
	}
	_, err = session(t, target, interceptor.Funcs{}, login, shoot("garden-demo", "one", "")).Kubeconfig(t.Context(),
		AccessAuto, time.Hour)
	if err == nil || !strings.Contains(err.Error(), "shoot garden-demo/one has no control plane yet") {
		t.Errorf("got %v", err)
	}
	_, err = session(t, Target{Seed: "local"}, interceptor.Funcs{}).Kubeconfig(t.Context(), AccessAuto, time.Hour)
	if err == nil || !strings.Contains(err.Error(), "Secret garden/local.login, which operators may read") {
		t.Errorf("got %v", err)
	}
	login.Data["kubeconfig"] = []byte("\t")
	_, err = session(t, Target{Seed: "local"}, interceptor.Funcs{}, login).Kubeconfig(t.Context(), AccessAuto,
		time.Hour)
	if err == nil || !strings.Contains(err.Error(), "a kubeconfig that cannot be read") {
		t.Errorf("got %v", err)
	}
}

func TestHibernate(t *testing.T) {
	s := session(t, Target{Project: "demo", Shoot: "one"}, interceptor.Funcs{}, shoot("garden-demo", "one", "local"))
	for _, enabled := range []bool{true, true, false} {
		changed, err := s.Hibernate(t.Context(), enabled)
		if err != nil || changed.Spec.Hibernation == nil || *changed.Spec.Hibernation.Enabled != enabled {
			t.Errorf("got %+v, %v", changed, err)
		}
	}
}
