package etcd

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/emptypb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/trellis-garden/trellis/pkg/etcd/request"
)

// pastOfThree is an etcd of three members that were stopped, whose changes were saved at different times.
type pastOfThree struct {
	*testCluster
	// to is a time between; earlier and later are how many keys there were then and at the end, seen the last revision.
	to             time.Time
	earlier, later int
	seen           int64
}

// aPastOfThree writes, waits until a delta would be of another time, and writes on.
func aPastOfThree(t *testing.T) *pastOfThree {
	t.Helper()
	h := &pastOfThree{testCluster: newTestCluster(t), earlier: 20, later: 21}
	h.store(t)
	h.launch(t)
	h.waitReady(t)
	p := h.processes[0]
	h.write(t, 0, h.earlier)
	p.waitForStore(t, p.revision(t))
	h.to = p.nextSecond(t)
	p.put(t, "key/later", "x")
	p.waitForStore(t, p.revision(t))
	h.seen = p.revision(t)
	h.stop(t)
	return h
}

// ask has members ask for the time between, all of them without ordinals.
func (h *pastOfThree) ask(at time.Time, id string, ordinals ...int) {
	if len(ordinals) == 0 {
		ordinals = []int{0, 1, 2}
	}
	for _, i := range ordinals {
		h.options[i].Restore = to(at, id)
	}
}

// checkRestored waits until three members have what there was, and checks that clients can tell.
func (h *pastOfThree) checkRestored(t *testing.T) {
	t.Helper()
	h.waitReady(t)
	h.voters(t)
	h.check(t, h.earlier)
	checkCompacted(t, h.processes[0], h.seen)
}

func TestThreeMembersGoBackToAPointInTime(t *testing.T) {
	t.Parallel()
	h := aPastOfThree(t)
	h.ask(h.to, "one")
	h.launch(t)
	h.checkRestored(t)
	for _, o := range h.options {
		checkKept(t, o, 1)
	}
	// Backups go on after it, and neither another start nor the loss of a volume repeats it.
	h.write(t, h.earlier, 1)
	h.processes[0].waitForStore(t, h.processes[0].revision(t))
	h.stop(t)
	h.launch(t)
	h.waitReady(t)
	h.check(t, h.earlier+1)
	h.processes[0].kill(t)
	h.options[0].DataDir = t.TempDir()
	h.launch(t, 0)
	h.waitReady(t)
	h.check(t, h.earlier+1)
}

// Whoever is killed, in whatever state of the three, it comes to the same. What the first does when it is alone, it
// does as a single member (TestAnInterruptedRestoreConverges). When it has just become that, all are killed (below).
func TestAnInterruptedRestoreOfThreeMembersConverges(t *testing.T) {
	for ordinal, steps := range map[int][]string{
		0: {"leading", "removing", "built", "complete", "placed"},
		1: {"left"},
		2: {"joining"},
	} {
		for _, step := range steps {
			t.Run(fmt.Sprintf("%d %s", ordinal, step), func(t *testing.T) {
				t.Parallel()
				h := aPastOfThree(t)
				h.ask(h.to, "one")
				for i := range h.options {
					if i != ordinal {
						h.launch(t, i)
					}
				}
				p := launch(t, h.options[ordinal], killEnv+"="+step)
				select {
				case <-p.exited:
				case <-time.After(2 * time.Minute):
					t.Fatalf("it was not interrupted:\n%s", p.log())
				}
				if p.command.ProcessState.Success() || strings.Contains(p.output.String(), "refused") {
					t.Fatalf("it was not interrupted: %s\n%s", p.command.ProcessState, p.output)
				}
				h.launch(t, ordinal)
				h.checkRestored(t)
				for _, o := range h.options {
					checkKept(t, o, 1)
				}
			})
		}
	}
}

// All are killed when the first has just become the only one.
func TestARestoreOfThreeMembersOutlastsTheLossOfAllProcesses(t *testing.T) {
	t.Parallel()
	h := aPastOfThree(t)
	h.ask(h.to, "one")
	h.launch(t, 1, 2)
	p := launch(t, h.options[0], killEnv+"=removed")
	<-p.exited
	h.processes[1].kill(t)
	h.processes[2].kill(t)
	h.launch(t, 2)
	h.waitData(t, 2)
	h.launch(t, 0, 1)
	h.checkRestored(t)
}

