package seedauthorizer

import (
	"slices"
	"sync"
)

// Kind is the kind of a vertex. Edges always lead from a smaller to a larger kind, so the graph has no cycles.
type Kind uint8

// The kinds, in the order in which edges may lead.
const (
	kindQuota Kind = iota + 1
	kindSecret
	kindInternalSecret
	kindConfigMap
	kindWorkloadIdentity
	// kindOffer stands for an object with credentials once more, for one seed: the object leads to it if it lets that
	// seed read it, and it leads on if that seed names the object. Both are needed.
	kindOffer
	kindSecretBinding
	kindCredentialsBinding
	kindCloudProfile
	kindNamespacedCloudProfile
	kindExposureClass
	kindProject
	kindNamespace
	kindControllerRegistration
	kindControllerDeployment
	kindControllerInstallation
	kindBackupBucket
	kindBackupEntry
	kindBastion
	kindSeed
	kindBootstrapToken
	kindGardenlet
	kindManagedSeed
	// kindFleetNamespace stands for the shoots of a namespace, once more: they may be joined to a fleet that the seed
	// runs.
	kindFleetNamespace
	// kindGrowthNamespace stands for them as well: a fleet that the seed runs may change their worker pools, or create
	// more.
	kindGrowthNamespace
	kindShoot
	kindCertificateSigningRequest
	// kindAgent is who asks: the gardenlet of a seed with the seed's extensions. All paths end there.
	kindAgent
)

// Vertex is an object of the garden.
type Vertex struct {
	Kind Kind
	// Namespace is empty for objects of the garden.
	Namespace, Name string
}

// Edge says that whoever may see To may see From.
type Edge struct{ From, To Vertex }

// Graph tells which objects belong to which seed. Objects state edges; the graph counts, for every vertex and seed,
// over how many of its edges the seed is reached, so that a question costs one look-up however many shoots there are.
type Graph struct {
	mu    sync.RWMutex
	nodes map[Vertex]*node
	// stated are the edges by the object that states them.
	stated map[Vertex][]Edge
	// agents numbers the seeds.
	agents map[string]int32
}

// node is a vertex with what leads to it, once for each edge.
type node struct {
	vertex Vertex
	in     []*node
	outs   int
	reach  []reach
}

// reach counts the edges over which an agent is reached.
type reach struct{ agent, edges int32 }

// NewGraph returns an empty graph.
func NewGraph() *Graph {
	return &Graph{nodes: map[Vertex]*node{}, stated: map[Vertex][]Edge{}, agents: map[string]int32{}}
}

// Reaches tells whether an object belongs to a seed.
func (g *Graph) Reaches(from Vertex, seedName string) bool {
	g.mu.RLock()
	defer g.mu.RUnlock()
	n, found := g.nodes[from]
	if !found {
		return false
	}
	number, known := g.agents[seedName]
	return known && n.position(number) >= 0
}

// Cares tells whether a seed cares for an object itself, and not for something that refers to it.
func (g *Graph) Cares(object Vertex, seedName string) bool {
	g.mu.RLock()
	defer g.mu.RUnlock()
	return slices.Contains(g.stated[object], Edge{From: object, To: Vertex{Kind: kindAgent, Name: seedName}})
}

// Set replaces the edges that an object states. None: the object is gone, or nobody's.
func (g *Graph) Set(object Vertex, edges []Edge) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.set(object, edges)
}

// Replace replaces the edges of all objects of a kind.
func (g *Graph) Replace(kind Kind, all map[Vertex][]Edge) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for object := range g.stated {
		if _, kept := all[object]; object.Kind == kind && !kept {
			g.set(object, nil)
		}
	}
	for object, edges := range all {
		g.set(object, edges)
	}
}

// Size returns the numbers of vertices and edges.
func (g *Graph) Size() (vertices, edges int) {
	g.mu.RLock()
	defer g.mu.RUnlock()
	for _, stated := range g.stated {
		edges += len(stated)
	}
	return len(g.nodes), edges
}

// set adds new edges before it removes old ones, so that vertices that stay are not made anew.
func (g *Graph) set(object Vertex, edges []Edge) {
	old := g.stated[object]
	if slices.Equal(old, edges) {
		return
	}
	for _, edge := range edges {
		g.connect(edge)
	}
	for _, edge := range old {
		g.disconnect(edge)
	}
	if len(edges) == 0 {
		delete(g.stated, object)
		return
	}
	g.stated[object] = edges
}

func (g *Graph) connect(edge Edge) {
	from, to := g.node(edge.From), g.node(edge.To)
	to.in = append(to.in, from)
	from.outs++
	for _, r := range to.reach {
		from.gain(r.agent)
	}
}

func (g *Graph) disconnect(edge Edge) {
	from, to := g.nodes[edge.From], g.nodes[edge.To]
	i := slices.Index(to.in, from)
	last := len(to.in) - 1
	to.in[i], to.in[last] = to.in[last], nil
	to.in = to.in[:last]
	from.outs--
	for _, r := range to.reach {
		from.lose(r.agent)
	}
	g.dropOrphan(from)
	g.dropOrphan(to)
}

// node returns a vertex, new if need be. An agent reaches itself.
func (g *Graph) node(v Vertex) *node {
	n, found := g.nodes[v]
	if !found {
		n = &node{vertex: v}
		if v.Kind == kindAgent {
			n.reach = []reach{{agent: g.number(v.Name), edges: 1}}
		}
		g.nodes[v] = n
	}
	return n
}

// number gives a seed a small number, for good: seeds come and go rarely.
func (g *Graph) number(seedName string) int32 {
	number, known := g.agents[seedName]
	if !known {
		number = int32(len(g.agents))
		g.agents[seedName] = number
	}
	return number
}

func (g *Graph) dropOrphan(n *node) {
	if n.outs == 0 && len(n.in) == 0 {
		delete(g.nodes, n.vertex)
	}
}

func (n *node) position(agent int32) int {
	return slices.IndexFunc(n.reach, func(r reach) bool { return r.agent == agent })
}

// gain notes one more edge over which the agent is reached. The first one concerns everything that leads here.
func (n *node) gain(agent int32) {
	if i := n.position(agent); i >= 0 {
		n.reach[i].edges++
		return
	}
	n.reach = append(n.reach, reach{agent: agent, edges: 1})
	for _, p := range n.in {
		p.gain(agent)
	}
}

// lose is the opposite of gain.
func (n *node) lose(agent int32) {
	i := n.position(agent)
	if n.reach[i].edges--; n.reach[i].edges > 0 {
		return
	}
	n.reach = slices.Delete(n.reach, i, i+1)
	for _, p := range n.in {
		p.lose(agent)
	}
}
