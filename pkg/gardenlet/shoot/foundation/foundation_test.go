package foundation

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-garden/trellis/pkg/component"
	etcdcomponent "github.com/trellis-garden/trellis/pkg/component/etcd"
	"github.com/trellis-garden/trellis/pkg/gardenlet/shoot/plan"
	"github.com/trellis-garden/trellis/pkg/gardenlet/shoot/plan/plantest"
)

func TestPodsOfShootsWithoutWorkersAreHeldToTheRestrictedLevel(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*plan.Inputs)
		want   string
	}{
		"with workers":    {func(*plan.Inputs) {}, component.PodSecurityPrivileged},
		"without workers": {plantest.Workerless, component.PodSecurityRestricted},
	} {
		in := plantest.Inputs()
		test.change(in)
		f := &Foundation{Plan: plantest.Plan(t, in), SeedSpec: &in.Seed.Spec}
		if got := f.namespace().Labels[component.LabelPodSecurity]; got != test.want {
			t.Errorf("%s: level %q, want %q", name, got, test.want)
		}
	}
}

// Members of an etcd reach each other where there are several, and only there.
func TestMembersOfAnEtcdReachEachOther(t *testing.T) {
	for tolerance, want := range map[gardencorev1beta1.FailureToleranceType]int{
		"": 0, gardencorev1beta1.FailureToleranceTypeNode: 2,
	} {
		found := 0
		seed := interceptor.NewClient(fake.NewClientBuilder().Build(), interceptor.Funcs{
			Apply: func(_ context.Context, _ client.WithWatch, policy runtime.ApplyConfiguration,
				_ ...client.ApplyOption) error {
				text, err := json.Marshal(policy)
				if strings.Contains(string(text), `-members"`) {
					found++
				}
				return err
			},
		})
		in := plantest.Inputs()
		f := &Foundation{Plan: plantest.Plan(t, in), SeedSpec: &in.Seed.Spec, Seed: seed}
		f.Plan.Values[etcdcomponent.Name(etcdcomponent.Main)] = etcdcomponent.Decide(etcdcomponent.Main)(
			component.Facts{Availability: component.Availability{Tolerance: tolerance}})
		if err := f.deployNetworkPolicies(t.Context()); err != nil {
			t.Fatal(err)
		}
		if found != want {
			t.Errorf("with tolerance %q there are %d policies for members, want %d", tolerance, found, want)
		}
	}
}
