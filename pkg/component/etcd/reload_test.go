package etcd

import (
	"context"
	"crypto/x509"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trellis-garden/trellis/pkg/component"
	"github.com/trellis-garden/trellis/pkg/component/golden"
	"github.com/trellis-garden/trellis/pkg/etcd/status"
	"github.com/trellis-garden/trellis/pkg/secrets"
)

// nodeOf plays the pod of a single member: its kubelet looks at Secrets when the pod begins and when it is asked to.
type nodeOf struct {
	*seed
	mounted, asked string
	// asks counts how often the steward was asked, refused is why it takes nothing else.
	asks    int
	refused string
}

func newNode(t *testing.T) *nodeOf {
	t.Helper()
	n := &nodeOf{seed: newSeed(t)}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "etcd-main-0"}}
	if err := n.Create(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	return n
}

// begin has the pod begin with what is there.
func (n *nodeOf) begin(t *testing.T) {
	t.Helper()
	n.mounted = n.own(t)
}

// own is the checksum of the Secret.
func (n *nodeOf) own(t *testing.T) string {
	t.Helper()
	return status.CertificatesChecksum(dataOf(t, n, ownSecretName(Main), secrets.DataKeyCertificateBundle),
		dataOf(t, n, ownSecretName(Main), secrets.DataKeyCertificate))
}

// ask plays the steward.
func (n *nodeOf) ask(t *testing.T) Ask {
	return func(ctx context.Context, c client.Reader, key client.ObjectKey) (*status.Status, error) {
		n.asks++
		pod := &corev1.Pod{}
		if err := c.Get(ctx, key, pod); err != nil {
			return nil, err
		}
		if asked := pod.Annotations[RemountAsked]; asked != n.asked && n.refused == "" {
			n.asked, n.mounted = asked, n.own(t)
		}
		return &status.Status{
			Phase: status.Serving, Certificates: &status.Certificates{Checksum: n.mounted, Refused: n.refused},
		}, nil
	}
}

func (n *nodeOf) component(t *testing.T, manager secrets.Manager, availability component.Availability) *deployer {
	t.Helper()
	values := Decide(Main)(component.Facts{Availability: availability})
	return NewReloading(n, namespace, manager, values, n.ask(t)).(*deployer)
}

