package terraformprovider

import (
	"context"
	"fmt"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/planmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/stringplanmodifier"
	"github.com/hashicorp/terraform-plugin-framework/tfsdk"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/trellis-garden/trellis/extensions/provider-local/pkg/cloud/api"
)

// networkResource is local_network. The cloud's API is declarative, so creating a network whose state was lost
// adopts the one that is there.
type networkResource struct {
	client *api.Client
}

type networkModel struct {
	ID         types.String `tfsdk:"id"`
	Name       types.String `tfsdk:"name"`
	Namespace  types.String `tfsdk:"namespace"`
	CIDR       types.String `tfsdk:"cidr"`
	Range      types.String `tfsdk:"range"`
	Gateway    types.String `tfsdk:"gateway"`
	Bridge     types.String `tfsdk:"bridge"`
	EgressCIDR types.String `tfsdk:"egress_cidr"`
	VolumesDir types.String `tfsdk:"volumes_dir"`
}

var (
	_ resource.ResourceWithConfigure   = &networkResource{}
	_ resource.ResourceWithImportState = &networkResource{}
)

// Metadata implements resource.Resource.
func (*networkResource) Metadata(_ context.Context, request resource.MetadataRequest,
	response *resource.MetadataResponse) {
	response.TypeName = request.ProviderTypeName + "_network"
}

// Schema implements resource.Resource.
func (*networkResource) Schema(_ context.Context, _ resource.SchemaRequest, response *resource.SchemaResponse) {
	replace := []planmodifier.String{stringplanmodifier.RequiresReplace()}
	keep := []planmodifier.String{stringplanmodifier.UseStateForUnknown()}
	response.Schema = schema.Schema{
		Description: "An isolated network of machines.",
		Attributes: map[string]schema.Attribute{
			"id": schema.StringAttribute{Computed: true, PlanModifiers: keep, Description: "The name."},
			"name": schema.StringAttribute{
				Required: true, PlanModifiers: replace, Description: "Name in the cloud.",
			},
			"namespace": schema.StringAttribute{
				Required: true, PlanModifiers: replace, Description: "Namespace whose pods are attached.",
			},
			"cidr": schema.StringAttribute{Optional: true, Computed: true,
				Description: "Subnet; allocated when absent.",
				PlanModifiers: []planmodifier.String{
					stringplanmodifier.RequiresReplace(), stringplanmodifier.UseStateForUnknown(),
				}},
			"range": schema.StringAttribute{
				Optional: true, Description: "Where to allocate the subnet from; used only when the network is " +
					"created.",
			},
			"gateway": schema.StringAttribute{
				Computed: true, PlanModifiers: keep, Description: "Address of the bridge.",
			},
			"bridge": schema.StringAttribute{
				Computed: true, PlanModifiers: keep, Description: "Name of the bridge device.",
			},
			"volumes_dir": schema.StringAttribute{
				Computed: true, PlanModifiers: keep, Description: "Folder of the node for volumes of the machines.",
			},
			"egress_cidr": schema.StringAttribute{
				Computed: true, PlanModifiers: keep, Description: "Source of connections out of the network.",
			},
		},
	}
}

// Configure implements resource.ResourceWithConfigure.
func (r *networkResource) Configure(_ context.Context, request resource.ConfigureRequest,
	response *resource.ConfigureResponse) {
	if request.ProviderData == nil {
		return
	}
	client, ok := request.ProviderData.(*api.Client)
	if !ok {
		response.Diagnostics.AddError("Unexpected provider data", fmt.Sprintf("got %T", request.ProviderData))
		return
	}
	r.client = client
}

// Create implements resource.Resource.
func (r *networkResource) Create(ctx context.Context, request resource.CreateRequest,
	response *resource.CreateResponse) {
	response.Diagnostics.Append(r.put(ctx, "create", request.Plan, &response.State)...)
}

// put makes the network of a plan be there, and remembers what it is.
func (r *networkResource) put(ctx context.Context, verb string, plan tfsdk.Plan, state *tfsdk.State) diag.Diagnostics {
	var model networkModel
	problems := plan.Get(ctx, &model)
	if problems.HasError() {
		return problems
	}
	network, err := r.client.PutNetwork(ctx, model.network())
	if err != nil {
		problems.AddError("Cannot "+verb+" the network "+model.Name.ValueString(), err.Error())
		return problems
	}
	problems.Append(state.Set(ctx, modelOf(network, model.Range))...)
	return problems
}

// Read implements resource.Resource.
func (r *networkResource) Read(ctx context.Context, request resource.ReadRequest, response *resource.ReadResponse) {
	var model networkModel
	response.Diagnostics.Append(request.State.Get(ctx, &model)...)
	if response.Diagnostics.HasError() {
		return
	}
	network, err := r.client.GetNetwork(ctx, model.ID.ValueString())
	if api.IsNotFound(err) {
		response.State.RemoveResource(ctx)
		return
	}
	if err != nil {
		response.Diagnostics.AddError("Cannot read the network "+model.ID.ValueString(), err.Error())
		return
	}
	response.Diagnostics.Append(response.State.Set(ctx, modelOf(network, model.Range))...)
}

// Update implements resource.Resource. Every attribute that can be set requires replacement, so this only confirms.
func (r *networkResource) Update(ctx context.Context, request resource.UpdateRequest,
	response *resource.UpdateResponse) {
	response.Diagnostics.Append(r.put(ctx, "update", request.Plan, &response.State)...)
}

// Delete implements resource.Resource.
func (r *networkResource) Delete(ctx context.Context, request resource.DeleteRequest,
	response *resource.DeleteResponse) {
	var model networkModel
	response.Diagnostics.Append(request.State.Get(ctx, &model)...)
	if response.Diagnostics.HasError() {
		return
	}
	if err := r.client.DeleteNetwork(ctx, model.ID.ValueString()); err != nil {
		response.Diagnostics.AddError("Cannot delete the network "+model.ID.ValueString(), err.Error())
	}
}

// ImportState implements resource.ResourceWithImportState: the identifier is the name.
func (*networkResource) ImportState(ctx context.Context, request resource.ImportStateRequest,
	response *resource.ImportStateResponse) {
	resource.ImportStatePassthroughID(ctx, path.Root("id"), request, response)
}

func (m networkModel) network() api.Network {
	return api.Network{
		Name: m.Name.ValueString(), Namespace: m.Namespace.ValueString(), CIDR: m.CIDR.ValueString(),
		Range: m.Range.ValueString(),
	}
}

// modelOf is the state of a network. The range is what the configuration says: it matters only to the creation.
func modelOf(network api.Network, from types.String) networkModel {
	return networkModel{
		ID:         types.StringValue(network.Name),
		Name:       types.StringValue(network.Name),
		Namespace:  types.StringValue(network.Namespace),
		CIDR:       types.StringValue(network.CIDR),
		Range:      from,
		Gateway:    types.StringValue(network.Gateway),
		Bridge:     types.StringValue(network.Bridge),
		EgressCIDR: types.StringValue(network.EgressCIDR),
		VolumesDir: types.StringValue(network.VolumesDir),
	}
}
