package server

import (
	"context"
	"net"
	"strings"
	"time"

	"github.com/miekg/dns"

	"github.com/trellis-garden/trellis/extensions/provider-local/pkg/cloud/api"
)

// negativeTTL is how long resolvers may remember that a name does not exist: short, because names appear within
// seconds.
const negativeTTL = 2

// maxCNAMEs bounds the length of a chain of CNAMEs within the zone.
const maxCNAMEs = 8

// resolver answers DNS: with authority for the zone, and for all other names by the forwarder. Without a forwarder
// no other name exists, as the landscape has no way out.
type resolver struct {
	records *records
	// forward is the address of a resolver, host:port, or empty.
	forward string
}

// ServeDNS implements dns.Handler.
func (r *resolver) ServeDNS(w dns.ResponseWriter, request *dns.Msg) {
	_ = w.WriteMsg(r.answer(request, w.LocalAddr().Network()))
}

func (r *resolver) answer(request *dns.Msg, network string) *dns.Msg {
	reply := new(dns.Msg)
	reply.SetReply(request)
	reply.RecursionAvailable = true
	if request.Opcode != dns.OpcodeQuery || len(request.Question) != 1 {
		reply.Rcode = dns.RcodeNotImplemented
		return reply
	}
	question := request.Question[0]
	if !inZone(api.CanonicalName(question.Name), r.records.zone) {
		return r.answerOutside(request, reply, network)
	}
	reply.Authoritative = true
	r.answerInside(reply, question)
	return reply
}

func (r *resolver) answerOutside(request, reply *dns.Msg, network string) *dns.Msg {
	if r.forward == "" {
		reply.Rcode = dns.RcodeNameError
		return reply
	}
	client := &dns.Client{Net: network, Timeout: 3 * time.Second}
	answer, _, err := client.Exchange(request, r.forward)
	if err != nil {
		reply.Rcode = dns.RcodeServerFailure
		return reply
	}
	return answer
}

func (r *resolver) answerInside(reply *dns.Msg, question dns.Question) {
	name := question.Name
	for range maxCNAMEs {
		record, found, exists := r.records.lookup(name)
		if !found {
			if !exists {
				reply.Rcode = dns.RcodeNameError
			}
			break
		}
		reply.Answer = append(reply.Answer, resourceRecords(name, record, question.Qtype)...)
		if record.Type != "CNAME" || question.Qtype == dns.TypeCNAME {
			break
		}
		name = dns.Fqdn(record.Values[0])
		if !inZone(api.CanonicalName(name), r.records.zone) {
			break
		}
	}
	if len(reply.Answer) == 0 {
		reply.Ns = []dns.RR{r.soa()}
	}
}

// soa goes with negative answers; its minimum says how long these are valid.
func (r *resolver) soa() dns.RR {
	zone := dns.Fqdn(r.records.zone)
	return &dns.SOA{
		Hdr:     dns.RR_Header{Name: zone, Rrtype: dns.TypeSOA, Class: dns.ClassINET, Ttl: negativeTTL},
		Ns:      "ns." + zone,
		Mbox:    "hostmaster." + zone,
		Serial:  1,
		Refresh: 3600,
		Retry:   600,
		Expire:  86400,
		Minttl:  negativeTTL,
	}
}

// resourceRecords gives the values of a record that fit the asked-for type. A CNAME fits every type.
func resourceRecords(name string, record api.Record, qtype uint16) []dns.RR {
	rrtype := dns.StringToType[record.Type]
	if rrtype != qtype && qtype != dns.TypeANY && rrtype != dns.TypeCNAME {
		return nil
	}
	header := dns.RR_Header{Name: name, Rrtype: rrtype, Class: dns.ClassINET, Ttl: record.TTL}
	var result []dns.RR
	for _, value := range record.Values {
		switch record.Type {
		case "A":
			result = append(result, &dns.A{Hdr: header, A: net.ParseIP(value)})
		case "AAAA":
			result = append(result, &dns.AAAA{Hdr: header, AAAA: net.ParseIP(value)})
		case "CNAME":
			result = append(result, &dns.CNAME{Hdr: header, Target: dns.Fqdn(value)})
		case "TXT":
			result = append(result, &dns.TXT{Hdr: header, Txt: splitText(strings.Trim(value, `"`))})
		}
	}
	return result
}

// splitText cuts a text into the strings of at most 255 bytes that a TXT record consists of.
func splitText(text string) []string {
	const limit = 255
	parts := []string{}
	for len(text) > limit {
		parts = append(parts, text[:limit])
		text = text[limit:]
	}
	return append(parts, text)
}

// serveDNS answers on UDP and TCP until the context ends.
func serveDNS(ctx context.Context, address string, handler dns.Handler) error {
	packet, err := net.ListenPacket("udp", address)
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", packet.LocalAddr().String())
	if err != nil {
		packet.Close()
		return err
	}
	servers := []*dns.Server{
		{PacketConn: packet, Handler: handler},
		{Listener: listener, Handler: handler},
	}
	failed := make(chan error, len(servers))
	for _, server := range servers {
		go func() { failed <- server.ActivateAndServe() }()
	}
	defer func() {
		for _, server := range servers {
			_ = server.Shutdown()
		}
	}()
	select {
	case <-ctx.Done():
		return nil
	case err := <-failed:
		return err
	}
}