// When the second volume of the two that are members yet is lost, the backups make up for it, and the restore goes on.
func TestAVolumeIsLostDuringARestoreOfThreeMembers(t *testing.T) {
	t.Parallel()
	h := aPastOfThree(t)
	h.ask(h.to, "one")
	h.launch(t, 1, 2)
	p := launch(t, h.options[0], killEnv+"=removing")
	<-p.exited
	h.processes[1].kill(t)
	h.options[1].DataDir = t.TempDir()
	h.launch(t, 0, 1)
	h.processes[0].waitForLog(t, "or one while a point in time is restored")
	for i, p := range h.processes {
		p.kill(t)
		h.options[i].DataDir = t.TempDir()
	}
	h.launch(t)
	h.checkRestored(t)
}

// What cannot be restored is told, and all three go on with what there was.
func TestARestoreOfThreeMembersIsRefused(t *testing.T) {
	for name, test := range map[string]struct {
		// prepare returns the time that is asked for.
		prepare func(t *testing.T, h *pastOfThree) time.Time
		starts  []int
		says    string
		parted  bool
	}{
		"in the future": {
			prepare: func(*testing.T, *pastOfThree) time.Time { return time.Now().Add(time.Hour) },
			says:    "that time cannot be restored",
		},
		"one is away": {starts: []int{0, 1}, says: "etcd-2"},
		"no room": {
			prepare: func(t *testing.T, h *pastOfThree) time.Time { h.fill(t, 0); return h.to },
			says:    "lacks room",
		},
		"a damaged backup, where one that is removed is full": {
			prepare: func(t *testing.T, h *pastOfThree) time.Time {
				h.fill(t, 1)
				single := past{options: h.options[0], to: h.to}
				truncate(t, single.path(single.at(t).Full), 100)
				return h.to
			},
			says: "the backup is damaged", parted: true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := aPastOfThree(t)
			at := h.to
			if test.prepare != nil {
				at = test.prepare(t, h)
			}
			h.ask(at, "one")
			h.launch(t, test.starts...)
			first := h.processes[0]
			<-first.exited
			refusal, _ := h.options[0].Restore.FindRefusal(first.output.String())
			if !strings.Contains(refusal, test.says) {
				t.Errorf("%q does not say %q:\n%s", refusal, test.says, first.output)
			}
			if removed := strings.Contains(first.output.String(), "removing another member"); removed != test.parted {
				t.Errorf("others were removed: %v, want %v", removed, test.parted)
			}
			if len(test.starts) > 0 {
				h.launch(t, 2)
			}
			h.launch(t, 0)
			h.waitReady(t)
			h.voters(t)
			h.check(t, h.later)
			// The first has kept nothing aside, as its data is the same.
			checkKept(t, h.options[0], 0)
		})
	}
}

// fill has the volume of a member be full, so that all are read-only.
func (h *pastOfThree) fill(t *testing.T, ordinal int) {
	t.Helper()
	h.launch(t)
	h.waitReady(t)
	h.processes[ordinal].fill(t)
	h.stop(t)
}

// A volume of before the restore appears again, whose steward finds others or nobody. It brings nothing back.
func TestAttackDataOfBeforeARestoreComesBack(t *testing.T) {
	for name, isCut := range map[string]bool{"while it is reached": false, "while it reaches nobody": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := aPastOfThree(t)
			before := t.TempDir()
			if err := os.CopyFS(before, os.DirFS(h.options[2].DataDir)); err != nil {
				t.Fatal(err)
			}
			h.ask(h.to, "one")
			h.launch(t)
			h.checkRestored(t)
			h.processes[2].kill(t)
			h.options[2].DataDir = before
			// It says nothing of a request.
			h.options[2].Restore = request.Restore{}
			for _, l := range h.links {
				l.setCut(isCut)
			}
			h.launch(t, 2)
			if isCut {
				h.processes[2].waitForLog(t, "the data is intact")
				h.processes[2].waitForLog(t, quorumAdvice)
			}
			for _, l := range h.links {
				l.setCut(false)
			}
			h.checkRestored(t)
			checkKept(t, h.options[2], 1)
			h.write(t, h.earlier, 5)
			h.check(t, h.earlier+5)
		})
	}
}

