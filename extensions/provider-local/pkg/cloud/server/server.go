// Package server is the local cloud: the infrastructure of the local landscape as a small HTTP API on the node.
// Networks become bridges with a firewall, DNS records are answered by an authoritative server, buckets are folders,
// bastions are SSH servers.
// Everything asked for is kept in files, and made true again at start.
package server

import (
	"context"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"path/filepath"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"golang.org/x/sync/errgroup"

	"github.com/trellis-garden/trellis/extensions/provider-local/pkg/cloud/api"
)

// errInvalid marks requests that can never succeed.
var errInvalid = errors.New("invalid request")

// Options configure a local cloud.
type Options struct {
	// Listen is the address of the HTTP API.
	Listen string
	// DNS is the address of the DNS server, UDP and TCP.
	DNS string
	// Forward is the resolver for names outside the zone; empty means that such names do not exist.
	Forward string
	// Zone is the DNS zone.
	Zone string
	// Records are the operator's, of names that clients cannot change.
	Records []api.Record
	// StateDir keeps networks, records and volumes.
	StateDir string
	// Token is what clients must present.
	Token string
	// Pool is where subnets are allocated from.
	Pool netip.Prefix
	// Reserved are networks of the node that no subnet may overlap.
	Reserved []netip.Prefix
	// Objects is the object store; nil: buckets are folders.
	Objects ObjectStore
	// Node is the address of the node that machines may use, and appear as outside.
	Node netip.Addr
	// Bastions are the public addresses that bastions get; without any there are none.
	Bastions netip.Prefix
	// Host is the node.
	Host Host
	Log  logr.Logger
}

// Server is a local cloud.
type Server struct {
	options  Options
	networks *networks
	records  *records
	buckets  bucketStore
	bastions *bastions
}

// bucketStore keeps buckets, and directories in them; an empty directory means the bucket itself.
type bucketStore interface {
	put(ctx context.Context, bucket, directory string) (api.Bucket, error)
	remove(ctx context.Context, bucket, directory string) error
}

// New returns a cloud that does nothing before Run.
func New(options Options) *Server {
	var kept bucketStore = buckets{dir: filepath.Join(options.StateDir, "buckets")}
	if options.Objects != nil {
		kept = objects{options.Objects}
	}
	networks := newNetworks(options.StateDir, options.Pool, options.Reserved, options.Node, options.Host)
	return &Server{
		options:  options,
		networks: networks,
		records:  newRecords(options.StateDir, options.Zone, options.Records),
		buckets:  kept,
		bastions: newBastions(options.StateDir, options.Bastions, options.Host, networks, options.Log),
	}
}

// Run brings the node in line with the stored state, then serves until the context ends.
func (s *Server) Run(ctx context.Context) error {
	if err := s.records.restore(); err != nil {
		return err
	}
	if err := s.networks.restore(ctx); err != nil {
		return err
	}
	if err := s.bastions.restore(); err != nil {
		return err
	}
	defer s.bastions.close()
	s.options.Log.Info("serving", "api", s.options.Listen, "dns", s.options.DNS, "zone", s.options.Zone)
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error {
		return serveDNS(ctx, s.options.DNS, &resolver{records: s.records, forward: s.options.Forward})
	})
	group.Go(func() error { return serveHTTP(ctx, s.options.Listen, s.Handler()) })
	return group.Wait()
}

func serveHTTP(ctx context.Context, address string, handler http.Handler) error {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return err
	}
	server := &http.Server{Handler: handler, ReadHeaderTimeout: 10 * time.Second}
	stop := context.AfterFunc(ctx, func() {
		shutdown, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
		defer cancel()
		_ = server.Shutdown(shutdown)
	})
	defer stop()
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// Handler is the HTTP API.
func (s *Server) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("PUT /v1/networks/{name}", s.putNetwork)
	mux.HandleFunc("GET /v1/networks/{name}", s.getNetwork)
	mux.HandleFunc("DELETE /v1/networks/{name}", s.deleteNetwork)
	mux.HandleFunc("PUT /v1/bastions/{name}", s.putBastion)
	mux.HandleFunc("DELETE /v1/bastions/{name}", s.deleteBastion)
	mux.HandleFunc("PUT /v1/records/{fqdn}", s.putRecord)
	mux.HandleFunc("GET /v1/records/{fqdn}", s.getRecord)
	mux.HandleFunc("DELETE /v1/records/{fqdn}", s.deleteRecord)
	mux.HandleFunc("PUT /v1/buckets/{bucket}", s.onBucket(s.buckets.put))
	mux.HandleFunc("DELETE /v1/buckets/{bucket}", s.onBucket(s.removeBucket))
	mux.HandleFunc("PUT /v1/buckets/{bucket}/directories/{directory}", s.onBucket(s.buckets.put))
	mux.HandleFunc("DELETE /v1/buckets/{bucket}/directories/{directory}", s.onBucket(s.removeBucket))
	root := http.NewServeMux()
	root.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) })
	root.Handle("/", s.authenticated(mux))
	return root
}

