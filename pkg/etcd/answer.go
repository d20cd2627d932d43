package etcd

import (
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"go.etcd.io/etcd/client/pkg/v3/transport"
	"go.uber.org/zap"
)

// answerPath is where a steward tells peers what it holds, on the peer URL, as long as its etcd does not run.
const answerPath = "/etcd-steward/data"

// stewardAnswer is what it tells. "Nothing" is a promise: by itself, the member never makes data, but for the first
// one, which nobody waits for.
type stewardAnswer struct {
	Name  string  `json:"name"`
	Holds holding `json:"holds"`
}

// answerPeers answers in etcd's place until what it returns is called. Only peers are answered.
func (s *Steward) answerPeers(held dataState) (end func(), err error) {
	scheme, host, err := hostOf(s.options.ListenPeerURL)
	if err != nil {
		return nil, err
	}
	info := s.options.peerTLS()
	info.Logger = zap.NewNop()
	listener, err := transport.NewListener(host, scheme, &info)
	if err != nil {
		return nil, fmt.Errorf("--listen-peer-urls %s: %w", s.options.ListenPeerURL, err)
	}
	answer := stewardAnswer{Name: s.options.Name, Holds: holdsData}
	if held == dataNone {
		answer.Holds = holdsNothing
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+answerPath, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(answer)
	})
	// Etcds of other members try to reach this one meanwhile, as is expected.
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second, ErrorLog: zap.NewStdLog(zap.NewNop())}
	ended := make(chan struct{})
	go func() { _ = server.Serve(listener); close(ended) }()
	return func() { _ = server.Close(); <-ended }, nil
}
