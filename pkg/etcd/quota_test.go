package etcd

import (
	"errors"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/trellis-garden/trellis/pkg/etcd/status"
)

const testQuota = 32 << 20

// quotaOptions are those of an etcd whose quota tests can fill.
func quotaOptions(t *testing.T) Options {
	t.Helper()
	options := testOptions(t)
	options.QuotaBackendBytes = testQuota
	return options
}

func TestHistoryIsCompactedNearTheQuota(t *testing.T) {
	s, logs := startSteward(t, quotaOptions(t))
	// Twice the quota is written, all but a key of it history.
	for range 2 * testQuota / (128 << 10) {
		if err := putRandom(t, s, "key/same", 128<<10); err != nil {
			t.Fatalf("history fills the quota: %v", err)
		}
		s.etcd.Server.Backend().ForceCommit()
		if err := s.careForSpace(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if logs.FilterMessageSnippet("compacting history").Len() == 0 {
		t.Error("the log does not tell of it")
	}
}

func TestHistoryIsNotCompactedForWhatIsNone(t *testing.T) {
	s, logs := startSteward(t, quotaOptions(t))
	fill := 0
	for s.etcd.Server.Backend().SizeInUse() <= part(testQuota, compactPercent+7) {
		if err := putRandom(t, s, "key/"+strconv.Itoa(fill), 64<<10); err != nil {
			t.Fatal(err)
		}
		s.etcd.Server.Backend().ForceCommit()
		fill++
	}
	for range 6 {
		if err := s.careForSpace(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if said := logs.FilterMessageSnippet("compacting history").Len(); said != 2 {
		t.Errorf("history was compacted %d times, though nothing was written", said)
	}
	response, err := s.client.Get(t.Context(), "key/", clientv3.WithPrefix(), clientv3.WithCountOnly())
	if err != nil || response.Count != int64(fill) {
		t.Errorf("%d of %d keys are left, %v", response.Count, fill, err)
	}
}

func TestBurstOfHistoryEndsByItself(t *testing.T) {
	s, _ := startSteward(t, quotaOptions(t))
	writeUntilFull(t, s, func(int) string { return "key/same" })
	// Space is free only after those who read from it are done, which may be at the next look.
	for range 3 {
		if err := s.careForSpace(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if err := putMebibyte(t, s, "key/same"); err != nil {
		t.Errorf("writes are not served again: %v", err)
	}
}

func TestFullQuotaEndsAfterDeletions(t *testing.T) {
	s, logs := startSteward(t, quotaOptions(t))
	written := 0
	for range 3 {
		// What was free between keys is given back, and filled as well.
		written += writeUntilFull(t, s, func(i int) string { return "key/" + strconv.Itoa(written+i) })
		if err := s.careForSpace(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if said := logs.FilterMessageSnippet("THE QUOTA IS EXHAUSTED").Len(); said != 1 {
		t.Errorf("it was said %d times", said)
	}
	if told := s.status(); !strings.Contains(told.ReadOnly, "the quota is exhausted: the database has") ||
		levelOf(told, status.Quota) != status.NearlyFull {
		t.Errorf("told is %q, and %+v", told.ReadOnly, told.Space)
	}
	for i := range written / 2 {
		if _, err := s.client.Delete(t.Context(), "key/"+strconv.Itoa(i)); err != nil {
			t.Fatal(err)
		}
	}
	for range 3 {
		if err := s.careForSpace(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if err := putMebibyte(t, s, "later"); err != nil {
		t.Errorf("writes are not served again: %v", err)
	}
	if told := s.status().ReadOnly; told != "" {
		t.Errorf("told is %q", told)
	}
}

// levelOf is how full something is told to be; -1 if that is not told.
func levelOf(told status.Status, of string) int {
	for _, space := range told.Space {
		if space.Of == of {
			return space.Level
		}
	}
	return -1
}

func TestWritesStopBeforeTheVolumeIsFull(t *testing.T) {
	s, logs := startSteward(t, testOptions(t))
	v := volume{size: 1 << 30, free: 200 << 20}
	s.measure = func(string) (volume, error) { return v, nil }
	for _, test := range []struct {
		name   string
		free   int64
		served bool
	}{
		{"room", 200 << 20, true}, {"the reserve", 128 << 20, true}, {"less", 127 << 20, false},
		{"the reserve again", 128 << 20, false}, {"room again", 200 << 20, true},
	} {
		v.free = test.free
		if err := s.careForSpace(t.Context()); err != nil {
			t.Fatal(err)
		}
		_, err := s.client.Put(t.Context(), "key", test.name)
		if (err == nil) != test.served || (err != nil && !errors.Is(err, rpctypes.ErrNoSpace)) {
			t.Errorf("%s: writing says %v", test.name, err)
		}
		if told := s.status(); (told.ReadOnly == "") != test.served || levelOf(told, status.Volume) < 0 {
			t.Errorf("%s: told is %q, and %+v", test.name, told.ReadOnly, told.Space)
		}
	}
	if said := logs.FilterMessageSnippet("THE VOLUME IS FULL").Len(); said == 0 {
		t.Error("the log does not tell of it")
	}
}

func writeUntilFull(t *testing.T, s *Steward, key func(int) string) int {
	t.Helper()
	written := 0
	for range 10 * testQuota >> 20 {
		err := putMebibyte(t, s, key(written))
		switch {
		case err == nil:
			written++
		case !errors.Is(err, rpctypes.ErrNoSpace):
			t.Fatal(err)
		case s.spaceAlarm() != nil:
			return written
		}
		// etcd gives up to raise the alarm when that takes long, and tries again with the next write.
	}
	t.Fatal("the quota is never full")
	return 0
}

func putMebibyte(t *testing.T, s *Steward, key string) error {
	t.Helper()
	return putRandom(t, s, key, 1<<20)
}

func putRandom(t *testing.T, s *Steward, key string, size int) error {
	t.Helper()
	value := make([]byte, size)
	for i := range value {
		value[i] = byte(rand.Uint32())
	}
	_, err := s.client.Put(t.Context(), key, string(value))
	return err
}
