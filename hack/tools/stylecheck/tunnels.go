package main

import (
	"fmt"
	"go/ast"
	"regexp"
	"strings"
)

// tunnelPattern is the name of what carries tunnels.
var tunnelPattern = regexp.MustCompile(`(?i)wire_?guard`)

// tunnelPlaces know what carries tunnels: the transport, and where it is chosen.
var tunnelPlaces = []string{"pkg/vpn/wireguard/", "cmd/vpn/wireguard.go"}

// tunnelNames are the identifiers elsewhere that may name it: a field of gardenlet's configuration file, and its keys.
var tunnelNames = map[string]bool{
	"WireGuardPort":          true,
	"WireGuardKeyPairConfig": true, "DataKeyWireGuardPrivateKey": true, "DataKeyWireGuardPublicKey": true,
}

// tunnels finds identifiers that name what carries tunnels, where only package transport should be known.
func tunnels(t tree) []finding {
	var found []finding
	for _, s := range t.sources {
		if s.isTest() || strings.HasPrefix(s.path, "hack/") || knowsTunnels(s.path) {
			continue
		}
		ast.Inspect(s.file, func(n ast.Node) bool {
			if id, ok := n.(*ast.Ident); ok && tunnelPattern.MatchString(id.Name) && !tunnelNames[id.Name] {
				found = append(found, finding{id.Pos(), fmt.Sprintf(
					"%s: only package wireguard and cmd/vpn/wireguard.go know what carries tunnels", id.Name)})
			}
			return true
		})
	}
	return found
}

func knowsTunnels(path string) bool {
	for _, place := range tunnelPlaces {
		if strings.HasPrefix(path, place) {
			return true
		}
	}
	return false
}
