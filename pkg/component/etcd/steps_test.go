package etcd

import (
	"context"
	"crypto/x509"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/trellis-garden/trellis/pkg/component"
	"github.com/trellis-garden/trellis/pkg/secrets"
)

// rolled is a StatefulSet whose pods are all of its newest template, or none of them is.
func rolled(set *appsv1.StatefulSet, updated bool) *appsv1.StatefulSet {
	replicas := *set.Spec.Replicas
	set.Status = appsv1.StatefulSetStatus{
		ObservedGeneration: set.Generation, Replicas: replicas, ReadyReplicas: replicas,
	}
	if updated {
		set.Status.UpdatedReplicas = replicas
	}
	return set
}

func TestNextStep(t *testing.T) {
	single := Values{Role: Main, Replicas: 1}.withDefaults()
	several := Values{Role: Main, Replicas: 3, Availability: outlasts(node)}.withDefaults()
	asleep, singleAsleep := several, single
	asleep.Replicas, singleAsleep.Replicas = 0, 0
	before := secretNames{ca: "ca", server: "server", peerCA: "peer-ca", peer: "peer"}
	trusting, presenting, after := before, before, secretNames{"new-ca", "new-server", "new-peer-ca", "new-peer", ""}
	trusting.ca, trusting.peerCA = after.ca, after.peerCA
	presenting.server, presenting.peer = after.server, after.peer
	set := func(v Values, names secretNames, updated bool) *appsv1.StatefulSet {
		set := rolled(statefulSet(namespace, v, names), updated)
		set.ResourceVersion = "7"
		return set
	}
	silent := set(single, before, true)
	silent.Status.ReadyReplicas = 0
	for name, test := range map[string]struct {
		present      *appsv1.StatefulSet
		wanted       Values
		names        secretNames
		wantReplicas int32
		want         secretNames
		isStep       bool
	}{
		"nothing is there":            {nil, several, after, 3, after, false},
		"a single one changes":        {set(single, before, false), single, after, 1, after, false},
		"a single one grows":          {set(single, before, true), several, before, 3, before, false},
		"one of before grows":         {listeningToNobody(set(single, before, true)), several, before, 1, before, true},
		"one that may be of before":   {set(single, before, false), several, before, 1, before, true},
		"one that does not serve":     {silent, several, before, 1, before, true},
		"a sleeping single one grows": {set(singleAsleep, before, false), several, after, 3, after, false},
		"sleeping ones get both":      {set(asleep, before, false), several, after, 3, after, false},
		"nothing changes":             {set(several, before, true), several, before, 3, before, false},
		"another certificate":         {set(several, before, true), several, presenting, 3, presenting, false},
		"another authority":           {set(several, before, true), several, trusting, 3, trusting, false},
		"another authority too early": {set(several, before, false), several, trusting, 3, before, true},
		"both":                        {set(several, before, true), several, after, 3, presenting, true},
		"both, and not presented yet": {set(several, presenting, false), several, after, 3, presenting, true},
		"both, and presented":         {set(several, presenting, true), several, after, 3, after, false},
		"grows and gets both":         {set(single, before, true), several, after, 3, presenting, true},
		"one of before gets both":     {listeningToNobody(set(single, before, true)), several, after, 1, after, true},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := nextStep(test.present, test.wanted, test.names)
			if err != nil || got.values.Replicas != test.wantReplicas || got.names != test.want ||
				(got.from != "") != test.isStep || got.values.Availability.IsHigh() != (test.wantReplicas == 3) {
				t.Errorf("got %d, %+v, %+v, %q, %v", got.values.Replicas, got.values.Availability, got.names, got.from,
					err)
			}
		})
	}
}

