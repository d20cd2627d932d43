package clusters

import (
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/trellis-garden/trellis/pkg/dashboard/limits"
	"github.com/trellis-garden/trellis/pkg/dashboard/reply"
)

// answering answers everything with a body.
type answering func(r *http.Request) io.Reader

func (a answering) RoundTrip(r *http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(a(r))}, nil
}

func ask(t *testing.T, answer answering, memory *limits.Bytes) error {
	c := &Cluster{Base: &url.URL{Scheme: "https", Host: "x"}, Transport: answer, Memory: memory}
	var into map[string]string
	return c.Do(t.Context(), http.MethodGet, "/x", nil, nil, &into)
}

// silent sends nothing until nobody waits any more.
type silent struct{ done <-chan struct{} }

func (s silent) Read([]byte) (int, error) {
	<-s.done
	return 0, errors.New("nobody waits")
}

// Answers of shoots, which anybody may have made, fill no memory and take no time without end.
func TestAttackAnswersWithoutEnd(t *testing.T) {
	for what, test := range map[string]struct {
		size   int
		total  int64
		wanted string
	}{
		"small":                         {smallAnswer / 2, 0, ""},
		"large":                         {1 << 20, 64 << 20, ""},
		"too large":                     {maxAnswer, 1 << 30, "larger than"},
		"more than there is memory for": {1 << 20, 4 << 20, "no memory"},
	} {
		memory := limits.NewBytes(test.total)
		err := ask(t, func(*http.Request) io.Reader {
			return strings.NewReader(`{"x":"` + strings.Repeat("x", test.size) + `"}`)
		}, memory)
		if (err == nil) != (test.wanted == "") || err != nil && !strings.Contains(err.Error(), test.wanted) {
			t.Errorf("%s: %v", what, err)
		}
		if err := memory.Nothing("").Grow(test.total / 2); err != nil {
			t.Errorf("%s: it is not given back: %v", what, err)
		}
	}
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		err := ask(t, func(r *http.Request) io.Reader { return silent{r.Context().Done()} }, nil)
		if took := time.Since(begun); err == nil || took != patience {
			t.Errorf("%v after %s", err, took)
		}
	})
}

// Only the garden ends sessions.
func TestErrorsOfClustersThatRefuse(t *testing.T) {
	refusal := reply.Error(http.StatusUnauthorized, "Unauthorized", "no")
	for name, code := range map[string]int32{Garden: 401, "shoot/garden-a/one": 503} {
		if got := reply.StatusOf((&Cluster{Name: name}).Told(refusal)).Code; got != code {
			t.Errorf("%s: %d", name, got)
		}
	}
	other := errors.New("other")
	if got := (&Cluster{Name: "shoot/garden-a/one"}).Told(other); got != other {
		t.Errorf("got %v", got)
	}
}
