package infrastructure

import (
	"bytes"
	"strconv"
	"strings"
	"text/template"

	"github.com/trellis-garden/trellis/extensions/provider-local/pkg/terraformprovider"
)

// configValues fill the configuration.
type configValues struct {
	// Name of the network in the cloud.
	Name string
	// Namespace of the machines.
	Namespace string
	// Range is where the subnet is allocated; empty leaves it to the cloud.
	Range string
}

var configTemplate = template.Must(template.New("main.tf").Funcs(template.FuncMap{
	"quote":   quote,
	"source":  func() string { return terraformprovider.Source },
	"version": func() string { return terraformprovider.Version },
}).Parse(`terraform {
  required_providers {
    local = {
      source  = {{ quote source }}
      version = {{ quote version }}
    }
  }
}

provider "local" {}

resource "local_network" "machines" {
  name      = {{ quote .Name }}
  namespace = {{ quote .Namespace }}
{{- if .Range }}
  range     = {{ quote .Range }}
{{- end }}
}

output "network" {
  value = {
    name       = local_network.machines.name
    cidr       = local_network.machines.cidr
    gateway    = local_network.machines.gateway
    bridge     = local_network.machines.bridge
    egressCIDR = local_network.machines.egress_cidr
  }
}
`))

// render gives the Terraform configuration.
func render(values configValues) (string, error) {
	var buffer bytes.Buffer
	if err := configTemplate.Execute(&buffer, values); err != nil {
		return "", err
	}
	return buffer.String(), nil
}

// quote writes a string of the configuration language: its interpolations are escaped.
func quote(text string) string {
	return strings.NewReplacer("${", "$${", "%{", "%%{").Replace(strconv.Quote(text))
}
