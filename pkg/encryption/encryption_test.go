package encryption

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiserverv1 "k8s.io/apiserver/pkg/apis/apiserver/v1"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/trellis-garden/trellis/pkg/secrets"
)

var start = time.Unix(1_800_000_000, 500)

func TestConfiguration(t *testing.T) {
	key := func(name string) *corev1.Secret {
		return &corev1.Secret{Data: map[string][]byte{"name": []byte(name), "key": []byte("c2VjcmV0")}}
	}
	both := Keys{Current: key("new"), Old: key("old")}
	of := func(provider Provider, resources ...string) Scheme {
		return Scheme{Provider: provider, Resources: resources}
	}
	for _, test := range []struct {
		name     string
		from, to Scheme
		stage    Stage
		keys     Keys
		want     string
	}{
		{
			"never rotated", of(Secretbox, "s"), of(Secretbox, "s"), "", Keys{Current: key("new")},
			"s: secretbox new, identity",
		},
		{"an old key that is still kept", of(AESCBC, "s"), of(AESCBC, "s"), "", both, "s: aescbc new old, identity"},
		{"preparing", of(Secretbox, "s"), of(Secretbox, "s"), Preparing, both, "s: secretbox old new, identity"},
		{
			"preparing without a key before", of(Secretbox, "s"), of(Secretbox, "s"), Preparing,
			Keys{Current: key("new")}, "s: identity, secretbox new",
		},
		{"rewriting", of(Secretbox, "s"), of(Secretbox, "s"), Rewriting, both, "s: secretbox new old, identity"},
		{
			"completing", of(AESGCM, "s"), of(AESGCM, "s"), Completing, Keys{Current: key("new")},
			"s: aesgcm new, identity",
		},
		{
			"a resource more, preparing", of(AESCBC, "s"), of(AESCBC, "s", "c"), Preparing, Keys{Current: key("k")},
			"s: aescbc k, identity; c: identity, aescbc k",
		},
		{
			"a resource more, rewriting", of(AESCBC, "s"), of(AESCBC, "s", "c"), Rewriting, Keys{Current: key("k")},
			"s: aescbc k, identity; c: aescbc k, identity",
		},
		{
			"a resource less, preparing", of(AESCBC, "s", "c"), of(AESCBC, "s"), Preparing, Keys{Current: key("k")},
			"s: aescbc k, identity; c: aescbc k, identity",
		},
		{
			"a resource less, rewriting", of(AESCBC, "s", "c"), of(AESCBC, "s"), Rewriting, Keys{Current: key("k")},
			"s: aescbc k, identity; c: identity, aescbc k",
		},
		{
			"a resource less, completing", of(AESCBC, "s", "c"), of(AESCBC, "s"), Completing, Keys{Current: key("k")},
			"s: aescbc k, identity",
		},
		{
			"another provider, preparing", of(AESCBC, "s"), of(Secretbox, "s"), Preparing, Keys{Current: key("k")},
			"s: aescbc k, secretbox k, identity",
		},
		{
			"another provider, rewriting", of(AESCBC, "s"), of(Secretbox, "s"), Rewriting, Keys{Current: key("k")},
			"s: secretbox k, aescbc k, identity",
		},
		{
			"all at once", of(AESCBC, "s"), of(Secretbox, "s", "c"), Preparing, both,
			"s: aescbc old new, secretbox old new, identity; c: identity, secretbox old new",
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			var groups []string
			for _, group := range Configuration(test.from, test.to, test.stage, test.keys).Resources {
				groups = append(groups, strings.Join(group.Resources, ",")+": "+describe(group.Providers))
			}
			if got := strings.Join(groups, "; "); got != test.want {
				t.Errorf("configuration is\n%s, want\n%s", got, test.want)
			}
		})
	}
}

func describe(list []apiserverv1.ProviderConfiguration) string {
	var words []string
	for _, provider := range list {
		word, keys := "identity", []apiserverv1.Key(nil)
		switch {
		case provider.Secretbox != nil:
			word, keys = "secretbox", provider.Secretbox.Keys
		case provider.AESCBC != nil:
			word, keys = "aescbc", provider.AESCBC.Keys
		case provider.AESGCM != nil:
			word, keys = "aesgcm", provider.AESGCM.Keys
		}
		for _, key := range keys {
			word += " " + key.Name
		}
		words = append(words, word)
	}
	return strings.Join(words, ", ")
}

// garden is a garden as a rotation sees it: a record, two servers and one object.
type garden struct {
	t      *testing.T
	record Record
	// deployed are the stages that the servers run with; one is rolled out after the other.
	deployed [2]Stage
	// writtenWith is the key of the object.
	writtenWith string
	dropped     bool
	// steps are counted down to a failure.
	steps int
	log   []string
}

var errStopped = errors.New("stopped")

func (g *garden) step(what string, do func()) error {
	if g.steps == 0 {
		return errStopped
	}
	g.steps--
	g.log = append(g.log, what)
	do()
	g.check()
	return nil
}

