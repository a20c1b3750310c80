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
	// Nodes is the tree in pre-order; Nodes[0] is the root.
	Nodes []Node
	// Score is the cost vector by which the tree was chosen.
	Score Score
	// Never marks a query with a filter that is false whatever the data are:
	// its answer is always empty.
	Never bool
}

// Score is compared entry by entry, less is better. For a full query no edge
// of the tree carries annotations, so the number of annotated edges, which
// stands first in the literature, is always 0 and is not kept.
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
	// prefix of that. Aliases that select the same facts share equal orders.
	Orders int `json:"orders"`
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
}

// Direct reports whether the alias is a plain selection by constants of its
// relation, so that an index of the relation itself can serve as the alias.
func (a *Alias) Direct() bool {
	return len(a.Equal) == 0 && len(a.Filters) == 0 && len(a.Values) == 0 && len(a.Private) == 0
}

// ConstCol is a column that must hold Term.
type ConstCol struct {
	Col  int
	Term term.Term
}

// Node is a node of the join tree: an alias, or a generalized node whose
// candidate tuples are the keys of its children.
type Node struct {
	Alias    int // index into Plan.Aliases, -1 for a generalized node
	Vars     []query.Var
	Parent   int // index into Plan.Nodes, -1 for the root
	Children []int
	// Key holds the variables shared with the parent, in the order in which
	// they stand in Vars; empty for the root.
	Key []query.Var
}