// bring deploys an etcd and waits for it. Applied are StatefulSets that differ from the ones before.
func (n *nodeOf) bring(t *testing.T, manager secrets.Manager, availability component.Availability) {
	t.Helper()
	etcd := n.component(t, manager, availability)
	if err := etcd.Deploy(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := etcd.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	n.applied = slices.CompactFunc(n.applied, func(a, b appsv1.StatefulSet) bool {
		return apiequality.Semantic.DeepEqual(a.Spec, b.Spec)
	})
}

var rotation = secrets.Options{RotationInitiation: map[string]time.Time{
	component.CAETCD: time.Unix(1, 0), component.CAETCDPeer: time.Unix(1, 0),
}}

// A rotation replaces no pod of a single member, and each half ends when the member serves with what is new.
func TestASingleMemberServesThroughoutARotation(t *testing.T) {
	n := newNode(t)
	n.bring(t, newManager(t, n, secrets.Options{}), component.Availability{})
	n.begin(t)
	if len(n.applied) != 1 || n.asks > 0 {
		t.Fatalf("%d StatefulSets were applied, and the steward was asked %d times", len(n.applied), n.asks)
	}
	old := dataOf(t, n, ownSecretName(Main), secrets.DataKeyCertificateBundle)
	for half, manager := range []secrets.Manager{
		newManager(t, n, rotation, secrets.KeepOld()), newManager(t, n, rotation),
	} {
		n.bring(t, manager, component.Availability{})
		if n.mounted != n.own(t) || n.asks == 0 {
			t.Errorf("half %d ended while the member serves with what is old", half+1)
		}
		if n.asks = 0; half == 0 {
			continue
		}
		if err := verified(t, n, ownSecretName(Main), ownSecretName(Main), x509.ExtKeyUsageServerAuth); err != nil {
			t.Errorf("clients do not trust the server: %v", err)
		}
		if string(old) == string(dataOf(t, n, ownSecretName(Main), secrets.DataKeyCertificateBundle)) {
			t.Error("the old authority is still trusted")
		}
	}
	n.bring(t, newManager(t, n, rotation), component.Availability{})
	if len(n.applied) != 1 || n.asks > 0 {
		t.Errorf("%d StatefulSets were applied, and the steward was asked %d times although nothing had changed",
			len(n.applied), n.asks)
	}
}

// Whoever goes on where another gardenlet was killed does not take for served what only was written.
func TestWhatWasWrittenIsNotServedYet(t *testing.T) {
	n := newNode(t)
	n.bring(t, newManager(t, n, secrets.Options{}), component.Availability{})
	n.begin(t)
	before := n.mounted
	manager := newManager(t, n, rotation, secrets.KeepOld())
	for range 2 {
		if err := n.component(t, manager, component.Availability{}).Deploy(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if n.mounted != before || n.mounted == n.own(t) {
		t.Fatal("nothing has changed")
	}
	n.bring(t, manager, component.Availability{})
	if n.mounted == before {
		t.Error("it was taken for served")
	}
}

func TestWhatIsRefusedIsTold(t *testing.T) {
	n := newNode(t)
	n.bring(t, newManager(t, n, secrets.Options{}), component.Availability{})
	n.begin(t)
	etcd := n.component(t, newManager(t, n, rotation, secrets.KeepOld()), component.Availability{})
	if err := etcd.Deploy(t.Context()); err != nil {
		t.Fatal(err)
	}
	n.refused = "it has no certificate"
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	err := etcd.Wait(ctx)
	if err == nil || !strings.Contains(err.Error(), "shoot--demo--member1/etcd-main-0 does not serve with the newest "+
		"certificates yet: it does not take those that are mounted: it has no certificate") {
		t.Errorf("got %v", err)
	}
}

// The pod of one whose certificates are those of Secrets that do not change is replaced once.
func TestASingleMemberOfBeforeGetsItsOwnSecrets(t *testing.T) {
	n := newNode(t)
	manager := newManager(t, n, secrets.Options{})
	n.reconcile(t, manager, component.Availability{})
	for range 2 {
		n.bring(t, manager, component.Availability{})
	}
	if len(n.applied) != 2 || !mountedSecrets(&n.applied[1]).areOwn(Main) || n.asks > 0 {
		t.Errorf("%d StatefulSets were applied, and the steward was asked %d times", len(n.applied), n.asks)
	}
}

// Others join a single member that serves. Where it does not trust them, as it began before their authority, it is
// started again before.
func TestOthersJoinASingleMemberThatTrustsThem(t *testing.T) {
	for name, test := range map[string]struct {
		isRotated bool
		want      string
	}{
		"as it began":      {false, "1 of several: false, 3 of several: true"},
		"after a rotation": {true, "1 of several: false, 1 of several: false, 3 of several: true"},
	} {
		t.Run(name, func(t *testing.T) {
			n := newNode(t)
			manager := newManager(t, n, secrets.Options{})
			n.bring(t, manager, component.Availability{})
			n.begin(t)
			if test.isRotated {
				manager = newManager(t, n, rotation, secrets.KeepOld())
				n.bring(t, manager, component.Availability{})
			}
			n.bring(t, manager, outlasts(node))
			if got := n.membersOfSteps(t); got != test.want {
				t.Errorf("the members were %s", got)
			}
			own := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: ownSecretName(Main)}}
			if err := n.Get(t.Context(), client.ObjectKeyFromObject(own), own); !apierrors.IsNotFound(err) {
				t.Errorf("the Secret of the single member is left: %v", err)
			}
			n.bring(t, manager, outlasts(node))
			if got := n.membersOfSteps(t); got != test.want {
				t.Errorf("the members were %s although nothing was left to do", got)
			}
		})
	}
}

// One that sleeps begins with what is there when it wakes up.
func TestAMemberThatSleepsIsNotAsked(t *testing.T) {
	n := newNode(t)
	n.bring(t, newManager(t, n, secrets.Options{}), component.Availability{})
	for _, replicas := range []int32{0, 1} {
		etcd := n.component(t, newManager(t, n, rotation, secrets.KeepOld()), component.Availability{})
		etcd.values.Replicas = replicas
		if err := etcd.Deploy(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := etcd.Wait(t.Context()); err != nil {
			t.Fatal(err)
		}
		if n.asks > 0 {
			t.Error("it was asked")
		}
		n.begin(t)
	}
	present, err := n.component(t, nil, component.Availability{}).present(t.Context())
	if err != nil || mountedSecrets(present).peersAtStart == mountedSecrets(&n.applied[0]).peersAtStart {
		t.Errorf("it began with peers' authorities of before: %v", err)
	}
}

func TestObjectsOfAReloadingMember(t *testing.T) {
	values := Values{
		Role: Main, Image: "etcd-steward:v1", Replicas: 1, PriorityClass: component.PriorityControlPlane500, Reloads: true,
	}.withDefaults()
	names := secretNames{ca: "ca-11111111", server: "server-22222222", peerCA: "peer-ca-33333333", peer: "peer-44444444"}
	golden.Check(t, "reloading", objects(namespace, values, names.ofSingle(values, secretNames{}, true))...)
}
