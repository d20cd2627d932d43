package watchdog

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	machinev1alpha1 "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

const limit = 30 * time.Second

// look looks at one Lease after another, of one node, at times after noon.
type look struct {
	at, renewed time.Duration
}

func TestLook(t *testing.T) {
	fresh, expired, open := Tally{Fresh: 1}, Tally{Expired: 1}, Tally{Open: 1}
	const s = time.Second
	for name, test := range map[string]struct {
		looks []look
		want  Tally
	}{
		"just renewed":          {[]look{{0, -s}}, fresh},
		"old at the first look": {[]look{{0, -30 * s}}, open},
		"still old when it could be new": {
			[]look{
				{0, -30 * s}, {29 * s, -30 * s}, {30 * s, -30 * s},
			},
			expired,
		},
		"not so old at the first look": {[]look{{0, -20 * s}, {15 * s, -20 * s}}, open},
		"renewed again and again": {
			[]look{
				{0, -5 * s}, {10 * s, 5 * s}, {20 * s, 15 * s}, {40 * s, 35 * s},
			},
			fresh,
		},
		"renewed before the limit": {[]look{{0, -5 * s}, {24 * s, -5 * s}}, fresh},
		"silent for the limit":     {[]look{{0, -5 * s}, {10 * s, 5 * s}, {35 * s, 5 * s}}, expired},
		"comes back": {
			[]look{
				{0, -time.Hour}, {40 * s, -time.Hour}, {50 * s, 45 * s},
			},
			fresh,
		},
		"a clock that is late": {
			[]look{
				{0, -time.Hour}, {10 * s, -time.Hour + 10*s}, {35 * s, -time.Hour + 10*s},
			},
			fresh,
		},
		"a clock that is late, silent": {
			[]look{
				{0, -time.Hour}, {10 * s, -time.Hour + 10*s}, {40 * s, -time.Hour + 10*s},
			},
			expired,
		},
		"a clock that is early": {
			[]look{
				{0, time.Hour}, {10 * s, time.Hour + 10*s}, {35 * s, time.Hour + 10*s},
			},
			fresh,
		},
		"a time that never comes": {
			[]look{
				{0, 1e6 * time.Hour}, {29 * s, 1e6 * time.Hour}, {30 * s, 1e6 * time.Hour},
			},
			expired,
		},
		"a time before all others":        {[]look{{0, -1e6 * time.Hour}, {30 * s, -1e6 * time.Hour}}, expired},
		"a little early is no more fresh": {[]look{{0, 29 * s}, {30 * s, 29 * s}}, expired},
	} {
		var sightings Sightings
		var got Tally
		for _, l := range test.looks {
			sightings, got = Look(sightings, []Lease{{"n", noon.Add(l.renewed)}}, noon.Add(l.at), limit)
		}
		if got != test.want {
			t.Errorf("%s: %+v, want %+v", name, got, test.want)
		}
	}
}

// When the seed's clock is set forward, renewals of the time before look old: a change of them still is one.
func TestLookSurvivesTheSeedsClock(t *testing.T) {
	sightings, _ := Look(nil, []Lease{{"n", noon}}, noon, limit)
	jumped := noon.Add(time.Hour)
	for i := range 10 {
		renewed := noon.Add(time.Duration(i+1) * 10 * time.Second)
		var tally Tally
		sightings, tally = Look(sightings, []Lease{{"n", renewed}}, jumped.Add(time.Duration(i)*10*time.Second), limit)
		if tally.Fresh != 1 {
			t.Fatalf("look %d: %+v", i, tally)
		}
	}
}

// What is gone is forgotten.
func TestLookForgets(t *testing.T) {
	sightings, _ := Look(nil, []Lease{{"a", noon}, {"b", noon}}, noon, limit)
	sightings, tally := Look(sightings, []Lease{{"b", noon}}, noon, limit)
	if got := slices.Collect(maps.Keys(sightings)); !slices.Equal(got, []string{"b"}) || tally != (Tally{Fresh: 1}) {
		t.Errorf("%v is known, and counted are %+v", got, tally)
	}
}

