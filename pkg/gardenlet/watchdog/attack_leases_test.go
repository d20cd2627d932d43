package watchdog

import (
	"fmt"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trellis-garden/trellis/pkg/component/kubeapiserver"
	"github.com/trellis-garden/trellis/pkg/secrets"
	"github.com/trellis-garden/trellis/test/hostile"
)

// TestAttackLeasesOfNoMachine plays the owner of a shoot, or root on a worker with the owner's rights, who makes Leases
// so that the controllers are stopped, or never are: those of no machine do not count, old or fresh, few or many.
func TestAttackLeasesOfNoMachine(t *testing.T) {
	for name, forged := range map[string]struct {
		count int
		age   time.Duration
	}{
		"some that are old":   {100, time.Hour},
		"some that are fresh": {100, 0},
		"many that are old":   {10_000, time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, three...)
			for i := range forged.count {
				b.api.leases = append(b.api.leases, coordinationv1.Lease{
					ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("forged-%d", i)},
					Spec:       coordinationv1.LeaseSpec{RenewTime: new(metav1.NewMicroTime(noon.Add(-forged.age)))},
				})
			}
			b.renewing(5*time.Minute, three...)
			b.want("nodes are there", 2, 1, 1)
			b.after(time.Minute)
			b.want("nodes are not", 0, 0, 0)
		})
	}
}

// TestAttackLeasesWithoutEnd plays who hides the Leases of nodes behind others: no more is read than a shoot of this
// size needs, and nothing is stopped or started. Only the own shoot loses its watchdog by that.
func TestAttackLeasesWithoutEnd(t *testing.T) {
	b := newBench(t)
	for i := range 10_000 {
		b.api.leases = append(b.api.leases,
			coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("forged-%d", i)}})
	}
	b.api.renew(noon, three...)
	for _, node := range three {
		if err := b.seed.Create(t.Context(), aMachine(node, nil)); err != nil {
			t.Fatal(err)
		}
	}
	b.after(0)
	if b.api.pages > 3 {
		t.Errorf("%d pages of Leases were read for one look", b.api.pages)
	}
	b.after(5 * time.Minute)
	b.want("later", 2, 1, 1)
}

// TestAttackTimesOfLeases plays root on workers who writes times into their Leases that no clock shows, or none at all.
// Each of them speaks for its own node only, and a time that does not change is none.
func TestAttackTimesOfLeases(t *testing.T) {
	future := noon.AddDate(1000, 0, 0)
	for name, test := range map[string]struct {
		forge func(*bench)
		// want are the replicas when all nodes are silent.
		want []int32
	}{
		"one in the future":   {func(b *bench) { b.api.renew(future, "a") }, []int32{0, 0, 0}},
		"all in the future":   {func(b *bench) { b.api.renew(future, three...) }, []int32{0, 0, 0}},
		"all in the past":     {func(b *bench) { b.api.renew(time.Unix(0, 0), three...) }, []int32{0, 0, 0}},
		"all at the year one": {func(b *bench) { b.api.renew(time.Time{}.Add(time.Hour), three...) }, []int32{0, 0, 0}},
		// Then there is one to go by, which decides nothing.
		"none in most": {func(b *bench) {
			b.api.leases[0].Spec, b.api.leases[1].Spec = coordinationv1.LeaseSpec{}, coordinationv1.LeaseSpec{}
		}, []int32{2, 1, 1}},
		"without durations and holders": {func(b *bench) {
			for i := range b.api.leases {
				b.api.leases[i].Spec.LeaseDurationSeconds, b.api.leases[i].Spec.HolderIdentity = new(int32(-1)), nil
			}
		}, []int32{0, 0, 0}},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, three...)
			test.forge(b)
			b.after(10 * time.Minute)
			b.want("when nodes are silent", test.want...)
		})
	}
	b := newBench(t, three...)
	b.api.renew(time.Unix(0, 0), "a")
	b.renewing(10*time.Minute, "b", "c")
	b.want("one that is forged to be old, of three", 2, 1, 1)
}

// TestAttackEndlessAnswersToTheProber plays the owner of a shoot whose API server answers without an end.
func TestAttackEndlessAnswersToTheProber(t *testing.T) {
	b := newBench(t, three...)
	b.prober.Connect = nil
	if err := b.seed.Create(t.Context(), &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: kubeapiserver.InternalKubeconfigSecret},
		Data:       map[string][]byte{secrets.DataKeyKubeconfig: hostile.Shoot(t)},
	}); err != nil {
		t.Fatal(err)
	}
	known := b.prober.memoryOf(client.ObjectKeyFromObject(aShoot()))
	if _, err := b.prober.observe(t.Context(), aShoot(), known); err == nil {
		t.Error("an answer without an end was read")
	}
	b.after(0)
	b.want("after a look", 2, 1, 1)
}
