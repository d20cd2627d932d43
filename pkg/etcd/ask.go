package etcd

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"go.etcd.io/etcd/client/pkg/v3/transport"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/etcdserver/api/membership"
	"go.uber.org/zap"
)

// peers asks the other members. It speaks to their peer URLs as a peer, and to their client URLs as a client, with the
// certificate of the server, as etcd itself does.
type peers struct {
	options *Options
	// timeout of a question.
	timeout time.Duration
}

// peerAnswer is what another member says about itself.
type peerAnswer struct {
	member Member
	holds  holding
	// own is whose data it is, as far as it tells.
	own identity
	// clientURLs are those of a voter whose etcd runs.
	clientURLs []string
	// awaits is the point in time that it waits for to be restored.
	awaits string
	// err says why it is not known what it holds.
	err error
}

// membersPath is where an etcd that runs tells peers which members it knows.
const membersPath = "/members"

// mostAnswered is how much of an answer is read.
const mostAnswered = 1 << 20

// askAll asks all others at once.
func (p *peers) askAll(ctx context.Context) []peerAnswer {
	ctx, cancel := context.WithTimeout(ctx, p.timeout)
	defer cancel()
	others := p.options.others()
	answers := make([]peerAnswer, len(others))
	var asking sync.WaitGroup
	for i, other := range others {
		asking.Go(func() { answers[i] = p.ask(ctx, other) })
	}
	asking.Wait()
	return answers
}

// ask asks one: either its etcd runs, which then has data, or its steward answers in its place.
func (p *peers) ask(ctx context.Context, other Member) peerAnswer {
	answer, err := p.askRunning(ctx, other)
	if err == nil {
		return answer
	}
	answered, err := p.askSteward(ctx, other)
	if err != nil {
		return peerAnswer{member: other, holds: holdsUnknown, err: err}
	}
	return peerAnswer{member: other, holds: answered.Holds, own: answered.identity(), awaits: answered.Awaits}
}

// clusterHeader is where an etcd tells peers, in hexadecimal, which cluster it is of.
const clusterHeader = "X-Etcd-Cluster-ID"

// askRunning asks an etcd that runs, and returns its client URLs if it is a voter. A single member is one, also at the
// peer URL that it had before others were to join it.
func (p *peers) askRunning(ctx context.Context, other Member) (peerAnswer, error) {
	answer := peerAnswer{member: other, holds: holdsData}
	var all []membership.Member
	header, err := p.get(ctx, other.PeerURL+membersPath, &all)
	if err != nil {
		return answer, err
	}
	for _, m := range all {
		if len(all) != 1 && !slices.Contains(m.PeerURLs, other.PeerURL) {
			continue
		}
		if cluster, err := strconv.ParseUint(header.Get(clusterHeader), 16, 64); err == nil {
			answer.own = identity{cluster: cluster, member: uint64(m.ID)}
		}
		if !m.IsLearner {
			answer.clientURLs = m.ClientURLs
			break
		}
	}
	return answer, nil
}

func (p *peers) askSteward(ctx context.Context, other Member) (answered stewardAnswer, err error) {
	if _, err := p.get(ctx, other.PeerURL+answerPath, &answered); err != nil {
		return answered, err
	}
	if answered.Name != other.Name {
		return answered, fmt.Errorf("%s is answered by member %q, not %q", other.PeerURL, answered.Name, other.Name)
	}
	if answered.Holds != holdsNothing && answered.Holds != holdsData {
		return answered, fmt.Errorf("%s answers that it holds %q", other.PeerURL, answered.Holds)
	}
	return answered, nil
}

// get reads what a peer URL has.
func (p *peers) get(ctx context.Context, from string, into any) (http.Header, error) {
	via, err := p.via(p.options.peerTLS())
	if err != nil {
		return nil, fmt.Errorf("peer certificate: %w", err)
	}
	defer via.CloseIdleConnections()
	return do(ctx, via, from, into)
}

