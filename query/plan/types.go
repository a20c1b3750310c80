package plan

import (
	"github.com/triegs/triegs/internal/term"
	"github.com/triegs/triegs/query"
	"github.com/triegs/triegs/query/hypergraph"
)

// Plan is a query together with the join tree that it is maintained over. It
// is immutable and knows nothing of ids or storage.
type Plan struct {
	Query *query.Query
	// Class is the structural class of the normalised query (after private
	// variables have been folded into their atoms), Core the reason for it.
	Class hypergraph.Class
	Core  *hypergraph.Core // nil when nothing stands against the best class
	// Aliases has one entry for each atom of the query, in the order of the
	// atoms.
	Aliases []Alias
	// Clusters are the sets of at least two aliases that hang together by variables
	// that are no output (Wang and Hu, appendix B.2). The query is a full one over
	// the clusters, each seen as a relation over its output variables, and the
	// aliases outside of them.
	Clusters []Cluster
	// Nodes is the tree of that full query in pre-order; Nodes[0] is the root.
	Nodes []Node
	// Extra are variables that are treated as output although the head does not
	// have them, because only so the query is free-connex. Its answers are then
	// projected on the head and kept.
	Extra []query.Var
	// Payload says what is computed for each answer.
	Payload Payload
	// Score is the cost vector by which the tree was chosen.
	Score Score
	// Never marks a query with a filter that is false whatever the data are:
	// its answer is always empty.
	Never bool
}

// Score is compared entry by entry, less is better. The number of annotated edges
// that are not strong stands first in the literature: in the tree of a query there
// is none, and Cluster has that of a cluster.
type Score struct {
	// Bounded tells that FIFO windows cost amortised O(1) in this tree, which
	// comes before all others: WindowHeight is at most 2, and no alias stands above
	// one whose window is shorter than its own. It is false without windows.
	Bounded bool `json:"bounded,omitempty"`
	// WindowHeight is Height counted down to the aliases with a window only, 0
	// without any.
	WindowHeight int `json:"window_height,omitempty"`
	// Churn adds up, over all aliases with a window and all aliases above each,
	// how often the facts below come and go in the lifetime of a fact above:
	// once where the window above is no longer, the ratio of the windows where it
	// is, and more than that where there is none. It puts short windows high and
	// relations without a window at the bottom.
	Churn int64 `json:"churn,omitempty"`
	// SumDepth adds up, over all aliases, the number of aliases above it: the
	// nodes that a change may wake (CROWN's objective, at equal rates).
	SumDepth int `json:"sum_depth"`
	// Height is the greatest number of aliases on a way from the root down.
	// Generalized nodes do not count: what passes through one touches one tuple
	// of it.
	Height int `json:"height"`
	// Nodes counts the nodes, generalized ones included.
	Nodes int `json:"nodes"`
	// Orders counts the column orders in which relations must be indexed: one
	// for each alias by its key and the rest, one for each child key that is no
	// prefix of that; within a cluster only one for each child key. Aliases that
	// select the same facts share equal orders.
	Orders int `json:"orders"`
}

// Cluster is a set of aliases that is folded into one relation over its output
// variables: for each tuple of them, the sum over the valuations of the other
// variables of the product of what the aliases hold.
type Cluster struct {
	// Vars are the output variables of the aliases (and those of Plan.Extra),
	// ascending.
	Vars []query.Var
	// Aliases are the indexes of the aliases, ascending.
	Aliases []int
	// Nodes is the join tree of the aliases in pre-order. Every node is folded over
	// its key: that of the root is Vars, and its other variables are all shared
	// with children. All children of a generalized node hold all of its schema.
	Nodes []Node
	// NonStrong counts the ways on which one tuple below may change many above: for
	// each alias the different keys of its children that do not hold all of it, and
	// the root if it is an alias that is folded.
	NonStrong int
	// Score is the cost vector by which the tree was chosen.
	Score Score
}

// Payload says what is computed for each answer beside its presence.
type Payload struct {
	// Counted says that clusters keep the number of valuations, with their
	// multiplicities. Without it they keep of how many tuples of their root a tuple
	// is the projection, which tells as well whether it is there.
	Counted bool
	// Tracks are further annotations.
	Tracks []Track
	// Outputs are the values of a row: one for each aggregate, or one for the
	// semiring of the query. There is none for the natural numbers and the Booleans,
	// whose rows have a multiplicity.
	Outputs []Output
}

// Track is one annotation in an algebra of its own, for which some aliases lift
// the term in a column (Alias.Lifts).
type Track struct {
	// Algebra is a name for semiring.Parse.
	Algebra string
	// Everywhere says that clusters without a lift hold the sum of as many ones as
	// they have valuations, in the algebra; otherwise those clusters are
	// taken at their count, for which Payload.Counted is set, or at one if
	// the algebra is idempotent.
	Everywhere bool
}

// Output is a value of a row.
type Output struct {
	// Track is an index into Payload.Tracks, or -1 for the count.
	Track int
	// Average divides the value of the track by the count.
	Average bool
}

// Lift takes the term in a column of the facts of an alias as a value in the
// algebra of a track. The value of a fact is the product of its lifts, times its
// multiplicity.
type Lift struct {
	Track int // index into Payload.Tracks
	Col   int // of the base relation; its arity for the value of the contribution
}

// Alias is what one occurrence of a relation contributes: the facts that match
// its constants, its repeated variables and its filters, projected on its kept
// variables. A variable that occurs in one atom only and not in the head is
// private: it is folded away here, and the weights of the facts that agree on
// the kept variables are added up.
type Alias struct {
	Atom     int // index into Query.Atoms
	Relation string
	Arity    int
	// Window says which contributions to the relation count.
	Window query.Window
	// Vars are the kept variables, each once, in the order of their first
	// columns; Cols[i] is the first column of Vars[i].
	Vars []query.Var
	Cols []int
	// Consts are the columns that must hold a constant.
	Consts []ConstCol
	// Equal are pairs of columns that must hold the same term (a variable
	// repeated inside the atom).
	Equal [][2]int
	// Filters and Values are evaluated on the facts of this alias. They use
	// only variables that occur in this atom (kept or private).
	Filters []query.Filter
	Values  []query.Values
	// Private are the columns that are folded away, one column per private
	// variable (the first, when it is repeated inside the atom).
	Private []int
	// Valued says that the alias reads the facts together with the values of their
	// contributions, which are a further column behind the others.
	Valued bool
	// Lifts are the columns whose terms are values of tracks.
	Lifts []Lift
}

// Direct reports whether the alias is a plain selection by constants of its
// relation, so that an index of the relation itself can serve as the alias.
func (a *Alias) Direct() bool {
	return len(a.Equal) == 0 && len(a.Filters) == 0 && len(a.Values) == 0 && len(a.Private) == 0 && !a.Valued && len(a.Lifts) == 0
}

// ConstCol is a column that must hold Term.
type ConstCol struct {
	Col  int
	Term term.Term
}

// Node is a node of a join tree: an alias, a cluster, or a generalized node whose
// candidate tuples are the keys of its children.
type Node struct {
	Alias    int // index into Plan.Aliases, -1 for another node
	Cluster  int // index into Plan.Clusters, -1 for another node
	Vars     []query.Var
	Parent   int // index into the nodes of the tree, -1 for the root
	Children []int
	// Key holds the variables shared with the parent, ascending; Vars begins with
	// them. It is empty for the root of the query, and has the output variables at
	// that of a cluster.
	Key []query.Var
}
