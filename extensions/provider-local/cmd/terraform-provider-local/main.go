// terraform-provider-local is the Terraform provider of the local cloud. Terraform and OpenTofu start it; it is found
// in a filesystem mirror under the provider's source address.
package main

import (
	"context"
	"fmt"
	"os"

	"github.com/hashicorp/terraform-plugin-framework/providerserver"

	"github.com/trellis-garden/trellis/extensions/provider-local/pkg/terraformprovider"
)

func main() {
	options := providerserver.ServeOpts{Address: terraformprovider.Address}
	if err := providerserver.Serve(context.Background(), terraformprovider.New, options); err != nil {
		fmt.Fprintln(os.Stderr, "terraform-provider-local:", err)
		os.Exit(1)
	}
}
