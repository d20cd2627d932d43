package core

import (
	"errors"
	"fmt"
	"math/rand"
	"reflect"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// The properties of every decision, written without looking at how decisions are made.

func TestEveryDecisionHoldsItsProperties(t *testing.T) {
	r := rand.New(rand.NewSource(11))
	for i := range cases(t, 80_000) {
		clusters, b := randomCase(r)
		s := NewSnapshot(clusters)
		d := Decide(s, b)
		if err := checkDecision(clusters, b, d); err != nil {
			t.Fatalf("case %d: %v\n%s", i, err, describeCase(clusters, b, d))
		}
	}
}

func TestDecisionsAreAFunctionOfTheirInput(t *testing.T) {
	r := rand.New(rand.NewSource(12))
	for i := range cases(t, 30_000) {
		clusters, b := randomCase(r)
		otherClusters, other := shuffled(r, clusters, b)
		d, again := Decide(NewSnapshot(clusters), b), Decide(NewSnapshot(otherClusters), other)
		if !sameOutcome(d, again) {
			t.Fatalf("case %d: in another order it is %s\n%s", i, outcomeOf(again), describeCase(clusters, b, d))
		}
		if i%10 == 0 && !reflect.DeepEqual(d, Decide(NewSnapshot(clusters), b)) {
			t.Fatalf("case %d: a second time it is another one\n%s", i, describeCase(clusters, b, d))
		}
	}
}

// sameOutcome compares what counts; messages name places in lists.
func sameOutcome(a, b Decision) bool {
	if !slices.Equal(sortedTargets(a.Targets), sortedTargets(b.Targets)) || a.Term != b.Term ||
		(a.Failure == nil) != (b.Failure == nil) {
		return false
	}
	return a.Failure == nil || a.Failure.Kind == b.Failure.Kind
}

func sortedTargets(targets []Target) []Target {
	sorted := slices.Clone(targets)
	slices.SortFunc(sorted, func(a, b Target) int { return compareNames(a.Cluster, b.Cluster) })
	return sorted
}

func compareNames(a, b string) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

func TestScalingUpTakesNoReplicaAway(t *testing.T) {
	r := rand.New(rand.NewSource(13))
	for i := range cases(t, 50_000) {
		clusters, b := randomCase(r)
		b.Workload, b.Fresh, b.Placement.Spread = true, false, nil
		s := NewSnapshot(clusters)
		before := Decide(s, b)
		more := b
		more.Replicas += int32(1 + r.Intn(4))
		more.Previous, more.PreviousTerm = before.Targets, before.Term
		after := Decide(s, more)
		if before.Failure != nil || after.Failure != nil || after.Term != before.Term {
			continue
		}
		for _, was := range before.Targets {
			if now := replicasOn(after, was.Cluster); now < was.Replicas {
				t.Fatalf("case %d: from %d to %d replicas, %s has %d instead of %d\n%s", i, b.Replicas, more.Replicas,
					was.Cluster, now, was.Replicas, describeCase(clusters, more, after))
			}
		}
	}
}

// With spread constraints, clusters may be chosen anew: those that were chosen and got nothing don't count as having
// the object, so that the order of preference is another one. It is so with the published scheduler.
func TestADecisionThatIsMadeAgainStays(t *testing.T) {
	r := rand.New(rand.NewSource(14))
	for i := range cases(t, 50_000) {
		clusters, b := randomCase(r)
		b.Placement.Spread = nil
		s := NewSnapshot(clusters)
		first := Decide(s, b)
		if first.Failure != nil {
			continue
		}
		b.Previous, b.PreviousTerm, b.Fresh = first.Targets, first.Term, false
		if again := Decide(s, b); !slices.Equal(again.Targets, first.Targets) {
			t.Fatalf("case %d: first %s\n%s", i, outcomeOf(first), describeCase(clusters, b, again))
		}
	}
}

// A WorkloadRebalancer moves nothing that is balanced, also where other clusters would do as well: those that another
// order of their names would have preferred.
func TestADecisionFromScratchKeepsWhatIsBalanced(t *testing.T) {
	r := rand.New(rand.NewSource(15))
	for i := range cases(t, 50_000) {
		b := Binding{
			Kind: deployment, Workload: true, Replicas: int32(r.Intn(30)), UID: oneOf(r, oddUID, evenUID), Fresh: true,
		}
		b.Placement.Strategy = oneOf(r, DynamicWeight, Aggregated, Even)
		clusters, renamed := make([]Cluster, 1+r.Intn(12)), map[string]int{}
		for j, k := range r.Perm(len(clusters)) {
			clusters[j] = Cluster{
				Name: clusterName(k), APIs: NewAPIs(deployment),
				Room: &Room{Free: Resources{Pods: int64(r.Intn(4) * 10)}},
			}
			renamed[clusters[j].Name] = j
		}
		first := Decide(NewSnapshot(clusters), b)
		if first.Failure != nil {
			continue
		}
		for _, target := range first.Targets {
			j := renamed[target.Cluster]
			b.Previous = append(b.Previous, Target{Cluster: clusterName(j), Replicas: target.Replicas})
			clusters[j].Room = &Room{Free: Resources{Pods: clusters[j].Room.Free.Pods - int64(target.Replicas)}}
		}
		b.Previous, b.PreviousTerm = sortedTargets(b.Previous), first.Term
		for j := range clusters {
			clusters[j].Name = clusterName(j)
		}
		if again := Decide(NewSnapshot(clusters), b); !slices.Equal(again.Targets, b.Previous) {
			t.Fatalf("case %d: it was %s\n%s", i, text(b.Previous), describeCase(clusters, b, again))
		}
	}
}

func replicasOn(d Decision, cluster string) int32 {
	for _, t := range d.Targets {
		if t.Cluster == cluster {
			return t.Replicas
		}
	}
	return 0
}

// checkDecision says which property a decision violates.
func checkDecision(clusters []Cluster, b Binding, d Decision) error {
	if d.Failure != nil {
		return checkFailure(b, d)
	}
	return errors.Join(checkTargets(clusters, b, d), checkReplicas(clusters, b, d), checkSpread(clusters, b, d),
		checkReasons(clusters, d))
}

func checkFailure(b Binding, d Decision) error {
	switch {
	case d.Failure.Message == "":
		return errors.New("a failure without a message")
	case d.Failure.Kind == NoRoom && !slices.Equal(d.Targets, b.Previous):
		return fmt.Errorf("no room, and %s instead of what was", text(d.Targets))
	case d.Failure.Kind == NoFit && len(d.Targets) > 0:
		return fmt.Errorf("nothing fits, and yet there is %s", text(d.Targets))
	}
	return nil
}

// checkTargets: only clusters that may take the object, once each, in the order of names.
func checkTargets(clusters []Cluster, b Binding, d Decision) error {
	if len(d.Targets) == 0 {
		return errors.New("placed, but nowhere")
	}
	for i, target := range d.Targets {
		if i > 0 && d.Targets[i-1].Cluster >= target.Cluster {
			return fmt.Errorf("%s and %s are not in order", d.Targets[i-1].Cluster, target.Cluster)
		}
		at := slices.IndexFunc(clusters, func(c Cluster) bool { return c.Name == target.Cluster })
		if at < 0 {
			return fmt.Errorf("%s is no cluster of the snapshot", target.Cluster)
		}
		if against := reasonAgainst(&clusters[at], b, d.Term); against != "" {
			return fmt.Errorf("%s was chosen although %s", target.Cluster, against)
		}
	}
	return nil
}

// reasonAgainst repeats the rules in the words of the API.
func reasonAgainst(c *Cluster, b Binding, term string) string {
	had := slices.ContainsFunc(b.Previous, func(t Target) bool { return t.Cluster == c.Name })
	serves := c.APIs.serves(b.Kind)
	tolerated := len(b.Placement.Tolerations) > 0
	repelled := slices.ContainsFunc(c.Taints,
		func(t corev1.Taint) bool { return t.Effect != corev1.TaintEffectPreferNoSchedule })
	switch {
	case c.Deleting:
		return "it is being deleted"
	case slices.Contains(b.Evicted, c.Name):
		return "it is being left"
	case !serves && !had:
		return "it doesn't serve the kind"
	case repelled && !tolerated && !had:
		return "its taint is not tolerated"
	}
	for _, t := range b.Placement.Terms {
		if t.Name == term && !t.Matches(c) {
			return "the term " + term + " doesn't match it"
		}
	}
	return ""
}

// checkReplicas: all that are wanted, none more, no target without any, and no more than there is room for.
func checkReplicas(clusters []Cluster, b Binding, d Decision) error {
	var total int64
	for _, target := range d.Targets {
		total += int64(target.Replicas)
		switch {
		case target.Replicas < 0:
			return fmt.Errorf("%s has %d replicas", target.Cluster, target.Replicas)
		case !b.Workload && target.Replicas != 0:
			return fmt.Errorf("%s has %d replicas of an object that has none", target.Cluster, target.Replicas)
		case b.Workload && b.Replicas > 0 && target.Replicas == 0:
			return fmt.Errorf("%s is a target without replicas", target.Cluster)
		case b.Workload && b.Placement.Strategy == Duplicated && target.Replicas != b.Replicas:
			return fmt.Errorf("%s has %d of %d duplicated replicas", target.Cluster, target.Replicas, b.Replicas)
		}
	}
	if b.Workload && b.Placement.Strategy != Duplicated && total != int64(b.Replicas) {
		return fmt.Errorf("%d replicas of %d", total, b.Replicas)
	}
	if byGroups := len(b.Placement.Spread) > 1; len(b.Components) > 0 && !byGroups && len(d.Targets) != 1 {
		return fmt.Errorf("a unit is in %d clusters", len(d.Targets))
	}
	if err := checkLimits(clusters, b, d); err != nil {
		return err
	}
	if b.Workload && b.Placement.Strategy.Dynamic() {
		return checkRoom(clusters, b, d)
	}
	return nil
}

// checkLimits: no cluster gets more than its limit, unless it had that many already.
func checkLimits(clusters []Cluster, b Binding, d Decision) error {
	if !b.Workload || b.Placement.Strategy == Duplicated {
		return nil
	}
	for _, target := range d.Targets {
		at := slices.IndexFunc(clusters, func(c Cluster) bool { return c.Name == target.Cluster })
		for _, limit := range b.Placement.Limits {
			had := replicasOn(Decision{Targets: b.Previous}, target.Cluster)
			if limit.Max != nil && limit.Matches(&clusters[at]) && target.Replicas > max(*limit.Max, had) {
				return fmt.Errorf("%s gets %d replicas, at most %d are allowed", target.Cluster, target.Replicas,
					*limit.Max)
			}
		}
	}
	return nil
}

// checkRoom: what a cluster gets beyond what it has must fit; from scratch, what it has counts as room.
func checkRoom(clusters []Cluster, b Binding, d Decision) error {
	for _, target := range d.Targets {
		at := slices.IndexFunc(clusters, func(c Cluster) bool { return c.Name == target.Cluster })
		if b.Placement.Strategy == Even && clusters[at].Room == nil {
			continue // a cluster of which nothing is known has room for any number
		}
		room := NewSnapshot(clusters).Estimate(target.Cluster, b)
		if had := replicasOn(Decision{Targets: b.Previous}, target.Cluster); int64(target.Replicas) > room+int64(had) {
			return fmt.Errorf("%s gets %d replicas, has %d and room for %d", target.Cluster, target.Replicas, had, room)
		}
	}
	return nil
}

// checkSpread: bounds of the number of groups. Clusters whose share is nothing count as chosen but aren't targets, so
// that the lower bound can be checked only where every chosen one gets something.
func checkSpread(clusters []Cluster, b Binding, d Decision) error {
	everyOneGets := !b.Workload || b.Replicas == 0 || b.Placement.Strategy == Duplicated
	for _, constraint := range b.Placement.Spread {
		groups := map[string]struct{}{}
		for _, target := range d.Targets {
			at := slices.IndexFunc(clusters, func(c Cluster) bool { return c.Name == target.Cluster })
			name := constraint.groupOf(&clusters[at])
			if name == "" {
				return fmt.Errorf("%s has no %s", target.Cluster, constraint.Field)
			}
			groups[name] = struct{}{}
		}
		if constraint.Field == FieldCluster && len(groups) == groupsOf(clusters, b, d) {
			continue // each group that is chosen has one, however few clusters are allowed
		}
		if constraint.Max != nil && len(groups) > *constraint.Max {
			return fmt.Errorf("%d groups by %s, at most %d", len(groups), constraint.Field, *constraint.Max)
		}
		if everyOneGets && len(groups) < constraint.Min {
			return fmt.Errorf("%d groups by %s, at least %d", len(groups), constraint.Field, constraint.Min)
		}
	}
	return nil
}

// groupsOf counts the groups of the targets if there is one constraint beside that of clusters; else it is 0.
func groupsOf(clusters []Cluster, b Binding, d Decision) int {
	by := slices.DeleteFunc(slices.Clone(b.Placement.Spread),
		func(c SpreadConstraint) bool { return c.Field == FieldCluster })
	if len(by) != 1 {
		return 0
	}
	groups := map[string]struct{}{}
	for i := range clusters {
		if slices.ContainsFunc(d.Targets, func(t Target) bool { return t.Cluster == clusters[i].Name }) {
			groups[by[0].groupOf(&clusters[i])] = struct{}{}
		}
	}
	return len(groups)
}

// checkReasons: every cluster is a target or has one reason; reasons are in the order of names.
func checkReasons(clusters []Cluster, d Decision) error {
	reasons := d.Reasons()
	for i, r := range reasons {
		if i > 0 && reasons[i-1].Cluster >= r.Cluster {
			return fmt.Errorf("reasons of %s and %s are not in order", reasons[i-1].Cluster, r.Cluster)
		}
		if r.Code == Fits || r.Message == "" {
			return fmt.Errorf("%s has an empty reason", r.Cluster)
		}
	}
	for _, c := range clusters {
		chosen := slices.ContainsFunc(d.Targets, func(t Target) bool { return t.Cluster == c.Name })
		reasoned := slices.ContainsFunc(reasons, func(r Reason) bool { return r.Cluster == c.Name })
		if chosen == reasoned {
			return fmt.Errorf("%s: chosen %v, reason %v", c.Name, chosen, reasoned)
		}
	}
	return nil
}

func describeCase(clusters []Cluster, b Binding, d Decision) string {
	description := fmt.Sprintf("binding: %+v\ndecision: %s, term %q: %s\n", b, outcomeOf(d), d.Term, d.Explain())
	for _, constraint := range b.Placement.Spread {
		most := "any"
		if constraint.Max != nil {
			most = fmt.Sprint(*constraint.Max)
		}
		description += fmt.Sprintf("spread by %s: %d to %s\n", constraint.Field, constraint.Min, most)
	}
	for _, c := range clusters {
		description += fmt.Sprintf("%s: region %q provider %q zones %v taints %v deleting %v serves it %v room %+v\n",
			c.Name, c.Region, c.Provider, c.Zones, c.Taints, c.Deleting, c.APIs.serves(deployment), c.Room)
	}
	return description
}

// A share with weight gets a seat as soon as there are as many as it takes to reach its weight.
func TestApportionStarvesNobody(t *testing.T) {
	r := rand.New(rand.NewSource(15))
	for range cases(t, 200_000) {
		shares := randomShares(r)
		var total, smallest int64
		for _, s := range shares {
			total += s.Weight
			if s.Weight > 0 && (smallest == 0 || s.Weight < smallest) {
				smallest = s.Weight
			}
		}
		if total == 0 {
			continue
		}
		seats := total/smallest + 2*int64(len(shares))
		Apportion(seats, shares, false)
		for _, s := range shares {
			if s.Weight > 0 && s.Seats == 0 {
				t.Fatalf("%d seats, %s gets none: %+v", seats, s.Cluster, shares)
			}
		}
	}
}

// Shares add up, grow only, don't depend on their order, and stay below their weight while there are fewer seats than
// weight.
func TestApportionHoldsItsProperties(t *testing.T) {
	r := rand.New(rand.NewSource(16))
	for range cases(t, 500_000) {
		shares := randomShares(r)
		seats, more := int64(r.Intn(60)), int64(r.Intn(5))
		descending := oneIn(r, 2)
		now, mix, grown := slices.Clone(shares), mixed(r, shares), slices.Clone(shares)
		Apportion(seats, now, descending)
		Apportion(seats, mix, descending)
		Apportion(seats+more, grown, descending)
		slices.SortFunc(mix, func(a, b Share) int { return compareNames(a.Cluster, b.Cluster) })
		var given, weight int64
		for i := range now {
			given, weight = given+now[i].Seats, weight+now[i].Weight
			if grown[i].Seats < now[i].Seats {
				t.Fatalf("%d seats more take one from %s: %+v, %+v", more, now[i].Cluster, now, grown)
			}
		}
		if given != seats || !slices.Equal(mix, now) {
			t.Fatalf("%d seats: %+v, in another order %+v", seats, now, mix)
		}
		for _, s := range now {
			if seats <= weight && s.Seats > s.Weight {
				t.Fatalf("%d seats: %s gets more than its weight: %+v", seats, s.Cluster, now)
			}
		}
	}
}

func randomShares(r *rand.Rand) []Share {
	shares := make([]Share, 1+r.Intn(8))
	for i := range shares {
		shares[i] = Share{Cluster: clusterName(i), Weight: int64(r.Intn(oneOf(r, 3, 20, 500)))}
	}
	return shares
}

func FuzzDecide(f *testing.F) {
	r := rand.New(rand.NewSource(17))
	for range 20 {
		data := make([]byte, 400)
		r.Read(data)
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		clusters, b := randomCase(&bytesChooser{data})
		d := Decide(NewSnapshot(clusters), b)
		if err := checkDecision(clusters, b, d); err != nil {
			t.Fatalf("%v\n%s", err, describeCase(clusters, b, d))
		}
		otherClusters, other := shuffled(rand.New(rand.NewSource(int64(len(data)))), clusters, b)
		if again := Decide(NewSnapshot(otherClusters), other); !sameOutcome(d, again) {
			t.Fatalf("in another order it is %s\n%s", outcomeOf(again), describeCase(clusters, b, d))
		}
	})
}
