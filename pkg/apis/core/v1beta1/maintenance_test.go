package v1beta1

import (
	"testing"
	"time"
)

func TestMaintenanceTimeWindow(t *testing.T) {
	overMidnight := MaintenanceTimeWindow{Begin: "233000+0100", End: "013000+0100"} // 22:30 to 00:30 UTC
	begin, duration, err := overMidnight.Parse()
	if err != nil || begin != 22*time.Hour+30*time.Minute || duration != 2*time.Hour {
		t.Errorf("begins at %s, takes %s, %v", begin, duration, err)
	}
	for clock, want := range map[string]bool{
		"22:29": false, "22:30": true, "23:59": true, "00:00": true, "00:29": true, "00:30": false, "12:00": false,
	} {
		at, err := time.Parse("2006-01-02 15:04", "2026-11-01 "+clock)
		if err != nil {
			t.Fatal(err)
		}
		if got := overMidnight.Contains(at); got != want {
			t.Errorf("%s: got %t", clock, got)
		}
	}
	if (MaintenanceTimeWindow{Begin: "late"}).Contains(time.Unix(0, 0)) {
		t.Error("a window without times contains a time")
	}
}