// Who is no first member, or is asked by a client only, begins nothing; nor does the first one alone.
func TestAttackNobodyElseBeginsARestore(t *testing.T) {
	t.Parallel()
	h := aPastOfThree(t)
	h.ask(h.to, "one", 1, 2)
	h.launch(t)
	h.waitReady(t)
	client := h.connect(t, h.options[0])
	err := client.ActiveConnection().Invoke(t.Context(), "/"+membersService+"/"+restoreMethod,
		wrapperspb.String(h.options[1].Restore.String()), &emptypb.Empty{})
	if err == nil || !strings.Contains(err.Error(), "not asked") {
		t.Errorf("the first member answers %v", err)
	}
	h.voters(t)
	h.check(t, h.later)
	h.stop(t)

	// One that is asked by nobody else, and ones that were asked for another time.
	h.ask(h.to, "two", 0)
	h.launch(t)
	<-h.processes[0].exited
	refusal, _ := h.options[0].Restore.FindRefusal(h.processes[0].output.String())
	if !strings.Contains(refusal, "it is not asked to restore that") {
		t.Errorf("got %q:\n%s", refusal, h.processes[0].output)
	}
	h.launch(t, 0)
	h.waitReady(t)
	h.voters(t)
	h.check(t, h.later)
}

// A member that hangs while it is removed finds out when it goes on.
func TestAMemberThatHangsDuringARestoreJoinsAgain(t *testing.T) {
	t.Parallel()
	h := aPastOfThree(t)
	h.ask(h.to, "one")
	h.launch(t, 1, 2)
	p := launch(t, h.options[0], killEnv+"=gathered")
	<-p.exited
	if err := h.processes[2].command.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	h.launch(t, 0)
	h.processes[0].waitUntil(t, "saying what is missing", func() error {
		if log := h.processes[0].output.String(); !strings.Contains(log, "etcd-2") {
			return errors.New("it does not")
		}
		return nil
	})
	if err := h.processes[2].command.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	h.checkRestored(t)
}

// A member that hangs from before its removal until the restore is done is told nothing: the others are another
// cluster then.
func TestAMemberThatMissesARestoreJoinsAgain(t *testing.T) {
	t.Parallel()
	h := aPastOfThree(t)
	h.ask(h.to, "one")
	held := heldMarker(h.options[0].DataDir, "leading")
	write(t, held, "")
	h.launch(t)
	h.processes[0].waitForLog(t, "held up at leading")
	if err := h.processes[2].command.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	// Nothing of the removal waits for it in a connection.
	for _, l := range h.links {
		l.setCut(true)
		l.setCut(false)
	}
	removeAll(t, held)
	h.processes[0].waitForLog(t, "RESTORED a point in time")
	h.waitReady(t, 0)
	if err := h.processes[2].command.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	h.processes[2].waitForLog(t, "this member is left behind")
	h.checkRestored(t)
	checkKept(t, h.options[2], 1)
}

func TestTheOutcomeSaysWhatItReplaces(t *testing.T) {
	for content, want := range map[string]uint64{
		`{"replaces":"1f"}`: 0x1f, `{"replaces":""}`: 0, `{"refused":"no"}`: 0, `no JSON`: 0, `{"replaces":"x"}`: 0,
		`{"replaces":"1ffffffffffffffff"}`: 0,
	} {
		if got := replacedBy([]byte(content)); got != want {
			t.Errorf("%s: got %x", content, got)
		}
	}
}

// Whatever a member or a client of the others says, it is whose data it is, or nothing.
func FuzzWhatOthersSay(f *testing.F) {
	f.Add([]byte(`{"name":"etcd-1","holds":"data","cluster":"7","member":"1f","removed":true,"awaits":"one to x"}`))
	f.Add([]byte(`{"to":"2026-01-01T12:00:00Z","replaces":"ff","at":"2026-01-01T12:00:00Z"}`))
	f.Fuzz(func(t *testing.T, content []byte) {
		replacedBy(content)
		var answer stewardAnswer
		if json.Unmarshal(content, &answer) != nil {
			return
		}
		own := answer.identity()
		if own.cluster == 0 && own.member == 0 && answer.Removed && own.outlives(own) {
			t.Errorf("%s is taken for data that another has come of", content)
		}
		if own.isRemoved() && !answer.Removed {
			t.Errorf("%s is taken for a member that was removed", content)
		}
	})
}
