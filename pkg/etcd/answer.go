package etcd

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
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
	// Cluster and Member are whose data it is, in hexadecimal; empty where the data does not tell. Removed says that it
	// knows that the member was removed.
	Cluster string `json:"cluster,omitempty"`
	Member  string `json:"member,omitempty"`
	Removed bool   `json:"removed,omitempty"`
	// Awaits is the point in time that the member waits for to be restored, before it joins the others again.
	Awaits string `json:"awaits,omitempty"`
}

// identity is whose data the answer says that it is; zero if it does not say.
func (a *stewardAnswer) identity() identity {
	cluster, clusterErr := strconv.ParseUint(a.Cluster, 16, 64)
	member, memberErr := strconv.ParseUint(a.Member, 16, 64)
	if clusterErr != nil || memberErr != nil {
		return identity{}
	}
	own := identity{cluster: cluster, member: member}
	if a.Removed {
		own.removed = []uint64{member}
	}
	return own
}

// answer is what a member says while it gets ready.
func (j *joiner) answer() stewardAnswer {
	answer := stewardAnswer{Name: j.options.Name, Holds: holdsData, Removed: j.own.isRemoved()}
	if j.held == dataNone {
		return stewardAnswer{Name: j.options.Name, Holds: holdsNothing}
	}
	if j.own.cluster != 0 {
		answer.Cluster = strconv.FormatUint(j.own.cluster, 16)
		answer.Member = strconv.FormatUint(j.own.member, 16)
	}
	if j.awaitsRestored.Load() {
		answer.Awaits = j.options.Restore.String()
	}
	return answer
}

// answerPeers answers in etcd's place until what it returns is called. Only peers are answered.
func (s *Steward) answerPeers(answer func() stewardAnswer) (end func(), err error) {
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
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+answerPath, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(answer())
	})
	// Etcds of other members try to reach this one meanwhile, as is expected.
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second, ErrorLog: zap.NewStdLog(zap.NewNop())}
	ended := make(chan struct{})
	go func() { _ = server.Serve(listener); close(ended) }()
	return func() { _ = server.Close(); <-ended }, nil
}
