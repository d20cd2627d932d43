package etcd

import (
	"os"
	"slices"
	"testing"

	"go.uber.org/zap"
)

func TestBallastIsThereForAStartOnAFullVolume(t *testing.T) {
	dir := t.TempDir()
	s := New(Options{DataDir: dir}, zap.NewNop())
	ample := volume{size: 16 << 20, free: 12 << 20}
	for _, v := range []volume{{size: ample.size, free: ample.size / 8}, ample, ample} {
		if err := s.keepBallast(v); err != nil {
			t.Fatal(err)
		}
		if there := slices.Contains(names(t, dir), ballastFile); there != (v == ample) {
			t.Errorf("with %d of %d bytes free, ballast is %t", v.free, v.size, there)
		}
	}
	info, err := os.Stat(s.ballastPath())
	if err != nil || info.Size() != ample.ballast() {
		t.Errorf("the ballast has %d bytes, %v", info.Size(), err)
	}
	if len(names(t, dir)) != 1 {
		t.Errorf("there is %v", names(t, dir))
	}
	for _, free := range []int64{ample.ballast(), 0, 0} {
		s.measure = func(string) (volume, error) { return volume{size: ample.size, free: free}, nil }
		if err := s.dropBallast(); err != nil {
			t.Fatal(err)
		}
		if there := slices.Contains(names(t, dir), ballastFile); there != (free > 0) {
			t.Errorf("with %d bytes free, ballast is %t", free, there)
		}
	}
}
