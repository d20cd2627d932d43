package hostile

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// Loot is what somebody is after who may write the kubeconfig that another process uses.
type Loot struct {
	// Kubeconfigs, by what they try, lead to a server of the attacker.
	Kubeconfigs map[string][]byte

	// ran is the file that the command leaves behind.
	ran   string
	shown atomic.Bool
}

// NewLoot starts a server that looks for the token of the process that is attacked.
func NewLoot(t testing.TB) *Loot {
	t.Helper()
	const token = "of-the-process"
	folder := t.TempDir()
	loot := &Loot{Kubeconfigs: map[string][]byte{}, ran: filepath.Join(folder, "ran")}
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.Contains(r.Header.Get("Authorization"), token) {
			loot.shown.Store(true)
		}
		http.NotFound(w, r)
	}))
	t.Cleanup(server.Close)
	file := filepath.Join(folder, "token")
	if err := os.WriteFile(file, []byte(token), 0o600); err != nil {
		t.Fatal(err)
	}
	for what, user := range map[string]*clientcmdapi.AuthInfo{
		"a file of the process": {TokenFile: file},
		"a command": {Exec: &clientcmdapi.ExecConfig{
			APIVersion: "client.authentication.k8s.io/v1", Command: "/bin/sh",
			Args: []string{"-c", "touch " + loot.ran}, InteractiveMode: clientcmdapi.NeverExecInteractiveMode,
		}},
	} {
		loot.Kubeconfigs[what] = kubeconfigOf(t, server, user)
	}
	return loot
}

// Taken fails the test if the server was shown the token, or the command has run.
func (l *Loot) Taken(t testing.TB) {
	t.Helper()
	if l.shown.Load() {
		t.Error("the server was shown the token of the process")
	}
	if _, err := os.Stat(l.ran); err == nil {
		t.Error("the command has run")
	}
}
