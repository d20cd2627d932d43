//go:build e2e

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"
)

// terminalWait is how long a terminal may take, with its image being pulled by the node.
const terminalWait = 10 * time.Minute

// shellOf is a person's terminal.
type shellOf struct {
	t *testing.T
	*websocket.Conn
}

// terminal opens one in a shoot of the demo project, as the page does.
func (l *landscape) terminal(t *testing.T, person *http.Client, shoot string) *shellOf {
	t.Helper()
	transport := person.Transport.(*http.Transport)
	config := transport.TLSClientConfig.Clone()
	config.NextProtos = []string{"http/1.1"}
	dialer := websocket.Dialer{
		NetDialContext: transport.DialContext, TLSClientConfig: config, Jar: person.Jar,
		Subprotocols: []string{"trellis.terminal.v1"},
	}
	query := url.Values{"namespace": {"garden-demo"}, "shoot": {shoot}}
	connection, _, err := dialer.DialContext(t.Context(),
		strings.Replace(dashboardURL, "https://", "wss://", 1)+"/api/terminal?"+query.Encode(),
		http.Header{"Origin": {dashboardURL}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = connection.Close() })
	return &shellOf{t, connection}
}

// until reads what comes until it is enough, or the terminal ends.
func (s *shellOf) until(what string, enough func(channel byte, text string) bool) {
	s.t.Helper()
	_ = s.SetReadDeadline(time.Now().Add(terminalWait))
	for output := ""; ; {
		_, message, err := s.ReadMessage()
		if err != nil {
			s.t.Fatalf("%s: %v after %q", what, err, output)
		}
		if message[0] == 1 {
			output += string(message[1:])
			message = append(message[:1], output...)
		}
		if enough(message[0], string(message[1:])) {
			return
		}
		if message[0] == 3 {
			s.t.Fatalf("%s: the terminal has ended: %s after %q", what, message[1:], output)
		}
	}
}

func (s *shellOf) enter(command string) {
	s.t.Helper()
	if err := s.WriteMessage(websocket.BinaryMessage, []byte("\x00"+command+"\r")); err != nil {
		s.t.Fatal(err)
	}
}

// TestTerminals: an administrator of a project has a shell in a shoot, where kubectl works with their rights, and of
// which nothing stays but what is recorded; a viewer has none.
func TestTerminals(t *testing.T) {
	l := open(t)
	s := l.terminal(t, l.logIn(t, "project-admin"), "member1")
	if err := s.WriteMessage(websocket.BinaryMessage, []byte("\x04"+`{"Width":200,"Height":50}`)); err != nil {
		t.Fatal(err)
	}
	s.until("a shell", func(channel byte, _ string) bool { return channel == 6 })
	s.enter("kubectl get nodes")
	ready := regexp.MustCompile(`(?m)\sReady\s`)
	s.until("nodes", func(_ byte, text string) bool { return ready.MatchString(text) })
	s.enter("echo rights: $(kubectl auth can-i '*' '*' --all-namespaces)")
	s.until("rights", func(_ byte, text string) bool { return strings.Contains(text, "rights: yes") })
	s.enter("id; echo name: $TERMINAL:")
	name := regexp.MustCompile(`name: (terminal-[a-z0-9]+):`)
	terminal := ""
	s.until("a name", func(_ byte, text string) bool {
		found := name.FindStringSubmatch(text)
		if found != nil {
			terminal = found[1]
		}
		return found != nil && strings.Contains(text, "uid=65532")
	})
	shoot := l.shoot(t, "member1")
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	eventually(t, 2*time.Minute, func(ctx context.Context) error {
		left, err := shoot.try(ctx, "", "get", "namespace,clusterrolebinding", terminal, "--ignore-not-found", "-o", "name")
		if left = strings.TrimSpace(left); err == nil && left != "" {
			return fmt.Errorf("after the tab there is %s", left)
		}
		return err
	})
	recorded, err := shoot.try(t.Context(), "", "-n", "default", "get", "events", "--field-selector",
		"involvedObject.name="+terminal, "-o", `jsonpath={range .items[*]}{.reason} {.message}{"\n"}{end}`)
	if err != nil || !strings.Contains(recorded, "TerminalOpened login:project-admin has opened a terminal") ||
		!strings.Contains(recorded, "has ended: the page was closed") {
		t.Errorf("recorded is %q, %v", recorded, err)
	}

	var end struct{ Reason string }
	l.terminal(t, l.logIn(t, "viewer"), "member1").until("a refusal", func(channel byte, text string) bool {
		return channel == 3 && json.Unmarshal([]byte(text), &end) == nil
	})
	if end.Reason != "Forbidden" {
		t.Errorf("a viewer's terminal ended as %+v", end)
	}
}