// via is how members reach each other: not by a proxy, whatever the environment has.
func (p *peers) via(info transport.TLSInfo) (*http.Transport, error) {
	via, err := transport.NewTransport(info, p.timeout)
	if err == nil {
		via.Proxy = nil
	}
	return via, err
}

// do asks for what is JSON, and returns the header that comes with it.
func do(ctx context.Context, via *http.Transport, to string, into any) (http.Header, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, to, nil)
	if err != nil {
		return nil, err
	}
	response, err := (&http.Client{Transport: via}).Do(request)
	if err != nil {
		return nil, err
	}
	defer func() { _ = response.Body.Close() }()
	content, err := io.ReadAll(io.LimitReader(response.Body, mostAnswered))
	if err != nil {
		return nil, err
	}
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s answers %s: %s", to, response.Status, strings.TrimSpace(string(content)))
	}
	if err := json.Unmarshal(content, into); err != nil {
		return nil, fmt.Errorf("%s: %w", to, err)
	}
	return response.Header, nil
}

// clientTLS is with which client URLs of other members are used.
func (p *peers) clientTLS() transport.TLSInfo {
	return transport.TLSInfo{
		CertFile: p.options.CertFile, KeyFile: p.options.KeyFile, TrustedCAFile: p.options.TrustedCAFile,
	}
}

// connect returns a client of another member. It connects when it is used.
func (p *peers) connect(urls []string) (*clientv3.Client, error) {
	config := clientv3.Config{Endpoints: urls, Logger: zap.NewNop()}
	secure := func(text string) bool { return strings.HasPrefix(text, "https:") }
	if slices.ContainsFunc(urls, secure) {
		var err error
		if config.TLS, err = p.clientTLS().ClientConfig(); err != nil {
			return nil, fmt.Errorf("client certificate: %w", err)
		}
	}
	return clientv3.New(config)
}

// quorum is a member that has one, and what it then says.
type quorum struct {
	cluster cluster
	// client is for the caller to close.
	client *clientv3.Client
}

// findQuorum asks those of the members that run for what a quorum agrees on; nil if none has one.
func (p *peers) findQuorum(ctx context.Context, answers []peerAnswer) (*quorum, error) {
	var all []error
	for _, a := range answers {
		if len(a.clientURLs) == 0 {
			continue
		}
		found, err := p.askQuorum(ctx, a.clientURLs)
		if err == nil {
			return found, nil
		}
		all = append(all, fmt.Errorf("%s: %w", a.member.Name, err))
	}
	return nil, errors.Join(all...)
}

func (p *peers) askQuorum(ctx context.Context, urls []string) (*quorum, error) {
	client, err := p.connect(urls)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, p.timeout)
	defer cancel()
	// The list is linearizable: the member answers only after a quorum has confirmed that it has all changes.
	response, err := client.MemberList(ctx)
	if err != nil {
		return nil, errors.Join(err, client.Close())
	}
	q := &quorum{cluster: cluster{id: response.Header.ClusterId}, client: client}
	for _, m := range response.Members {
		q.cluster.members = append(q.cluster.members, listedMember{
			id: m.ID, name: m.Name, peerURLs: m.PeerURLs, learner: m.IsLearner,
		})
	}
	return q, nil
}

// close ends the client; nil has none.
func (q *quorum) close() {
	if q != nil {
		_ = q.client.Close()
	}
}

// initialCluster is how etcd wants to be told of the members that it joins. Those that have not started have no name
// yet, which does not matter: etcd compares the URLs.
func initialCluster(options *Options, response *clientv3.MemberAddResponse) string {
	var all []string
	for _, m := range response.Members {
		name := m.Name
		for _, configured := range options.Members {
			if slices.Contains(m.PeerURLs, configured.PeerURL) {
				name = configured.Name
			}
		}
		for _, peerURL := range m.PeerURLs {
			all = append(all, name+"="+peerURL)
		}
	}
	return strings.Join(all, ",")
}

// hostOf is where a URL listens.
func hostOf(text string) (scheme, host string, err error) {
	u, err := url.Parse(text)
	if err != nil {
		return "", "", err
	}
	return u.Scheme, u.Host, nil
}
