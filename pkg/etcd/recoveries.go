package etcd

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/trellis-garden/trellis/pkg/etcd/status"
)

// recoveriesFile remembers recoveries, below the data directory. It is no data: without it, etcd starts as well.
const recoveriesFile = "recoveries.json"

// recoveries are what became of the data of a volume. They are told of, so that failing to remember them stops nothing.
type recoveries struct {
	path string
	log  *zap.Logger
	now  func() time.Time

	mu    sync.Mutex
	state recoveriesState
}

// recoveriesState is what the file has.
type recoveriesState struct {
	// Begun is written before anything is done about what was found, so that a start which was interrupted does not
	// hide it from the next one.
	Begun *status.Recovery `json:"begun,omitempty"`
	// Differs is what data that serves was found not to be.
	Differs *status.Difference `json:"differs,omitempty"`
	// Ended are the last ones, the last one last.
	Ended []status.Recovery `json:"ended,omitempty"`
}

func newRecoveries(dataDir string, log *zap.Logger) *recoveries {
	return &recoveries{path: filepath.Join(dataDir, recoveriesFile), log: log, now: time.Now}
}

// load reads what earlier stewards have written.
func (r *recoveries) load() {
	r.mu.Lock()
	defer r.mu.Unlock()
	content, err := os.ReadFile(r.path)
	if errors.Is(err, fs.ErrNotExist) {
		return
	}
	var state recoveriesState
	if err == nil {
		err = json.Unmarshal(content, &state)
	}
	if err != nil {
		r.log.Warn("what was remembered of recoveries cannot be read, and is given up", zap.Error(err))
		return
	}
	r.state = state
}

// change changes what is remembered, and writes it.
func (r *recoveries) change(change func(*recoveriesState)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	change(&r.state)
	err := writeDurably(r.path, func(w io.Writer) error { return json.NewEncoder(w).Encode(r.state) })
	if err != nil {
		r.log.Warn("what is found and restored cannot be remembered; a restart will not tell of it", zap.Error(err))
	}
}

// begin notes what was found. Data that is gone after a recovery was begun was set aside by it: what that has found
// stays.
func (r *recoveries) begin(found status.Recovery) {
	r.change(func(state *recoveriesState) {
		if state.Begun != nil && found.Cause == status.DataLost {
			state.Begun.Restored = nil
			return
		}
		found.Found, found.Reason = r.now().UTC(), status.Text(found.Reason)
		if state.Begun = &found; found.Cause != status.LogDamaged {
			state.Differs = nil
		}
	})
}

// setAside notes where the data was moved.
func (r *recoveries) setAside(path string) {
	r.changeBegun(func(begun *status.Recovery) { begun.Aside = path })
}

// restored notes what will be in the place of the data with the next step.
func (r *recoveries) restored(what status.Restored) {
	r.changeBegun(func(begun *status.Recovery) {
		begun.Restored = &what
		begun.Missing = missing(begun)
	})
}

// changeBegun changes the recovery that was begun. On a first start there is none.
func (r *recoveries) changeBegun(change func(*status.Recovery)) {
	r.mu.Lock()
	begun := r.state.Begun != nil
	r.mu.Unlock()
	if begun {
		r.change(func(state *recoveriesState) { change(state.Begun) })
	}
}

// end notes that etcd serves: what was begun is done. What was begun and not decided, a person has done otherwise.
func (r *recoveries) end() {
	r.mu.Lock()
	begun := r.state.Begun != nil
	r.mu.Unlock()
	if !begun {
		return
	}
	r.change(func(state *recoveriesState) {
		ended := *state.Begun
		if state.Begun = nil; ended.Restored == nil {
			return
		}
		ended.Finished = r.now().UTC()
		state.Ended = append(state.Ended, ended)
		state.Ended = state.Ended[max(0, len(state.Ended)-status.MostRecoveries):]
		r.log.Warn("THE DATA WAS RECOVERED", zap.String("what", ended.Describe()))
	})
}

