package api

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// cloud answers with a status and a body, and notes what it was asked.
func cloud(t *testing.T, code int, body string) (*Client, *[]string) {
	t.Helper()
	var asked []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.Method+" "+r.URL.EscapedPath()+" "+r.Header.Get("Authorization"))
		w.WriteHeader(code)
		fmt.Fprint(w, body)
	}))
	t.Cleanup(server.Close)
	return &Client{Endpoint: server.URL + "/", Token: "t"}, &asked
}

// What is not there is deleted; and a name of a user is one segment of the path, whatever is in it.
func TestDeletions(t *testing.T) {
	for name, test := range map[string]struct {
		call func(*Client) error
		want string
	}{
		"network": {
			func(c *Client) error { return c.DeleteNetwork(t.Context(), "../buckets/b") },
			"DELETE /v1/networks/..%2Fbuckets%2Fb Bearer t",
		},
		"record": {
			func(c *Client) error { return c.DeleteRecord(t.Context(), "API.Example.") },
			"DELETE /v1/records/api.example Bearer t",
		},
		"bucket": {
			func(c *Client) error { return c.DeleteBucket(t.Context(), "b?x=1") },
			"DELETE /v1/buckets/b%3Fx=1 Bearer t",
		},
		"directory": {
			func(c *Client) error { return c.DeleteDirectory(t.Context(), "b", "a/b") },
			"DELETE /v1/buckets/b/directories/a%2Fb Bearer t",
		},
	} {
		for _, code := range []int{http.StatusNotFound, http.StatusNoContent} {
			c, asked := cloud(t, code, "")
			if err := test.call(c); err != nil || len(*asked) != 1 || (*asked)[0] != test.want {
				t.Errorf("%s, %d: asked %q, %v", name, code, *asked, err)
			}
		}
		c, _ := cloud(t, http.StatusConflict, `{"message":"in use"}`)
		if err := test.call(c); !IsInvalid(err) || !strings.Contains(err.Error(), "local cloud: in use (409)") {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

func TestAnswersThatAreNoSuccess(t *testing.T) {
	for code, is := range map[int]func(error) bool{
		http.StatusNotFound: IsNotFound, http.StatusUnauthorized: IsUnauthorized, http.StatusBadRequest: IsInvalid,
		http.StatusConflict: IsInvalid,
	} {
		c, _ := cloud(t, code, "plain words\n")
		_, err := c.GetNetwork(t.Context(), "n")
		if !is(err) || !MessageHasCode(fmt.Sprintf("terraform: %v", err), code) ||
			!strings.Contains(err.Error(), "plain words") {
			t.Errorf("%d: got %v", code, err)
		}
		if IsNotFound(err) != (code == http.StatusNotFound) ||
			IsUnauthorized(err) != (code == http.StatusUnauthorized) {
			t.Errorf("%d: %v is taken for another answer", code, err)
		}
	}
	c, _ := cloud(t, http.StatusOK, "no JSON")
	if _, err := c.GetNetwork(t.Context(), "n"); err == nil ||
		!strings.Contains(err.Error(), "decoding the answer to GET /v1/networks/n") {
		t.Errorf("got %v", err)
	}
	away := &Client{Endpoint: "http://127.0.0.1:1"}
	if _, err := away.GetNetwork(t.Context(), "n"); err == nil || !strings.HasPrefix(err.Error(), "local cloud: ") ||
		IsInvalid(err) {
		t.Errorf("got %v", err)
	}
	if MessageHasCode("another program: (401)", 401) || IsNotFound(errors.New("not found")) || IsInvalid(nil) {
		t.Error("an error of somebody else is taken for an answer of the cloud")
	}
}

func FuzzRecordValidate(f *testing.F) {
	f.Add("api.one.local.example", "A", "172.18.0.2")
	f.Add("*.local.example", "CNAME", "gateway.local.example")
	f.Fuzz(func(t *testing.T, name, kind, value string) {
		record := Record{FQDN: CanonicalName(name), Type: kind, Values: []string{value}}
		if record.Validate() == nil && strings.ContainsAny(record.FQDN, "/ \n\x00") {
			t.Errorf("%q is served as a name", record.FQDN)
		}
	})
}
