package clusterautoscaler

import (
	"context"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/trellis-garden/trellis/pkg/apis"
	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	extensionsv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/extensions/v1alpha1"
	resourcesv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-garden/trellis/pkg/clusterautoscaler"
	"github.com/trellis-garden/trellis/pkg/component"
	"github.com/trellis-garden/trellis/pkg/component/golden"
	"github.com/trellis-garden/trellis/pkg/component/managedresources"
	"github.com/trellis-garden/trellis/pkg/secrets"
)

const namespace = "shoot--demo--member1"

func values(config *gardencorev1beta1.ClusterAutoscaler) Values {
	return Values{
		Image: "cluster-autoscaler:v1", Kubeconfig: "generic-token-kubeconfig-11111111", Config: config,
		PriorityClass: component.PriorityControlPlane300,
		MachineDeployments: []extensionsv1alpha1.MachineDeployment{
			{Name: namespace + "-small-z1", Minimum: 1, Maximum: 3, Priority: new(int32(10))},
			{Name: namespace + "-large-z1", Maximum: 2},
		},
	}
}

// settings are all that a user can make.
func settings() *gardencorev1beta1.ClusterAutoscaler {
	minutes := func(n int) *metav1.Duration { return &metav1.Duration{Duration: time.Duration(n) * time.Minute} }
	return &gardencorev1beta1.ClusterAutoscaler{
		ScaleDownDelayAfterAdd: minutes(1), ScaleDownDelayAfterDelete: minutes(2),
		ScaleDownDelayAfterFailure: minutes(30), ScaleDownUnneededTime: minutes(4),
		ScaleDownUtilizationThreshold: new(0.75), ScanInterval: minutes(5),
		Expander:             new(gardencorev1beta1.ExpanderMode("priority,most-pods")),
		MaxNodeProvisionTime: minutes(6), MaxGracefulTerminationSeconds: new(int32(7)), IgnoreTaints: []string{"a"},
		NewPodScaleUpDelay:          minutes(8),
		IgnoreDaemonsetsUtilization: new(true), Verbosity: new(int32(4)), StartupTaints: []string{"b", "c"},
		StatusTaints:            []string{"d"},
		MaxScaleDownParallelism: new(int32(9)), MaxDrainParallelism: new(int32(10)),
		InitialNodeGroupBackoffDuration: minutes(11),
		MaxNodeGroupBackoffDuration:     minutes(12), NodeGroupBackoffResetTimeout: minutes(13),
		EmitPerNodeGroupMetrics: new(true), MaxBinpackingTime: minutes(14),
		Autoscaling: &gardencorev1beta1.ControlPlaneAutoscaling{
			MinAllowed: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("200Mi")},
		},
	}
}

// pair are the values of a highly available control plane.
func pair(config *gardencorev1beta1.ClusterAutoscaler) Values {
	v := values(config)
	v.Availability = component.Availability{Tolerance: gardencorev1beta1.FailureToleranceTypeNode}
	return v
}

func TestObjects(t *testing.T) {
	golden.Check(t, "access", access(namespace, component.Availability{})...)
	golden.Check(t, "access-highly-available", access(namespace, pair(nil).Availability)...)
	golden.Check(t, "deployment-highly-available", deployment(namespace, pair(nil)))
	for name, config := range map[string]*gardencorev1beta1.ClusterAutoscaler{"defaults": nil, "settings": settings()} {
		golden.Check(t, "deployment-"+name, deployment(namespace, values(config)))
		objects, err := shootObjects(values(config))
		if err != nil {
			t.Fatal(err)
		}
		golden.Check(t, "shoot-"+name, objects...)
	}
}

// Every setting is a flag that the program has and takes, and none is at its default here.
func TestArgumentsAreThoseOfTheProgram(t *testing.T) {
	var options clusterautoscaler.Options
	flags := pflag.NewFlagSet("", pflag.ContinueOnError)
	options.AddFlags(flags)
	flags.Int("v", 0, "of the log")
	if err := flags.Parse(deployment(namespace, pair(settings())).Spec.Template.Spec.Containers[0].Args); err != nil {
		t.Fatal(err)
	}
	var untouched []string
	flags.VisitAll(func(flag *pflag.Flag) {
		if flag.Value.String() == flag.DefValue {
			untouched = append(untouched, flag.Name)
		}
	})
	// Those of a pool are annotations of its MachineDeployment.
	want := []string{"address", "scale-down-gpu-utilization-threshold", "scale-down-unready-time"}
	if !slices.Equal(untouched, want) {
		t.Errorf("nobody can set %v, want %v", untouched, want)
	}
}

