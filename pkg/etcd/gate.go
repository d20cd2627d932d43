package etcd

import (
	"context"
	"sync/atomic"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	grpcstatus "google.golang.org/grpc/status"
)

// gate keeps clients from the data of an etcd that runs. Its members need to be asked nevertheless: for their hashes,
// and who they are.
type gate struct{ closed atomic.Bool }

// ungated are the requests that tell nothing of the data, and change nothing.
var ungated = map[string]bool{
	"/etcdserverpb.Cluster/MemberList": true,
	"/etcdserverpb.Maintenance/HashKV": true,
	"/etcdserverpb.Maintenance/Status": true,
}

func (g *gate) close() { g.closed.Store(true) }
func (g *gate) open()  { g.closed.Store(false) }

// check returns why a request is not served. Clients try it with another member.
func (g *gate) check(method string) error {
	if !g.closed.Load() || ungated[method] {
		return nil
	}
	return grpcstatus.Error(codes.Unavailable,
		"etcd-steward: the data of this member is yet to be compared with that of the others")
}

// options are those of the server of clients. etcd's own interceptors come before them.
func (g *gate) options() []grpc.ServerOption {
	return []grpc.ServerOption{
		grpc.ChainUnaryInterceptor(func(ctx context.Context, request any, info *grpc.UnaryServerInfo,
			handle grpc.UnaryHandler) (any, error) {
			if err := g.check(info.FullMethod); err != nil {
				return nil, err
			}
			return handle(ctx, request)
		}),
		grpc.ChainStreamInterceptor(func(server any, stream grpc.ServerStream, info *grpc.StreamServerInfo,
			handle grpc.StreamHandler) error {
			if err := g.check(info.FullMethod); err != nil {
				return err
			}
			return handle(server, stream)
		}),
	}
}
