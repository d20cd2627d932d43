package restore

import (
	"errors"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	etcdcomponent "github.com/trellis-garden/trellis/pkg/component/etcd"
	"github.com/trellis-garden/trellis/pkg/errorcodes"
	"github.com/trellis-garden/trellis/pkg/gardenlet/shoot/plan"
)

const namespace = "shoot--demo--one"

var noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

func newRecord(objects ...client.Object) *Record {
	return &Record{Seed: fake.NewClientBuilder().WithObjects(objects...).Build(), Namespace: namespace}
}

// asks has a Shoot of a generation ask, and takes the operation unless it was killed before.
func (r *Record) asks(t *testing.T, to time.Time, generation int64, killed bool) (asked bool) {
	t.Helper()
	asked, err := r.Ask(t.Context(), to, generation)
	if err == nil && asked && !killed {
		err = r.Take(t.Context(), generation)
	}
	if err != nil {
		t.Fatal(err)
	}
	return asked
}

func (r *Record) request(t *testing.T) plan.Restore {
	t.Helper()
	got, err := r.Read(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// However often a Shoot is read that asks for a time, it is one request, and what is asked later is another.
func TestARequestIsOne(t *testing.T) {
	r := newRecord()
	if got := r.request(t); got != (plan.Restore{}) {
		t.Errorf("there is %+v before it is asked for", got)
	}
	r.asks(t, noon, 3, true)
	if got := r.request(t); got != (plan.Restore{}) {
		t.Errorf("there is %+v before it is taken", got)
	}
	pending, _, err := r.read(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	// Killed before the operation was taken, with a change of the specification meanwhile.
	r.asks(t, noon, 4, false)
	first := r.request(t)
	if first.ID != pending.Data[keyID] || first.To != "2026-01-01T12:00:00Z" || first.Validate() != nil {
		t.Errorf("got %+v, %v", first, first.Validate())
	}
	// A cache has the Shoot of before.
	for generation := range int64(5) {
		if r.asks(t, noon, generation, false) || r.request(t) != first {
			t.Errorf("a Shoot of generation %d is taken for a new request", generation)
		}
	}
	// The same time, asked for anew.
	if !r.asks(t, noon, 5, false) {
		t.Error("a new request was not taken")
	}
	second := r.request(t)
	if second.ID == first.ID || second.To != first.To {
		t.Errorf("after %+v there is %+v", first, second)
	}
	r.asks(t, noon.Add(time.Hour), 6, false)
	if third := r.request(t); third.ID == second.ID || third.To != "2026-01-01T13:00:00Z" {
		t.Errorf("after %+v there is %+v", second, third)
	}
}

// Killed between the two, gardenlet notes later that the operation is taken.
func TestTakeIsMadeUpFor(t *testing.T) {
	r := newRecord()
	for range 2 {
		if err := r.Take(t.Context(), 7); err != nil {
			t.Fatal(err)
		}
		if got := r.request(t); got != (plan.Restore{}) {
			t.Errorf("nothing was asked for, there is %+v", got)
		}
	}
	r.asks(t, noon, 3, true)
	if err := r.Take(t.Context(), 4); err != nil {
		t.Fatal(err)
	}
	if r.request(t).ID == "" || r.asks(t, noon, 4, false) {
		t.Error("it was not taken")
	}
}

// etcdThatEnded is a pod with arguments whose container has run before.
func etcdThatEnded(message string, arguments ...string) client.Object {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: "etcd-main-0", Labels: etcdcomponent.Labels(etcdcomponent.Main),
		},
		Spec: corev1.PodSpec{Containers: []corev1.Container{
			{Name: "etcd", Args: append([]string{"--name=etcd-main"}, arguments...)}, {Name: "of-others"},
		}},
		Status: corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{
			LastTerminationState: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{Message: message}},
		}}},
	}
}

// A refusal fails the operation for good, and once only.
func TestARefusalIsTold(t *testing.T) {
	for name, test := range map[string]struct {
		ended, want string
		notGiven    bool
	}{
		"it was restored":        {},
		"another one is refused": {ended: "Error: restore request other is refused: it is too old"},
		"it is refused": {
			ended: "Error: restore request ID is refused: it is too old\n", want: "is refused: it is too old",
		},
		"nobody was asked": {notGiven: true, want: "was not carried out: an etcd without a store"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRecord()
			r.asks(t, noon, 1, false)
			asked := r.request(t)
			id, arguments := asked.ID, asked.Arguments()
			if test.notGiven {
				arguments = nil
			}
			pod := etcdThatEnded(strings.ReplaceAll(test.ended, "ID", id), arguments...)
			if err := r.Seed.Create(t.Context(), pod); err != nil {
				t.Fatal(err)
			}
			err := r.Check(t.Context())
			if (err != nil) != (test.want != "") {
				t.Fatalf("got %v", err)
			}
			var mistake *plan.ConfigurationError
			if err != nil && (!strings.Contains(err.Error(), test.want) || !errors.As(err, &mistake) ||
				!errorcodes.NeedChange(errorcodes.Of(err))) {
				t.Errorf("got %v", err)
			}
			if got := r.request(t); !got.Settled || got.ID != id {
				t.Errorf("got %+v", got)
			}
		})
	}
}

// Of three members, one refuses for all.
func TestTheRefusalOfOneMemberIsTold(t *testing.T) {
	r := newRecord()
	r.asks(t, noon, 1, false)
	asked := r.request(t)
	for i, ended := range []string{
		"", "Error: etcd-0 is away", "Error: " + asked.Refusal(errors.New("etcd-1 is away")).Error() + "\n",
	} {
		pod := etcdThatEnded(ended, asked.Arguments()...)
		pod.SetName(etcdcomponent.PodNames(etcdcomponent.Main, 3)[i])
		if err := r.Seed.Create(t.Context(), pod); err != nil {
			t.Fatal(err)
		}
	}
	if err := r.Check(t.Context()); err == nil || !strings.Contains(err.Error(), "etcd-1 is away (asked for was") {
		t.Errorf("got %v", err)
	}
}
