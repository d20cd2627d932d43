package acting

import (
	"net/http"
	"slices"
	"strings"
	"testing"
)

// What a fleet tells an agent of a user is what the agent reads, and nothing else of the request.
func TestWhatAnAgentIsTold(t *testing.T) {
	header := http.Header{
		"Impersonate-User": {"admin"}, "Impersonate-Extra-A": {"1"}, "Authorization": {"Bearer t"}, "Accept": {"a"},
	}
	User{Name: "alice", Groups: []string{"developers", "system:authenticated"}}.Tell(header)
	got, err := Told(header)
	if err != nil || got.Name != "alice" || !slices.Equal(got.Groups, []string{"developers", "system:authenticated"}) {
		t.Errorf("got %v, %v", got, err)
	}
	if len(header) != 3 || header.Get("Accept") != "a" {
		t.Errorf("the agent gets %v", header)
	}
	for name, header := range map[string]http.Header{
		"nobody": {}, "no name": {ImpersonateUser: {""}}, "two": {ImpersonateUser: {"alice", "admin"}},
	} {
		if got, err := Told(header); err == nil {
			t.Errorf("%s: got %v", name, got)
		}
	}
}

// Whatever a fleet in other hands sends, the member is asked with the impersonator's token, by one user with a name
// that means nothing there by itself, and without a header of another way to tell who asks.
func FuzzRequestsOfTheFederation(f *testing.F) {
	f.Add("alice", "developers", "X-Remote-User", "admin", true)
	f.Add("system:admin", "system:masters", "Authorization", "Bearer t", true)
	f.Add("trellis-fleet-1:x", "System:Masters", "Impersonate-Uid", "1", false)
	f.Fuzz(func(t *testing.T, user, group, key, value string, same bool) {
		header := http.Header{}
		header.Set(key, value)
		header[ImpersonateUser], header[ImpersonateGroup] = []string{user}, []string{group}
		who, err := Told(header)
		if err != nil {
			return
		}
		who.In(header, "token", Names{Prefix: "trellis-fleet-1:", Same: same})
		names := append(header.Values(ImpersonateUser), header.Values(ImpersonateGroup)...)
		for _, name := range names {
			if strings.HasPrefix(strings.ToLower(name), "system:") || !same && !strings.HasPrefix(name, "trellis-fleet-1:") {
				t.Errorf("the member is asked by %q", name)
			}
		}
		for key := range header {
			if !slices.Contains(passed, key) &&
				!slices.Contains([]string{ImpersonateUser, ImpersonateGroup, "Authorization"}, key) {
				t.Errorf("the member gets %s", key)
			}
		}
		if !slices.Equal(header.Values("Authorization"), []string{"Bearer token"}) ||
			len(header.Values(ImpersonateUser)) != 1 {
			t.Errorf("the member gets %v", header)
		}
	})
}