// told returns what can be told, without what was set aside and is gone.
func (r *recoveries) told() (begun *status.Recovery, ended []status.Recovery) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.state.Begun != nil {
		begun = new(*r.state.Begun)
	}
	ended = slices.Clone(r.state.Ended)
	for i := range ended {
		if _, err := os.Stat(ended[i].Aside); err != nil {
			ended[i].Aside = ""
		}
	}
	return begun, ended
}

// differs notes that data which serves is not what it should be, in addition to what was found before.
func (r *recoveries) differs(found status.Difference) {
	r.change(func(state *recoveriesState) {
		found.Since, found.Message = r.now().UTC(), status.Text(found.Message)
		if before := state.Differs; before != nil && before.From == found.From {
			found.Since = before.Since
			isKnown := func(c status.Changed) bool { return slices.Contains(before.Changed, c) }
			found.Changed = slices.Concat(before.Changed, slices.DeleteFunc(found.Changed, isKnown))
		}
		found.Changed = found.Changed[:min(status.MostChanged, len(found.Changed))]
		state.Differs = &found
	})
}

// difference is what differs is told of; nil if it is not known that anything does.
func (r *recoveries) difference() *status.Difference {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.state.Differs == nil {
		return nil
	}
	told := *r.state.Differs
	told.Changed = slices.Clone(told.Changed)
	return &told
}

// settled notes that the data does not differ any more from where it did.
func (r *recoveries) settled(from status.Source) {
	if told := r.difference(); told != nil && told.From == from {
		r.replaced()
	}
}

// replaced notes that nothing is known of the data, as it is other data than before.
func (r *recoveries) replaced() {
	if r.difference() != nil {
		r.change(func(state *recoveriesState) { state.Differs = nil })
	}
}

// left keeps of what has changed what is still there.
func (r *recoveries) left(isThere func(status.Changed) bool) {
	r.change(func(state *recoveriesState) {
		if told := state.Differs; told != nil {
			told.Changed = slices.DeleteFunc(told.Changed, func(c status.Changed) bool { return !isThere(c) })
			if len(told.Changed) == 0 {
				state.Differs = nil
			}
		}
	})
}

// count is how many recoveries of a cause have ended within some time.
func (r *recoveries) count(cause status.Cause, within time.Duration) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	count := 0
	for _, ended := range r.state.Ended {
		if ended.Cause == cause && r.now().Sub(ended.Finished) < within {
			count++
		}
	}
	return count
}

// missing says what is lost, of which the backup does not know: at most what was written after it, until the data was
// written last or, where nobody can know that, was found.
func missing(r *status.Recovery) string {
	switch r.Restored.From {
	case status.Nothing:
		return "all that it had"
	case status.Members:
		return ""
	case status.Database:
		return "at most what was written in the moment before etcd ended, and only the write-ahead log had"
	}
	until := r.Written
	if until.IsZero() || r.Revision > 0 && r.Revision < r.Restored.Revision {
		// What is older than the backup does not tell what came after that.
		until = r.Found
	}
	stamp := func(t time.Time) string { return t.UTC().Format(time.RFC3339) }
	text := fmt.Sprintf("at most what was written after revision %d, from %s to %s", r.Restored.Revision,
		stamp(r.Restored.Taken), stamp(until))
	switch {
	case r.KnownRevision > r.Restored.Revision:
		return fmt.Sprintf("revisions %d to %d, and %s", r.Restored.Revision+1, r.KnownRevision, text)
	case until.Before(r.Restored.Taken):
		return fmt.Sprintf("nothing, as far as the data tells: it was written last at %s, before the backup",
			stamp(until))
	}
	return text
}

// lastWritten is when the log of the data was written last; zero if that is not known.
func lastWritten(dataDir string) time.Time {
	var last time.Time
	files, err := filepath.Glob(filepath.Join(walDir(dataDir), "*.wal"))
	if err != nil {
		return last
	}
	for _, path := range files {
		if info, err := os.Stat(path); err == nil && info.ModTime().After(last) {
			last = info.ModTime().UTC()
		}
	}
	return last
}
