package interpreter

import "testing"

// TestAttackNegativeCounts plays a member that counts below zero, so that what others have seems to be less or nothing.
func TestAttackNegativeCounts(t *testing.T) {
	items := []Item{
		{Cluster: "honest", Status: map[string]any{"replicas": int64(3), "readyReplicas": int64(2)}},
		{Cluster: "hostile", Status: map[string]any{"replicas": int64(-2), "readyReplicas": float64(-2)}},
	}
	status := map[string]any{}
	for name, want := range map[string]int64{"replicas": 3, "readyReplicas": 2} {
		setSum(status, name, items)
		if status[name] != want {
			t.Errorf("%s = %v, want %d", name, status[name], want)
		}
	}
}
