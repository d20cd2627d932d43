// Package terraformprovider is the Terraform provider of the local cloud: the resource local_network.
package terraformprovider

import (
	"context"
	"os"

	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/provider"
	"github.com/hashicorp/terraform-plugin-framework/provider/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/trellis-garden/trellis/extensions/provider-local/pkg/cloud/api"
)

const (
	// Source is the provider's address in configurations. Its registry is the default one of the program, which is
	// never asked: a filesystem mirror has the provider.
	Source = "trellis-garden/local"
	// Version is that of the provider; it is part of the path in a filesystem mirror.
	Version = "0.1.0"

	// Address is under which the provider introduces itself to debuggers.
	Address = "terraform.trellis.garden/" + Source

	// EnvEndpoint and EnvToken configure the provider without writing credentials into files.
	EnvEndpoint = "LOCAL_CLOUD_ENDPOINT"
	EnvToken    = "LOCAL_CLOUD_TOKEN"
)

// New returns the provider.
func New() provider.Provider { return &localProvider{} }

type localProvider struct{}

type providerModel struct {
	Endpoint types.String `tfsdk:"endpoint"`
	Token    types.String `tfsdk:"token"`
}

// Metadata implements provider.Provider.
func (*localProvider) Metadata(_ context.Context, _ provider.MetadataRequest, response *provider.MetadataResponse) {
	response.TypeName = "local"
	response.Version = Version
}

// Schema implements provider.Provider.
func (*localProvider) Schema(_ context.Context, _ provider.SchemaRequest, response *provider.SchemaResponse) {
	response.Schema = schema.Schema{
		Description: "The local cloud of a Trellis landscape.",
		Attributes: map[string]schema.Attribute{
			"endpoint": schema.StringAttribute{
				Optional: true, Description: "URL of the local cloud. Default: the environment variable " +
					EnvEndpoint + ".",
			},
			"token": schema.StringAttribute{
				Optional: true, Sensitive: true,
				Description: "Bearer token. Default: the environment variable " + EnvToken + ".",
			},
		},
	}
}

// Configure implements provider.Provider.
func (*localProvider) Configure(ctx context.Context, request provider.ConfigureRequest,
	response *provider.ConfigureResponse) {
	var model providerModel
	response.Diagnostics.Append(request.Config.Get(ctx, &model)...)
	if response.Diagnostics.HasError() {
		return
	}
	client := &api.Client{Endpoint: os.Getenv(EnvEndpoint), Token: os.Getenv(EnvToken)}
	if value := model.Endpoint.ValueString(); value != "" {
		client.Endpoint = value
	}
	if value := model.Token.ValueString(); value != "" {
		client.Token = value
	}
	if client.Endpoint == "" {
		response.Diagnostics.AddAttributeError(path.Root("endpoint"), "Endpoint missing",
			"Set endpoint or the environment variable "+EnvEndpoint+".")
	}
	response.ResourceData = client
}

// Resources implements provider.Provider.
func (*localProvider) Resources(context.Context) []func() resource.Resource {
	return []func() resource.Resource{func() resource.Resource { return &networkResource{} }}
}

// DataSources implements provider.Provider.
func (*localProvider) DataSources(context.Context) []func() datasource.DataSource { return nil }
