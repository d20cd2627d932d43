package infrastructure

import (
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"

	extensionsv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/extensions/v1alpha1"
	"github.com/trellis-garden/trellis/pkg/gardenlet/shoot/plan/plantest"
)

// Before the infrastructure is ready the networks are those that the shoot asks for, and afterwards those that it got.
func TestNodeNetworks(t *testing.T) {
	i := &Infrastructure{Plan: plantest.New(t)}
	if got := i.NodeNetworks(); !slices.Equal(got, []string{"10.180.1.0/24"}) || i.Reported() != nil ||
		i.ProviderStatus() != nil {
		t.Errorf("before it is ready: networks %v, reported %+v, provider status %v", got, i.Reported(),
			i.ProviderStatus())
	}
	ready := &extensionsv1alpha1.Infrastructure{}
	ready.Status.NodesCIDR, ready.Status.EgressCIDRs = new("10.250.0.0/16"), []string{"1.2.3.4/32"}
	ready.Status.ProviderStatus = &runtime.RawExtension{Raw: []byte(`{"vpc":"a"}`)}
	i.state.Store(stateOf(ready))
	if got := i.NodeNetworks(); !slices.Equal(got, []string{"10.250.0.0/16"}) {
		t.Errorf("networks are %v", got)
	}
	if reported := i.Reported(); !slices.Equal(reported.Egress, []string{"1.2.3.4/32"}) {
		t.Errorf("reported is %+v", reported)
	}
	if got := string(i.ProviderStatus().Raw); got != `{"vpc":"a"}` {
		t.Errorf("the provider status is %s", got)
	}
}