func TestPriorities(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*Values)
		want   bool
	}{
		"asked for": {func(*Values) {}, true},
		"other expander": {
			func(v *Values) { v.Config.Expander = new(gardencorev1beta1.ClusterAutoscalerExpanderRandom) }, false,
		},
		"pools without any":     {func(v *Values) { v.MachineDeployments[0].Priority = nil }, false},
		"nothing is configured": {func(v *Values) { v.Config = nil }, false},
	} {
		v := values(settings())
		test.change(&v)
		objects, err := shootObjects(v)
		if err != nil {
			t.Fatal(err)
		}
		if got := slices.ContainsFunc(objects,
			func(o client.Object) bool { _, is := o.(*corev1.ConfigMap); return is }); got != test.want {
			t.Errorf("%s: ConfigMap with priorities: %v, want %v", name, got, test.want)
		}
	}
	text, err := priorities(values(nil).MachineDeployments)
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := clusterautoscaler.ParsePriorities(text)
	if err != nil || !slices.Equal(slices.Sorted(maps.Keys(parsed)), []int{0, 10}) ||
		!parsed[10][0].MatchString(namespace+"-small-z1") || parsed[10][0].MatchString(namespace+"-small-z10") {
		t.Errorf("the expander reads %v (%v)", parsed, err)
	}
}

// keyring has the kubeconfig that all share.
type keyring struct{ secrets.Manager }

func (keyring) Get(string, ...secrets.GetOption) (*corev1.Secret, bool) {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "generic-token-kubeconfig-11111111"}}, true
}

// No pod is started before it has a token. It knows the machines that there are then.
func TestDeployNeedsAToken(t *testing.T) {
	seed := fake.NewClientBuilder().WithScheme(apis.SeedScheme()).Build()
	machines := func(context.Context) ([]extensionsv1alpha1.MachineDeployment, error) {
		return values(nil).MachineDeployments, nil
	}
	autoscaler := New(seed, namespace, keyring{},
		Values{Image: "cluster-autoscaler:v1", PriorityClass: component.PriorityControlPlane300}, machines)
	if err := autoscaler.Deploy(t.Context()); err == nil || !strings.Contains(err.Error(), "no token for the shoot") {
		t.Fatalf("got %v, want that there is no token", err)
	}
	list := &appsv1.DeploymentList{}
	if err := seed.List(t.Context(), list); err != nil || len(list.Items) > 0 {
		t.Fatalf("%d Deployments, %v", len(list.Items), err)
	}
	token := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: accessSecret}}
	if err := seed.Patch(t.Context(), token,
		client.RawPatch("application/merge-patch+json", []byte(`{"data":{"token":"YQ=="}}`))); err != nil {
		t.Fatal(err)
	}
	if err := autoscaler.Deploy(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := seed.List(t.Context(), list); err != nil || len(list.Items) != 1 {
		t.Fatalf("%d Deployments, %v", len(list.Items), err)
	}
	want := deployment(namespace, values(nil)).Spec.Template.Spec
	if got := list.Items[0].Spec.Template.Spec; !apiequality.Semantic.DeepEqual(got, want) {
		t.Errorf("its pods are %+v, want %+v", got, want)
	}
	if err := seed.Get(t.Context(), client.ObjectKeyFromObject(token), token); err != nil ||
		string(token.Data["token"]) != "a" {
		t.Errorf("the token has become %q (%v)", token.Data["token"], err)
	}
	inShoot, err := managedresources.List(t.Context(), seed, namespace)
	if err != nil || len(inShoot) != 1 {
		t.Errorf("%d ManagedResources, %v", len(inShoot), err)
	}
	if err := autoscaler.Destroy(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := autoscaler.WaitCleanup(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, left := range []client.ObjectList{
		list, &corev1.SecretList{}, &corev1.ServiceAccountList{}, &rbacv1.RoleList{}, &rbacv1.RoleBindingList{},
		&resourcesv1alpha1.ManagedResourceList{},
	} {
		if err := seed.List(t.Context(), left); err != nil || meta.LenList(left) > 0 {
			t.Errorf("%T has %d items after Destroy (%v)", left, meta.LenList(left), err)
		}
	}
}