func (g *garden) rotation() Rotation {
	return Rotation{
		Load: func(context.Context) (Record, error) { return g.record, nil },
		Save: func(_ context.Context, record Record) error {
			return g.step("save "+string(record.Stage), func() { g.record = record })
		},
		Deploy: func(_ context.Context, record Record) error {
			for i := range g.deployed {
				if err := g.step(fmt.Sprintf("deploy %s %d", record.Stage, i),
					func() { g.deployed[i] = record.Stage }); err != nil {
					return err
				}
			}
			return nil
		},
		Rewrite: func(context.Context) error { return g.step("rewrite", func() { g.writtenWith = "new" }) },
		Drop:    func(context.Context) error { return g.step("drop", func() { g.dropped = true }) },
		Clock:   clocktesting.NewFakePassiveClock(start),
	}
}

// reads tells which keys a server of a stage reads with.
func reads(stage Stage) []string {
	switch stage {
	case "":
		return []string{"old"}
	case Completing, Completed:
		return []string{"new"}
	}
	return []string{"old", "new"}
}

func writes(stage Stage) string {
	if stage == "" || stage == Preparing {
		return "old"
	}
	return "new"
}

// check makes sure that each server reads what is stored, and what the other may be writing.
func (g *garden) check() {
	g.t.Helper()
	for _, reader := range g.deployed {
		for _, key := range []string{g.writtenWith, writes(g.deployed[0]), writes(g.deployed[1])} {
			if !slices.Contains(reads(reader), key) {
				g.t.Fatalf("a server of stage %q cannot read what key %q wrote, after %v", reader, key, g.log)
			}
		}
	}
	if g.dropped && g.writtenWith == "old" {
		g.t.Fatalf("the old key is gone and still needed, after %v", g.log)
	}
}

// A rotation that is stopped after any of its steps goes on from there, and no server meets a key that it does not
// know.
func TestRotationGoesOn(t *testing.T) {
	const allSteps = 12
	for stop := range allSteps + 1 {
		g := &garden{t: t, writtenWith: "old", steps: stop}
		if err := g.rotation().Run(t.Context()); (stop < allSteps) != errors.Is(err, errStopped) {
			t.Fatalf("stopped after %d steps: error %v", stop, err)
		}
		initiated := g.record.Initiated
		g.steps = allSteps
		if g.record.Stage != Completed {
			if err := g.rotation().Run(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if g.writtenWith != "new" || !g.dropped || g.record.Stage != Completed {
			t.Errorf("stopped after %d steps it ended with %+v", stop, g.record)
		}
		if stop > 0 && !g.record.Initiated.Equal(initiated) {
			t.Errorf("stopped after %d steps it began anew", stop)
		}
	}
}

// A rotation that is to stop keeps the old key until it is run again.
func TestRotationStopsWhereItIsTold(t *testing.T) {
	g := &garden{t: t, writtenWith: "old", steps: 100}
	for range 2 {
		r := g.rotation()
		r.Until = Rewriting
		if err := r.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		if g.record.Stage != Rewriting || g.writtenWith != "new" || g.dropped {
			t.Fatalf("it stopped at %+v with what key %q wrote", g.record, g.writtenWith)
		}
	}
	g.record.Stage = Completing
	r := g.rotation()
	if err := r.Run(t.Context()); err != nil || g.record.Stage != Completed || !g.dropped {
		t.Errorf("it ended at %+v: %v", g.record, err)
	}
}

func TestRotationRefusesAnUnknownStage(t *testing.T) {
	g := &garden{t: t, record: Record{Stage: "Elsewhere"}, steps: 10}
	if err := g.rotation().Run(t.Context()); err == nil || !strings.Contains(err.Error(), `"Elsewhere"`) {
		t.Errorf("error = %v, want one that names the stage", err)
	}
}

// The keys of each stage, as the secrets manager keeps them.
func TestGenerateKeys(t *testing.T) {
	c := fake.NewClientBuilder().Build()
	clock := clocktesting.NewFakePassiveClock(start)
	keys := func(record Record) Keys {
		manager, err := secrets.New(t.Context(), c, "garden",
			secrets.Options{RotationInitiation: record.Initiations("key"), Clock: clock})
		if err != nil {
			t.Fatal(err)
		}
		found, err := GenerateKeys(t.Context(), manager, "key", record.Stage)
		if err != nil {
			t.Fatal(err)
		}
		if record.Stage == Completed {
			if err := manager.Cleanup(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		return found
	}
	first := keys(Record{})
	if first.Old != nil {
		t.Error("there is an old key before any rotation")
	}
	clock.SetTime(start.Add(time.Hour))
	record := Record{Initiated: clock.Now().Truncate(time.Second), Stage: Preparing}
	during := keys(record)
	if during.Old == nil || during.Old.Name != first.Current.Name || during.Current.Name == first.Current.Name {
		t.Errorf("in the rotation the keys are %v", during)
	}
	record.Stage = Completed
	if after := keys(record); after.Old != nil || after.Current.Name != during.Current.Name {
		t.Errorf("after the rotation the keys are %v", after)
	}
	list := &corev1.SecretList{}
	if err := c.List(t.Context(), list); err != nil || len(list.Items) != 1 {
		t.Errorf("%d Secrets are left, error %v; want the new key only", len(list.Items), err)
	}
}
