package live

import "testing"

// When backups were restored on trial last is told as the time that gardenlet writes, and nothing else.
func TestDrills(t *testing.T) {
	for message, wanted := range map[string]string{
		"Saved. They were verified and restored on trial at 2026-01-01T11:00:00Z, in 2.5s.": "2026-01-01T11:00:00Z",
		"All changes are saved.":                "",
		"restored on trial at <b>now</b>, in 1": "",
		"restored on trial at ":                 "",
	} {
		c := conditions{{Type: "EtcdBackupReady", Status: "True", Message: message}}
		if got := c.drill(); got != wanted {
			t.Errorf("%q: %q", message, got)
		}
	}
}