func TestWhatSeveralMembersCannotBe(t *testing.T) {
	several := Values{Role: Main, Replicas: 3, Availability: outlasts(node)}.withDefaults()
	asleep := several
	asleep.Replicas = 0
	for _, values := range []Values{several, asleep} {
		present := statefulSet(namespace, values, secretNames{})
		_, err := nextStep(present, Values{Role: Main, Replicas: 1}.withDefaults(), secretNames{})
		if err == nil || !strings.Contains(err.Error(), "shoot--demo--member1/etcd-main has several members") ||
			!strings.Contains(err.Error(), "spec.controlPlane.highAvailability") {
			t.Errorf("of %d, it becomes a single one: %v", values.Replicas, err)
		}
	}
	several.BackupDir = "/var/lib/backups"
	if _, err := nextStep(nil, several, secretNames{}); err == nil || !strings.Contains(err.Error(), "BackupDir") {
		t.Errorf("members back up to one directory: %v", err)
	}
}

// seed is one whose StatefulSets have always just rolled out; applied are those that an apply has changed, and version
// is that of the last one.
type seed struct {
	client.Client
	applied []appsv1.StatefulSet
	version string
}

func newSeed(t *testing.T) *seed {
	t.Helper()
	s := &seed{}
	s.Client = interceptor.NewClient(fake.NewClientBuilder().Build(), interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, object client.Object,
			options ...client.GetOption) error {
			err := c.Get(ctx, key, object, options...)
			if set, isSet := object.(*appsv1.StatefulSet); isSet && err == nil {
				rolled(set, true)
			}
			return err
		},
		Apply: func(ctx context.Context, c client.WithWatch, object runtime.ApplyConfiguration,
			options ...client.ApplyOption) error {
			if err := c.Apply(ctx, object, options...); err != nil {
				return err
			}
			set := &appsv1.StatefulSet{}
			err := c.Get(ctx, client.ObjectKey{Namespace: namespace, Name: "etcd-main"}, set)
			if err == nil && set.ResourceVersion != s.version {
				s.applied, s.version = append(s.applied, *set), set.ResourceVersion
			}
			return client.IgnoreNotFound(err)
		},
	})
	return s
}

// reconcile deploys an etcd and waits for it, and returns what the StatefulSets mount that were applied one after
// another.
func (s *seed) reconcile(t *testing.T, manager secrets.Manager, availability component.Availability) []secretNames {
	t.Helper()
	s.applied = nil
	etcd := New(s, namespace, manager, Decide(Main)(component.Facts{Availability: availability}))
	if err := etcd.Deploy(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := etcd.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	var steps []secretNames
	for i := range s.applied {
		steps = append(steps, mountedSecrets(&s.applied[i]))
	}
	return steps
}

// listeningToNobody is a StatefulSet as single members had it before they listened for others.
func listeningToNobody(set *appsv1.StatefulSet) *appsv1.StatefulSet {
	isPeers := func(v corev1.Volume) bool { return v.Name == peerVolume }
	set.Spec.Template.Spec.Volumes = slices.DeleteFunc(set.Spec.Template.Spec.Volumes, isPeers)
	return set
}

// listenToNobody has the single member of a seed be one of before.
func (s *seed) listenToNobody(t *testing.T) {
	t.Helper()
	set := &appsv1.StatefulSet{}
	err := s.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: "etcd-main"}, set)
	if err == nil {
		err = s.Update(t.Context(), listeningToNobody(set))
	}
	if err != nil {
		t.Fatal(err)
	}
	s.version = set.ResourceVersion
}

// membersOfSteps are, of each StatefulSet that was applied, how many pods it has, and whether these are of several
// members.
func (s *seed) membersOfSteps(t *testing.T) string {
	t.Helper()
	var steps []string
	for _, set := range s.applied {
		steps = append(steps, fmt.Sprintf("%d of several: %v", *set.Spec.Replicas, isOfSeveral(&set)))
		if mountedSecrets(&set).peer == "" {
			t.Error("a member cannot be reached by others")
		}
	}
	return strings.Join(steps, ", ")
}

