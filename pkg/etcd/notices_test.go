package etcd

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/trellis-garden/trellis/pkg/etcd/backup"
	"github.com/trellis-garden/trellis/pkg/etcd/status"
	"github.com/trellis-garden/trellis/pkg/etcd/store"
)

func TestReasonsAreNamed(t *testing.T) {
	for want, err := range map[string]error{
		"permission": store.ErrPermission, "full": store.ErrFull, "damaged": backup.ErrDamaged, "key": backup.ErrKey,
		"room": &noRoomError{}, "behind": errBehind, "unavailable": errors.New("connection refused"),
	} {
		if got := storeReason(fmt.Errorf("doing something: %w", err)); got != want {
			t.Errorf("%v has the reason %q, want %q", err, got, want)
		}
	}
}

func TestFailuresAreToldWhenTheyChangeAndNowAndThen(t *testing.T) {
	core, logs := observer.New(zap.InfoLevel)
	n := newNotices(zap.New(core))
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	n.now = func() time.Time { return now }
	for _, step := range []struct {
		after time.Duration
		err   error
		lines int
	}{
		{0, nil, 0},
		{0, store.ErrFull, 1},
		{time.Minute, store.ErrFull, 0},
		{time.Minute, store.ErrPermission, 1},
		{9 * time.Minute, store.ErrPermission, 0},
		{time.Minute, store.ErrPermission, 1},
		{time.Minute, store.ErrPermission, 0},
		{0, nil, 1},
		{0, nil, 0},
		{0, store.ErrPermission, 1},
	} {
		now = now.Add(step.after)
		before := logs.Len()
		n.report(status.Delta, step.err)
		if lines := logs.Len() - before; lines != step.lines {
			t.Errorf("after %s, %v is told in %d lines, want %d", step.after, step.err, lines, step.lines)
		}
	}
	n.report(status.Full, nil)
	if said := logs.FilterMessageSnippet("can be used again").Len(); said != 1 {
		t.Errorf("an end of failures was told %d times", said)
	}
}