func (s *Server) authenticated(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		token := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
		if s.options.Token == "" || subtle.ConstantTimeCompare([]byte(token), []byte(s.options.Token)) != 1 {
			answer(w, http.StatusUnauthorized, api.Error{Message: "the bearer token is missing or wrong"})
			return
		}
		next.ServeHTTP(w, r)
	})
}

func (s *Server) putNetwork(w http.ResponseWriter, r *http.Request) {
	var network api.Network
	if !decode(w, r, &network) {
		return
	}
	network.Name = r.PathValue("name")
	result, err := s.networks.put(begun(r), network)
	s.finish(w, r, result, err)
}

// begun is the context of a change: once begun, it is completed, whether or not the client still waits.
func begun(r *http.Request) context.Context { return context.WithoutCancel(r.Context()) }

func (s *Server) getNetwork(w http.ResponseWriter, r *http.Request) {
	network, ok := s.networks.get(r.PathValue("name"))
	if !ok {
		answer(w, http.StatusNotFound, api.Error{Message: fmt.Sprintf("there is no network %q", r.PathValue("name"))})
		return
	}
	answer(w, http.StatusOK, network)
}

// deleteNetwork removes a network, and before that what leads into it. A bastion that was asked for meanwhile goes
// after it; from then on none can be made.
func (s *Server) deleteNetwork(w http.ResponseWriter, r *http.Request) {
	name := r.PathValue("name")
	err := s.bastions.removeOf(name)
	if err == nil {
		err = s.networks.remove(begun(r), name)
	}
	if err == nil {
		err = s.bastions.removeOf(name)
	}
	s.finish(w, r, struct{}{}, err)
}

func (s *Server) putBastion(w http.ResponseWriter, r *http.Request) {
	var bastion api.Bastion
	if !decode(w, r, &bastion) {
		return
	}
	bastion.Name = r.PathValue("name")
	result, err := s.bastions.put(bastion)
	s.finish(w, r, result, err)
}

func (s *Server) deleteBastion(w http.ResponseWriter, r *http.Request) {
	s.finish(w, r, struct{}{}, s.bastions.remove(r.PathValue("name")))
}

func (s *Server) putRecord(w http.ResponseWriter, r *http.Request) {
	var record api.Record
	if !decode(w, r, &record) {
		return
	}
	record.FQDN = r.PathValue("fqdn")
	s.finish(w, r, record, s.records.put(record))
}

func (s *Server) getRecord(w http.ResponseWriter, r *http.Request) {
	record, ok := s.records.get(r.PathValue("fqdn"))
	if !ok {
		answer(w, http.StatusNotFound, api.Error{Message: fmt.Sprintf("there is no record %q", r.PathValue("fqdn"))})
		return
	}
	answer(w, http.StatusOK, record)
}

func (s *Server) deleteRecord(w http.ResponseWriter, r *http.Request) {
	s.finish(w, r, struct{}{}, s.records.remove(r.PathValue("fqdn")))
}

// onBucket answers a request about a bucket, or a directory in one.
func (s *Server) onBucket(
	change func(ctx context.Context, bucket, directory string) (api.Bucket, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		result, err := change(begun(r), r.PathValue("bucket"), r.PathValue("directory"))
		s.finish(w, r, result, err)
	}
}

// removeBucket removes a bucket or directory.
func (s *Server) removeBucket(ctx context.Context, bucket, directory string) (api.Bucket, error) {
	return api.Bucket{}, s.buckets.remove(ctx, bucket, directory)
}

func decode(w http.ResponseWriter, r *http.Request, into any) bool {
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, 1<<20)).Decode(into); err != nil {
		answer(w, http.StatusBadRequest, api.Error{Message: fmt.Sprintf("the body is not the expected JSON: %v", err)})
		return false
	}
	return true
}

// finish answers a changing request and logs it.
func (s *Server) finish(w http.ResponseWriter, r *http.Request, result any, err error) {
	if err == nil {
		s.options.Log.Info("done", "method", r.Method, "path", r.URL.Path)
		answer(w, http.StatusOK, result)
		return
	}
	s.options.Log.Error(err, "refused", "method", r.Method, "path", r.URL.Path)
	code := http.StatusInternalServerError
	switch {
	case errors.Is(err, errInvalid):
		code = http.StatusBadRequest
	case errors.Is(err, errConflict):
		code = http.StatusConflict
	}
	answer(w, code, api.Error{Message: err.Error()})
}

func answer(w http.ResponseWriter, code int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(body)
}
