package shootclient

import (
	"fmt"

	"github.com/google/nftables"
	"github.com/google/nftables/binaryutil"
	"github.com/google/nftables/expr"
	"golang.org/x/sys/unix"
)

const (
	firewallTable = "trellis-vpn"
	// fromTunnelMark marks packets that came out of the tunnel until they leave this network namespace.
	fromTunnelMark = 0x7472
)

// firewall is an nftables table that masquerades what comes out of the tunnel and keeps the shoot out of it:
//
//	forward:     iifname tunnel → mark, accept; oifname tunnel: only established or related
//	input:       iifname tunnel: only established, related or ICMP
//	postrouting: mark → masquerade
type firewall struct {
	tunnel string
}

// install replaces the table in one transaction.
func (f firewall) install() error {
	conn, err := nftables.New()
	if err != nil {
		return fmt.Errorf("opening nftables: %w", err)
	}
	table := conn.AddTable(&nftables.Table{Name: firewallTable, Family: nftables.TableFamilyINet})
	conn.DelTable(table)
	table = conn.AddTable(table)
	f.addForward(conn, table)
	f.addInput(conn, table)
	f.addPostrouting(conn, table)
	if err := conn.Flush(); err != nil {
		return fmt.Errorf("setting nftables table %s: %w (needs NET_ADMIN and a kernel with nf_tables, nft_ct, "+
			"nft_masq)", firewallTable, err)
	}
	return nil
}

// remove deletes the table.
func (f firewall) remove() error {
	conn, err := nftables.New()
	if err != nil {
		return fmt.Errorf("opening nftables: %w", err)
	}
	table := conn.AddTable(&nftables.Table{Name: firewallTable, Family: nftables.TableFamilyINet})
	conn.DelTable(table)
	if err := conn.Flush(); err != nil {
		return fmt.Errorf("removing nftables table %s: %w", firewallTable, err)
	}
	return nil
}

func (f firewall) addForward(conn *nftables.Conn, table *nftables.Table) {
	chain := conn.AddChain(&nftables.Chain{
		Name: "forward", Table: table, Type: nftables.ChainTypeFilter,
		Hooknum: nftables.ChainHookForward, Priority: nftables.ChainPriorityFilter,
	})
	add := adder(conn, table, chain)
	add(interfaceIs(expr.MetaKeyIIFNAME, f.tunnel), setMark(fromTunnelMark), verdict(expr.VerdictAccept))
	add(interfaceIs(expr.MetaKeyOIFNAME, f.tunnel), establishedOrRelated(), verdict(expr.VerdictAccept))
	add(interfaceIs(expr.MetaKeyOIFNAME, f.tunnel), verdict(expr.VerdictDrop))
}

func (f firewall) addInput(conn *nftables.Conn, table *nftables.Table) {
	chain := conn.AddChain(&nftables.Chain{
		Name: "input", Table: table, Type: nftables.ChainTypeFilter,
		Hooknum: nftables.ChainHookInput, Priority: nftables.ChainPriorityFilter,
	})
	add := adder(conn, table, chain)
	add(interfaceIs(expr.MetaKeyIIFNAME, f.tunnel), establishedOrRelated(), verdict(expr.VerdictAccept))
	add(interfaceIs(expr.MetaKeyIIFNAME, f.tunnel), protocolIs(unix.IPPROTO_ICMP), verdict(expr.VerdictAccept))
	add(interfaceIs(expr.MetaKeyIIFNAME, f.tunnel), protocolIs(unix.IPPROTO_ICMPV6), verdict(expr.VerdictAccept))
	add(interfaceIs(expr.MetaKeyIIFNAME, f.tunnel), verdict(expr.VerdictDrop))
}

func (f firewall) addPostrouting(conn *nftables.Conn, table *nftables.Table) {
	chain := conn.AddChain(&nftables.Chain{
		Name: "postrouting", Table: table, Type: nftables.ChainTypeNAT,
		Hooknum: nftables.ChainHookPostrouting, Priority: nftables.ChainPriorityNATSource,
	})
	adder(conn, table, chain)(markIs(fromTunnelMark), []expr.Any{&expr.Masq{}})
}

func adder(conn *nftables.Conn, table *nftables.Table, chain *nftables.Chain) func(parts ...[]expr.Any) {
	return func(parts ...[]expr.Any) {
		rule := &nftables.Rule{Table: table, Chain: chain}
		for _, part := range parts {
			rule.Exprs = append(rule.Exprs, part...)
		}
		conn.AddRule(rule)
	}
}

func interfaceIs(key expr.MetaKey, name string) []expr.Any {
	padded := make([]byte, unix.IFNAMSIZ)
	copy(padded, name)
	return []expr.Any{
		&expr.Meta{Key: key, Register: 1},
		&expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: padded},
	}
}

func protocolIs(protocol byte) []expr.Any {
	return []expr.Any{
		&expr.Meta{Key: expr.MetaKeyL4PROTO, Register: 1},
		&expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: []byte{protocol}},
	}
}

func establishedOrRelated() []expr.Any {
	states := uint32(expr.CtStateBitESTABLISHED | expr.CtStateBitRELATED)
	return []expr.Any{
		&expr.Ct{Key: expr.CtKeySTATE, Register: 1},
		&expr.Bitwise{
			SourceRegister: 1, DestRegister: 1, Len: 4, Mask: binaryutil.NativeEndian.PutUint32(states),
			Xor: binaryutil.NativeEndian.PutUint32(0),
		},
		&expr.Cmp{Op: expr.CmpOpNeq, Register: 1, Data: binaryutil.NativeEndian.PutUint32(0)},
	}
}

func setMark(mark uint32) []expr.Any {
	return []expr.Any{
		&expr.Immediate{Register: 1, Data: binaryutil.NativeEndian.PutUint32(mark)},
		&expr.Meta{Key: expr.MetaKeyMARK, SourceRegister: true, Register: 1},
	}
}

func markIs(mark uint32) []expr.Any {
	return []expr.Any{
		&expr.Meta{Key: expr.MetaKeyMARK, Register: 1},
		&expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: binaryutil.NativeEndian.PutUint32(mark)},
	}
}

func verdict(kind expr.VerdictKind) []expr.Any {
	return []expr.Any{&expr.Verdict{Kind: kind}}
}
