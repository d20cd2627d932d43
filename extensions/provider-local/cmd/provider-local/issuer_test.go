package main

import (
	"slices"
	"testing"
	"time"
)

func TestClientsOfTheIssuer(t *testing.T) {
	clients, err := parseClients([]string{"a=https://a.example/?x=y", "b=https://b.example/", "a=https://c.example/"})
	if err != nil || len(clients) != 2 || clients[0].ID != "a" || clients[1].ID != "b" ||
		!slices.Equal(clients[0].Redirects, []string{"https://a.example/?x=y", "https://c.example/"}) {
		t.Errorf("%+v, %v", clients, err)
	}
	if _, err := parseClients([]string{"nothing"}); err == nil {
		t.Error("a client without URL is taken")
	}
	if _, err := (issuerFlags{period: time.Minute}).rotation(); err == nil {
		t.Error("keys that are replaced faster than they are announced are taken")
	}
}