func TestOthersJoinASingleMemberThatServes(t *testing.T) {
	s := newSeed(t)
	manager := newManager(t, s, secrets.Options{})
	s.reconcile(t, manager, component.Availability{})
	s.reconcile(t, manager, outlasts(node))
	if got := s.membersOfSteps(t); got != "3 of several: true" {
		t.Errorf("the members were %s", got)
	}
	if s.reconcile(t, manager, outlasts(node)); len(s.applied) > 1 {
		t.Errorf("%d StatefulSets were applied although nothing was left to do", len(s.applied))
	}
}

// A StatefulSet does not replace the first pod while others are not ready, and they are not before it is replaced.
func TestASingleMemberOfBeforeIsReplacedBeforeOthersJoin(t *testing.T) {
	s := newSeed(t)
	manager := newManager(t, s, secrets.Options{})
	s.reconcile(t, manager, component.Availability{})
	s.listenToNobody(t)
	s.reconcile(t, manager, outlasts(node))
	if got := s.membersOfSteps(t); got != "1 of several: false, 3 of several: true" {
		t.Errorf("the members were %s", got)
	}
	if s.reconcile(t, manager, outlasts(node)); len(s.applied) > 1 {
		t.Errorf("%d StatefulSets were applied although nothing was left to do", len(s.applied))
	}
}

// Members of before and after each step of a rotation are side by side: a StatefulSet replaces one after another, and
// goes on when the new one is ready. Each has to trust the others.
func TestMembersTrustEachOtherThroughoutARotation(t *testing.T) {
	s := newSeed(t)
	rotation := secrets.Options{RotationInitiation: map[string]time.Time{
		component.CAETCD: time.Unix(1, 0), component.CAETCDPeer: time.Unix(1, 0),
	}}
	steps := s.reconcile(t, newManager(t, s, secrets.Options{}), outlasts(zone))
	old := steps[0]
	for _, manager := range []secrets.Manager{
		newManager(t, s, rotation, secrets.KeepOld()), newManager(t, s, rotation),
	} {
		steps = append(steps, s.reconcile(t, manager, outlasts(zone))...)
	}
	for i := range steps[1:] {
		a, b := steps[i], steps[i+1]
		for _, pair := range [][2]string{
			{a.peer, b.peerCA}, {b.peer, a.peerCA}, {a.server, b.ca}, {b.server, a.ca},
		} {
			if err := verified(t, s, pair[0], pair[1], x509.ExtKeyUsageClientAuth); err != nil {
				t.Errorf("step %d: %s is not trusted by %s: %v", i+1, pair[0], pair[1], err)
			}
		}
	}
	last := steps[len(steps)-1]
	for _, pair := range [][2]string{{old.peer, last.peerCA}, {old.server, last.ca}} {
		if err := verified(t, s, pair[0], pair[1], x509.ExtKeyUsageClientAuth); err == nil {
			t.Errorf("%s is trusted for good", pair[0])
		}
	}
}

// A step back to one member that was decided before the others came would take them away.
func TestAStepStartsWhereItWasDecided(t *testing.T) {
	s := newSeed(t)
	manager := newManager(t, s, secrets.Options{})
	s.reconcile(t, manager, component.Availability{})
	s.listenToNobody(t)
	d := New(s, namespace, manager, Decide(Main)(component.Facts{Availability: outlasts(node)})).(*deployer)
	present, err := d.present(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	late, err := nextStep(present, d.values, secretNames{})
	if err != nil || late.values.Replicas != 1 {
		t.Fatalf("the step is to %d members, %v", late.values.Replicas, err)
	}
	s.reconcile(t, manager, outlasts(node))
	if err := d.apply(t.Context(), late); !apierrors.IsConflict(err) {
		t.Errorf("got %v", err)
	}
	if present, err := d.present(t.Context()); err != nil || *present.Spec.Replicas != 3 {
		t.Errorf("there are %d members, %v", *present.Spec.Replicas, err)
	}
}
