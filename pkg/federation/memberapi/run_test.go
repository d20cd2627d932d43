package memberapi

import (
	"errors"
	"net"
	"net/http"
	"testing"
)

// A request that goes on is cut off when the server ends, which is no error.
func TestRequestsAreCutOffAtTheEnd(t *testing.T) {
	begun, ended := make(chan struct{}), make(chan struct{})
	a := serveAt(localListener(t), &http.Server{
		Handler: http.HandlerFunc(func(_ http.ResponseWriter, request *http.Request) {
			close(begun)
			<-request.Context().Done()
			close(ended)
		}),
	})
	answered := make(chan error, 1)
	go func() {
		response, err := http.Get("http://" + a.address)
		if err == nil {
			response.Body.Close()
		}
		answered <- err
	}()
	<-begun
	if err := a.end(t.Context()); err != nil {
		t.Errorf("it ends with %v", err)
	}
	<-ended
	if err := <-answered; err == nil {
		t.Error("the request was answered")
	}
}

// heldListener cannot be closed without an error.
type heldListener struct{ net.Listener }

var errHeld = errors.New("held")

func (l heldListener) Close() error { return errors.Join(l.Listener.Close(), errHeld) }

func TestWhatKeepsAServerFromEndingIsTold(t *testing.T) {
	a := serveAt(heldListener{localListener(t)}, &http.Server{Handler: http.NotFoundHandler()})
	response, err := http.Get("http://" + a.address) // it serves, so that it has something to end
	if err != nil {
		t.Fatal(err)
	}
	response.Body.Close()
	if err := a.end(t.Context()); !errors.Is(err, errHeld) {
		t.Errorf("it ends with %v", err)
	}
}

func localListener(t *testing.T) net.Listener {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return listener
}