// aMachine has a node of the same name.
func aMachine(name string, change func(*machinev1alpha1.Machine)) *machinev1alpha1.Machine {
	machine := &machinev1alpha1.Machine{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "shoot--a--b", Name: name, Labels: map[string]string{machinev1alpha1.NodeLabelKey: name},
		},
		Status: machinev1alpha1.MachineStatus{
			CurrentStatus: machinev1alpha1.CurrentStatus{Phase: machinev1alpha1.MachineRunning},
		},
	}
	if change != nil {
		change(machine)
	}
	return machine
}

func TestCandidates(t *testing.T) {
	phase := func(p machinev1alpha1.MachinePhase) func(*machinev1alpha1.Machine) {
		return func(m *machinev1alpha1.Machine) { m.Status.CurrentStatus.Phase = p }
	}
	condition := func(kind string, status corev1.ConditionStatus) func(*machinev1alpha1.Machine) {
		return func(m *machinev1alpha1.Machine) {
			m.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeConditionType(kind), Status: status}}
		}
	}
	for name, test := range map[string]struct {
		change func(*machinev1alpha1.Machine)
		want   bool
	}{
		"running":          {nil, true},
		"unknown":          {phase(machinev1alpha1.MachineUnknown), true},
		"failed":           {phase(machinev1alpha1.MachineFailed), false},
		"terminating":      {phase(machinev1alpha1.MachineTerminating), false},
		"updated in place": {phase(machinev1alpha1.MachineInPlaceUpdating), false},
		"being deleted":    {func(m *machinev1alpha1.Machine) { m.DeletionTimestamp = new(metav1.Now()) }, false},
		"without a node":   {func(m *machinev1alpha1.Machine) { m.Labels = nil }, false},
		"not ready":        {condition("Ready", corev1.ConditionFalse), true},
		"a full disk":      {condition("DiskPressure", corev1.ConditionTrue), false},
		"silent":           {condition("DiskPressure", corev1.ConditionUnknown), true},
		"of no interest":   {condition("Custom", corev1.ConditionTrue), true},
		"of own interest": {func(m *machinev1alpha1.Machine) {
			condition("Custom", corev1.ConditionTrue)(m)
			m.Spec.MachineConfiguration = &machinev1alpha1.MachineConfiguration{NodeConditions: new("A,Custom")}
		}, false},
	} {
		machine := aMachine("n", test.change)
		kept, err := slim(machine.DeepCopy())
		if err != nil {
			t.Fatal(err)
		}
		for what, m := range map[string]*machinev1alpha1.Machine{
			"whole": machine, "in the cache": kept.(*machinev1alpha1.Machine),
		} {
			if got := candidates([]machinev1alpha1.Machine{*m}); got["n"] != test.want {
				t.Errorf("%s, %s: counts: %v, want %v", name, what, got["n"], test.want)
			}
		}
	}
}

func FuzzLook(f *testing.F) {
	f.Add(int64(0), int64(0), int64(10))
	f.Fuzz(func(t *testing.T, first, second, later int64) {
		leases := func(at int64) []Lease { return []Lease{{"n", time.Unix(0, at)}} }
		sightings, tally := Look(nil, leases(first), noon, limit)
		if tally.Expired > 0 {
			t.Errorf("expired at the first look: %v", time.Unix(0, first))
		}
		now := noon.Add(time.Duration(max(later, 0)))
		_, tally = Look(sightings, leases(second), now, limit)
		if tally.Fresh+tally.Expired+tally.Open != 1 {
			t.Error(fmt.Sprint("counted: ", tally))
		}
		if first != second && tally.Fresh != 1 && now.Sub(time.Unix(0, second)).Abs() >= limit {
			t.Errorf("a change was seen, but %+v", tally)
		}
	})
}
