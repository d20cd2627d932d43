package etcd

import (
	"context"
	"errors"
	"net"
	"strings"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/version"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/etcdserver/api/membership"
	"google.golang.org/grpc"
)

// liar is a member that answers whatever it is told to.
type liar struct {
	etcdserverpb.UnimplementedMaintenanceServer
	status *etcdserverpb.StatusResponse
	hash   *etcdserverpb.HashKVResponse
}

// Status implements etcdserverpb.MaintenanceServer.
func (l *liar) Status(context.Context, *etcdserverpb.StatusRequest) (*etcdserverpb.StatusResponse, error) {
	return l.status, nil
}

// HashKV implements etcdserverpb.MaintenanceServer.
func (l *liar) HashKV(context.Context, *etcdserverpb.HashKVRequest) (*etcdserverpb.HashKVResponse, error) {
	return l.hash, nil
}

// listen serves until the test ends, and returns the URL.
func (l *liar) listen(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer()
	etcdserverpb.RegisterMaintenanceServer(server, l)
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(server.Stop)
	return "http://" + listener.Addr().String()
}

// TestAttackAnswersOfAMember plays who has taken over a member, and answers in the place of another one, for another
// version, with nothing at all, or with a hash of something else: none of that is a hash that counts.
func TestAttackAnswersOfAMember(t *testing.T) {
	const id = 7
	self := &etcdserverpb.ResponseHeader{MemberId: id}
	own := &clientv3.HashKVResponse{Hash: 1, HashRevision: 9, CompactRevision: 5}
	other := func(revision, compacted int64) *etcdserverpb.HashKVResponse {
		return &etcdserverpb.HashKVResponse{Header: self, Hash: 2, HashRevision: revision, CompactRevision: compacted}
	}
	of := func(release string) *etcdserverpb.StatusResponse {
		return &etcdserverpb.StatusResponse{Header: self, Version: release, Leader: id}
	}
	for _, test := range []struct {
		name   string
		status *etcdserverpb.StatusResponse
		hash   *etcdserverpb.HashKVResponse
		want   string
	}{
		{"nothing", &etcdserverpb.StatusResponse{}, &etcdserverpb.HashKVResponse{}, "answered by member 0"},
		{
			"for another", &etcdserverpb.StatusResponse{
				Header: &etcdserverpb.ResponseHeader{MemberId: 8}, Version: version.Version,
			}, other(9, 5), "answered by member 8",
		},
		{"of another version", of("3.5.0"), other(9, 5), "of version 3.5.0"},
		{"no hash", of(version.Version), &etcdserverpb.HashKVResponse{}, errIncomparable.Error()},
		{"of a revision before", of(version.Version), other(8, 5), errIncomparable.Error()},
		{"after another compaction", of(version.Version), other(9, 6), errIncomparable.Error()},
		{"what may be true", of(version.Version), other(9, 5), ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			url := (&liar{status: test.status, hash: test.hash}).listen(t)
			asks := peers{&Options{}, 10 * time.Second}
			found := asks.look(t.Context(), &membership.Member{
				ID: id, Attributes: membership.Attributes{Name: "liar", ClientURLs: []string{url}},
			})
			got := asks.hash(t.Context(), found, own)
			if test.want == "" && (got.err != nil || got.hash != 2 || !found.leads) {
				t.Errorf("got %+v", got)
			}
			if test.want != "" && (got.err == nil || !strings.Contains(got.err.Error(), test.want)) {
				t.Errorf("got %+v, want %q", got, test.want)
			}
			if isOther := strings.Contains(test.name, "version"); errors.Is(got.err, errOtherVersion) != isOther {
				t.Errorf("it is taken for one of another version, or not: %v", got.err)
			}
		})
	}
}
